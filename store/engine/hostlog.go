package engine

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// largestHostLog is the size in bytes from which the log is put aside before a
// start; one old log is kept.
const largestHostLog = 1 << 20

// hostLog is what one child prints: the host's own lines and the engine's
// console. Earlier children's output stands before offset.
type hostLog struct {
	path   string
	offset int64
}

// openHostLog opens the log for a new child and remembers where its part begins.
func openHostLog(path string) (*os.File, hostLog, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > largestHostLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, hostLog{}, fmt.Errorf("put the host's log aside: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, hostLog{}, err
	}
	offset, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		file.Close()
		return nil, hostLog{}, err
	}
	return file, hostLog{path: path, offset: offset}, nil
}

// text is what the child has printed so far, at most the first 64 KiB of it;
// empty if the log cannot be read.
func (l hostLog) text() string {
	file, err := os.Open(l.path)
	if err != nil {
		return ""
	}
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, l.offset, 64<<10))
	if err != nil {
		return ""
	}
	return string(bytes.ToValidUTF8(content, []byte("?")))
}

// exceptionPattern is how the engine's console prints a failed statement.
var exceptionPattern = regexp.MustCompile(`(?m)^Code: \d+\. DB::\w*Exception: .*$`)

// exception is the first exception that the child printed, or "".
func exception(log string) string {
	return strings.TrimSpace(exceptionPattern.FindString(log))
}

// escapePattern matches what the console sends to steer a terminal.
var escapePattern = regexp.MustCompile(`\x1b\[[0-9;?]*[a-zA-Z]|[\x00-\x08\x0b-\x1f]`)

// lastLine is the last line that the child printed and that says anything.
func lastLine(log string) string {
	lines := strings.Split(escapePattern.ReplaceAllString(log, ""), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return strings.TrimPrefix(line, "host: ")
		}
	}
	return ""
}

// unconfinedPattern is the host's line about a kernel that cannot confine it.
var unconfinedPattern = regexp.MustCompile(`(?m)^host: not confined: (.*)$`)

// unconfined is why the child is not confined, or "".
func unconfined(log string) string {
	if m := unconfinedPattern.FindStringSubmatch(log); m != nil {
		return m[1]
	}
	return ""
}
