package output

import (
	"bytes"
	"regexp"
	"time"
)

// maxLineSize limits the part of a line that is kept. Lines that report an epoch are short.
const maxLineSize = 8 << 10

// splitter splits a stream into lines. A progress bar draws a line again after \r, \b or a movement
// of the cursor; each drawing is a line here.
type splitter struct {
	line   []byte
	at     time.Time // arrival of its last byte
	isOpen bool      // a drawing was handled, and no line break since
	isBar  bool      // the line is a drawing that follows another one or a movement of the cursor
	shown  int       // bytes of it that were handled
	escape escapeState
}

// escapeState is the part of an escape sequence (ECMA-48) that is expected.
type escapeState uint8

const (
	noEscape  escapeState = iota
	afterESC              // ESC was read
	inControl             // ESC [ was read
)

// lineHandler takes a line or a drawing, and the arrival of its last byte: a bar waits for its next drawing
// or for a line break.
type lineHandler func(line []byte, isFinal bool, at time.Time)

// add takes the next bytes, and calls handle for every line or drawing that they complete.
func (s *splitter) add(data []byte, at time.Time, handle lineHandler) {
	for len(data) > 0 {
		if s.escape != noEscape || data[0] < ' ' {
			s.special(data[0], handle)
			data = data[1:]
			continue
		}
		n := 1
		for n < len(data) && data[n] >= ' ' {
			n++
		}
		s.at = at
		room := maxLineSize - len(s.line)
		s.line = append(s.line, data[:min(n, room)]...)
		data = data[n:]
	}
}

// special takes a control character or a byte of an escape sequence.
func (s *splitter) special(c byte, handle lineHandler) {
	switch {
	case s.escape == afterESC && c == '[':
		s.escape = inControl
	case s.escape == inControl && c >= 0x20 && c < 0x40:
	case s.escape == inControl && (c == 'A' || c == 'F' || c == 'G'): // to another line
		s.escape = noEscape
		s.end(handle, false)
	case c == '\n' || c == '\r' || c == '\b':
		s.escape = noEscape
		s.end(handle, c == '\n')
	case c == 0x1b:
		s.escape = afterESC
	case s.escape == noEscape && c == '\t' && len(s.line) < maxLineSize:
		s.line = append(s.line, c)
	default:
		s.escape = noEscape
	}
}

// end completes the line. If only the line break of a drawing is left, the final line is empty.
func (s *splitter) end(handle lineHandler, isFinal bool) {
	line := bytes.TrimSpace(s.line)
	if len(s.line) == s.shown {
		line = nil
	}
	if len(line) > 0 || isFinal && s.isOpen {
		handle(line, isFinal, s.at)
		s.isOpen = !isFinal
	}
	s.line, s.shown, s.isBar = s.line[:0], 0, !isFinal
}

// begunBar matches the drawing of a bar with nothing done, which is drawn behind the lines of the other stream.
var begunBar = regexp.MustCompile(`(?:^|[^\d.])0(?:%\||it \[)`)

// show handles a drawing that waits for its end, because the other stream goes on.
func (s *splitter) show(handle lineHandler) {
	if s.isBar && len(s.line) > s.shown && !begunBar.Match(s.line) {
		handle(bytes.TrimSpace(s.line), false, s.at)
		s.isOpen, s.shown = true, len(s.line)
	}
}

// maxExcerptBytes is the length of a line in a message.
const maxExcerptBytes = 160

// excerpt returns the beginning of a line for a message.
func excerpt(line []byte) string {
	if len(line) > maxExcerptBytes {
		return string(line[:maxExcerptBytes]) + "…"
	}
	return string(line)
}
