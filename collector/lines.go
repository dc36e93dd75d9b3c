package collector

import (
	"bytes"
	"regexp"
)

// maxLine is how much of a line is kept. Lines of epochs are short; a job that
// prints megabytes without a line's end must not fill our memory.
const maxLine = 64 << 10

// lines cuts a stream of bytes into lines, however it arrives. A line ends with
// \n or \r, because progress bars return to the line's begin.
type lines struct {
	kept []byte // of the line that has not ended, at most maxLine bytes
}

// add takes the next bytes and calls each for every line that ended, without
// its end, its escape sequences and everything beyond maxLine. Empty lines are
// left out. The line is valid during the call only.
func (l *lines) add(data []byte, each func(line []byte)) {
	for len(data) > 0 {
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			l.keep(data)
			return
		}
		l.keep(data[:i])
		l.end(each)
		data = data[i+1:]
	}
}

// end takes what is kept as a line, at a line's or the stream's end.
func (l *lines) end(each func(line []byte)) {
	line := bytes.TrimSpace(plain(l.kept))
	if len(line) > 0 {
		each(line)
	}
	l.kept = l.kept[:0]
	if cap(l.kept) > maxLine/4 {
		l.kept = nil // long lines are rare: give their memory back
	}
}

func (l *lines) keep(data []byte) {
	room := maxLine - len(l.kept)
	l.kept = append(l.kept, data[:min(room, len(data))]...)
}

// escape matches the sequences that colour text and move the cursor (ECMA-48:
// control sequences, operating system commands, and the short ones).
var escape = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])`)

// plain returns the line without escape sequences.
func plain(line []byte) []byte {
	if bytes.IndexByte(line, 0x1b) < 0 {
		return line
	}
	return escape.ReplaceAll(line, nil)
}
