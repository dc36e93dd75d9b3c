package runner

import (
	"io"
	"os"

	"golang.org/x/term"
)

// windowSize is the size of a terminal.
type windowSize struct{ rows, columns uint16 }

// minJobColumns is the minimum width of the job's terminal. Progress bars leave out their metrics
// on a narrower one. A wider one would make their bars longer and push the metrics out of sight.
const minJobColumns = 100

// widened returns the size of the job's terminal for a terminal of the user.
func (w windowSize) widened() windowSize {
	w.columns = max(w.columns, minJobColumns)
	return w
}

// widthOf returns what reads the width of a terminal; nil if w is not a terminal.
func widthOf(w io.Writer) func() int {
	f, isFile := w.(*os.File)
	if !isFile || f == nil || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() int {
		columns, _, _ := term.GetSize(int(f.Fd())) // 0 if it is closed
		return columns
	}
}

// narrower cuts the drawings of progress bars to the width of the user's terminal. A drawing that
// wrapped would not be overwritten by the next one. Other lines are unchanged.
type narrower struct {
	column   int  // visible characters of the line so far
	isDrawn  bool // the line is drawn again: \r, \b or a cursor movement came before it
	escape   int  // bytes of the current escape sequence; 0: none
	isCut    bool // the current character is left out
	inString bool // the escape sequence ends with BEL or ESC \
}

// cut returns data without the characters of drawings beyond a width.
func (n *narrower) cut(data []byte, columns int) []byte {
	kept := make([]byte, 0, len(data))
	for _, b := range data {
		if n.keeps(b, columns) {
			kept = append(kept, b)
		}
	}
	return kept
}

// keeps takes the next byte, and reports whether it is written.
func (n *narrower) keeps(b byte, columns int) bool {
	const escape = 0x1b
	switch {
	case n.escape > 0:
		n.continueEscape(b)
	case b == escape:
		n.escape = 1
	case b == '\n':
		n.column, n.isDrawn = 0, false
	case b == '\r':
		n.column, n.isDrawn = 0, true
	case b == '\b':
		n.column, n.isDrawn = max(0, n.column-1), true
	case b < ' ': // other control characters have no width
	case b&0xc0 == 0x80: // the rest of a UTF-8 character
		return !n.isCut
	default:
		n.isCut = n.isDrawn && n.column >= columns
		if !n.isCut {
			n.column++
		}
		return !n.isCut
	}
	return true
}

// continueEscape takes a byte of an escape sequence (ECMA-48).
func (n *narrower) continueEscape(b byte) {
	n.escape++
	switch {
	case n.escape == 2 && b == '[': // a control sequence ends with a byte from @ to ~
	case n.escape == 2 && b == ']':
		n.inString = true
	case n.inString:
		if b == 0x07 || b == '\\' {
			n.escape, n.inString = 0, false
		}
	case n.escape == 2 || b >= '@' && b <= '~':
		if b == 'A' || b == 'F' { // the cursor moves up
			n.isDrawn = true
		}
		n.escape = 0
	}
}
