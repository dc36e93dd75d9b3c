package runner

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"courier/runner/output"
)

// metricsLog follows the files that a logger of the job writes: CSV or JSON lines. The path is a file, a
// directory, or a pattern, and need not exist at the start of the job. What a file contained before the
// start does not count.
type metricsLog struct {
	path string
	read map[string]*followedFile // of a file that existed at the start, from its end
}

// followedFile is a file that is read as it grows.
type followedFile struct {
	log    *output.Log
	offset int64
}

// pollInterval is the time between two readings of the files.
const pollInterval = 200 * time.Millisecond

// Bounds of a metrics log.
const (
	maxLogFiles = 64
	maxReadOnce = 4 << 20 // bytes of a file in one reading
)

// newMetricsLog remembers the files that exist before the job.
func newMetricsLog(path string) (*metricsLog, error) {
	if _, err := filepath.Match(path, ""); err != nil {
		return nil, err
	}
	m := &metricsLog{path: path, read: map[string]*followedFile{}}
	for _, f := range m.files() {
		if info, err := os.Stat(f); err == nil {
			m.read[f] = m.open(f, info.Size())
		}
	}
	return m, nil
}

// files returns the files of the log, at most maxLogFiles, in a constant order.
func (m *metricsLog) files() []string {
	paths, err := filepath.Glob(m.path)
	if err != nil {
		return nil // newMetricsLog has checked the pattern
	}
	var all []string
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil: // it was removed in the meantime
		case info.IsDir():
			all = append(all, logsBelow(path)...)
		default:
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all[:min(len(all), maxLogFiles)]
}

// logsBelow returns the files of loggers in a directory.
func logsBelow(dir string) []string {
	var all []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // an unreadable directory has no logs
		}
		isLog := slices.Contains([]string{".csv", ".tsv", ".jsonl"}, filepath.Ext(path))
		if isLog && entry.Type().IsRegular() {
			all = append(all, path)
		}
		return nil
	})
	return all
}

// poll returns the epochs that were written since the last call. With isEnd, no more are written.
func (m *metricsLog) poll(isEnd bool) []output.EpochReport {
	var reports []output.EpochReport
	for _, path := range m.files() {
		f, data, writtenAt := m.follow(path)
		if f == nil {
			continue
		}
		reports = append(reports, f.log.Write(data, writtenAt)...)
		if isEnd {
			reports = append(reports, f.log.Close(writtenAt)...)
		}
	}
	return reports
}

// follow returns a file with what was appended to it, and when; nil if it cannot be read. A file that became
// shorter is read from its start.
func (m *metricsLog) follow(path string) (*followedFile, []byte, time.Time) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, time.Time{}
	}
	f := m.read[path]
	if f == nil || info.Size() < f.offset {
		f = m.open(path, 0)
		m.read[path] = f
	}
	data, err := readAt(path, f.offset)
	if err != nil {
		data = nil
	}
	f.offset += int64(len(data))
	return f, data, info.ModTime()
}

// open begins to read a file behind the bytes that it had before the job, except the head of a table.
func (m *metricsLog) open(path string, before int64) *followedFile {
	f := &followedFile{log: output.NewLog(), offset: before}
	if before > 0 {
		if data, err := readAt(path, 0); err == nil {
			head, _, _ := strings.Cut(string(data), "\n")
			f.log.Head([]byte(head))
		}
	}
	return f
}

// readAt returns the bytes of a file behind an offset, at most maxReadOnce.
func readAt(path string, offset int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.NewSectionReader(f, offset, maxReadOnce))
}
