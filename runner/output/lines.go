package output

import (
	"bytes"
	"regexp"
)

// maxLineBytes limits the part of a line that is kept. Lines that report an epoch are short, and
// a job that prints megabytes without a line break must not exhaust memory.
const maxLineBytes = 64 << 10

// lines splits a stream of bytes into lines. A line ends with \n or \r, because progress bars
// return to the start of the line.
type lines struct {
	partial []byte // beginning of the unfinished line, at most maxLineBytes long
}

// add takes the next bytes of the stream, and calls handle for every completed line that is not
// empty. The line has no line break and no escape sequences, and is cut at maxLineBytes. It is
// valid only during the call.
func (l *lines) add(data []byte, handle func(line []byte)) {
	for len(data) > 0 {
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			l.keep(data)
			return
		}
		l.keep(data[:i])
		l.end(handle)
		data = data[i+1:]
	}
}

// end completes the unfinished line, at a line break or at the end of the stream.
func (l *lines) end(handle func(line []byte)) {
	line := bytes.TrimSpace(removeEscapes(l.partial))
	if len(line) > 0 {
		handle(line)
	}
	l.partial = l.partial[:0]
	if cap(l.partial) > maxLineBytes/4 {
		l.partial = nil // long lines are rare, so their memory is released
	}
}

func (l *lines) keep(data []byte) {
	room := maxLineBytes - len(l.partial)
	l.partial = append(l.partial, data[:min(room, len(data))]...)
}

// escape matches the sequences that colour text and move the cursor (ECMA-48): control
// sequences, operating system commands, and the sequences of one character.
var escape = regexp.MustCompile(
	`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])`,
)

// removeEscapes returns the line without escape sequences.
func removeEscapes(line []byte) []byte {
	if bytes.IndexByte(line, 0x1b) < 0 {
		return line
	}
	return escape.ReplaceAll(line, nil)
}
