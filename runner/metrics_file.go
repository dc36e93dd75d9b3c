package runner

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
			m.read[f] = openFollowed(f, info.Size())
		}
	}
	return m, nil
}

// files returns the files of the log, at most maxLogFiles, in a constant order. Those in directories have names
// as loggers give them.
func (m *metricsLog) files() (all []string) {
	paths, _ := filepath.Glob(m.path) // newMetricsLog has checked the pattern
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			all = append(all, path)
			continue
		}
		_ = fs.WalkDir(os.DirFS(path), ".", func(name string, entry fs.DirEntry, err error) error {
			isLog := slices.Contains([]string{".csv", ".tsv", ".jsonl"}, filepath.Ext(name))
			if err == nil && isLog && entry.Type().IsRegular() {
				all = append(all, filepath.Join(path, name))
			}
			return nil // an unreadable directory has no logs
		})
	}
	slices.Sort(all)
	return all[:min(len(all), maxLogFiles)]
}

// poll returns the epochs that were written since the last call. With isEnd, no more are written.
func (m *metricsLog) poll(isEnd bool) (reports []output.EpochReport) {
	for _, path := range m.files() {
		info, err := os.Stat(path)
		if err != nil {
			continue // it was removed in the meantime
		}
		f := m.read[path]
		if f == nil || info.Size() < f.offset { // it is new, or was written again
			f = openFollowed(path, 0)
			m.read[path] = f
		}
		data := readAt(path, f.offset)
		f.offset += int64(len(data))
		reports = append(reports, f.log.Write(data, info.ModTime())...)
		if isEnd {
			reports = append(reports, f.log.Close(info.ModTime())...)
		}
	}
	return reports
}

// openFollowed begins to read a file behind the bytes that it had before the job, except the head of a table.
func openFollowed(path string, before int64) *followedFile {
	f := &followedFile{log: output.NewLog(), offset: before}
	if before > 0 {
		head, _, _ := bytes.Cut(readAt(path, 0), []byte("\n"))
		f.log.Head(head)
	}
	return f
}

// readAt returns the bytes of a file behind an offset, at most maxReadOnce; none if it cannot be read.
func readAt(path string, offset int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	data, _ := io.ReadAll(io.NewSectionReader(f, offset, maxReadOnce))
	return data
}
