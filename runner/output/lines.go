package output

import (
	"bytes"
	"regexp"
)

// maxLineBytes limits the part of a line that is kept. Lines that report an epoch are short, and
// a job that prints megabytes without a line break must not exhaust memory.
const maxLineBytes = 64 << 10

// lines splits a stream of bytes into lines. A progress bar draws a line several times: it returns
// to the start of the line with \r or \b, or to an earlier line with an escape sequence. Each
// drawing is handled as a line, and only the last one is final.
type lines struct {
	partial     []byte // beginning of the unfinished line, at most maxLineBytes long
	hasReturned bool   // \r or \b follows the unfinished line
}

// add takes the next bytes of the stream, and calls handle for every completed line or drawing
// that is not empty. The line has no line break and no escape sequences, and is cut at
// maxLineBytes. It is valid only during the call.
func (l *lines) add(data []byte, handle func(line []byte, isFinal bool)) {
	for len(data) > 0 {
		i := bytes.IndexAny(data, "\r\n\b")
		text := data
		if i >= 0 {
			text = data[:i]
		}
		if len(text) > 0 && l.hasReturned {
			l.end(handle, false)
		}
		l.keep(text)
		if i < 0 {
			return
		}
		if data[i] == '\n' {
			l.end(handle, true)
		} else {
			l.hasReturned = len(l.partial) > 0
		}
		data = data[i+1:]
	}
}

// cursorUp matches the sequence that moves the cursor to an earlier line.
var cursorUp = regexp.MustCompile(`\x1b\[\d*[AF]`)

// end completes the unfinished line, at a line break, before the next drawing, or at the end of
// the stream.
func (l *lines) end(handle func(line []byte, isFinal bool), isFinal bool) {
	rest := l.partial
	for {
		up := cursorUp.FindIndex(rest)
		if up == nil {
			break
		}
		handleText(rest[:up[0]], handle, false)
		rest = rest[up[1]:]
	}
	handleText(rest, handle, isFinal)

	l.partial, l.hasReturned = l.partial[:0], false
	if cap(l.partial) > maxLineBytes/4 {
		l.partial = nil // long lines are rare, so their memory is released
	}
}

// handleText calls handle unless the text is empty.
func handleText(text []byte, handle func(line []byte, isFinal bool), isFinal bool) {
	line := bytes.TrimSpace(removeEscapes(text))
	if len(line) > 0 {
		handle(line, isFinal)
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
