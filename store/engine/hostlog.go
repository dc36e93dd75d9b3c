package engine

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// maxHostLogBytes is the size at which a start rotates the log. One old log is kept.
const maxHostLogBytes = 1 << 20

// hostLog is the output of a child: the lines of the host and the console of the engine. The output
// of earlier children precedes offset.
type hostLog struct {
	path   string
	offset int64
}

func openHostLog(path string) (*os.File, hostLog, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxHostLogBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, hostLog{}, fmt.Errorf("rotate the host's log: %w", err)
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

// text returns the output of the child so far, at most 64 KiB from its start. It returns "" if the
// log cannot be read.
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

// exceptionPattern matches a failed statement in the console of the engine.
var exceptionPattern = regexp.MustCompile(`(?m)^Code: \d+\. DB::\w*Exception: .*$`)

// exception returns the first exception in the output of the child, or "".
func exception(log string) string {
	return strings.TrimSpace(exceptionPattern.FindString(log))
}

var escapePattern = regexp.MustCompile(`\x1b\[[0-9;?]*[a-zA-Z]|[\x00-\x08\x0b-\x1f]`)

// lastLine returns the last line in the output of the child that is not empty.
func lastLine(log string) string {
	lines := strings.Split(escapePattern.ReplaceAllString(log, ""), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return strings.TrimPrefix(line, "host: ")
		}
	}
	return ""
}

// unconfinedPattern matches the line of a host that the kernel cannot confine.
var unconfinedPattern = regexp.MustCompile(`(?m)^host: not confined: (.*)$`)

// unconfined returns the reason why the child is not confined, or "".
func unconfined(log string) string {
	if m := unconfinedPattern.FindStringSubmatch(log); m != nil {
		return m[1]
	}
	return ""
}
