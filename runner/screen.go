package runner

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen writes the output of the job, messages and the progress bar to standard output and
// standard error. The output of the job is unchanged. The progress bar is one line, which is cleared
// before other output and drawn again after it, but never within a line of the job. A screen is safe
// for concurrent use.
type screen struct {
	mu         sync.Mutex
	streams    [2]io.Writer // standard output and standard error
	columns    func() int   // width of the terminal for the progress bar; nil: no progress bar
	bar        string       // text of the progress bar; empty: none
	isBarShown bool
	isMidLine  [2]bool         // the job has not completed its line on that stream
	isBroken   [2]bool         // a write to that stream failed
	isJoint    bool            // both streams are the same file
	said       map[string]bool // formats of messageOnce

	// later has the messages that wait; nil: they are printed at once. A terminal may be paused (Ctrl-S, a
	// pager). Heartbeats and cancellations must not wait for it.
	later   chan string
	nextBar atomic.Pointer[string] // nil: unchanged
	dropped atomic.Int64           // messages beyond maxQueuedTexts
	wake    chan struct{}
	printed chan struct{} // closed when the goroutine of detach has ended
}

// maxQueuedTexts bounds the messages that wait for a paused terminal.
const maxQueuedTexts = 1000

// detach starts a goroutine that prints messages and the progress bar until finish is called. Both are
// called by the goroutine of the messages, while nothing is written.
func (s *screen) detach() {
	s.later, s.wake, s.printed = make(chan string, maxQueuedTexts), make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(s.printed)
		for range s.wake {
			s.mu.Lock()
			s.printQueued()
			s.mu.Unlock()
		}
	}()
}

// finish ends the goroutine of detach, and prints the rest of the queue.
func (s *screen) finish() {
	if s.later == nil {
		return
	}
	close(s.wake)
	<-s.printed
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printQueued()
	s.later = nil
}

// notify lets the goroutine of detach print what waits.
func (s *screen) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// printQueued prints and empties the queue. The caller holds s.mu.
func (s *screen) printQueued() {
	s.drawNext()
	for range len(s.later) { // only a caller that holds s.mu receives
		text := <-s.later
		s.drawNext() // an old bar must not be shown again after the text
		s.printNow(text)
	}
	if n := s.dropped.Swap(0); n > 0 {
		s.printNow(fmt.Sprintf("courier: %d messages were dropped\n", n))
	}
}

// newScreen returns a screen. It has a progress bar if that is requested and standard error is a
// terminal.
func newScreen(stdout, stderr io.Writer, hasBar bool) *screen {
	s := &screen{streams: [2]io.Writer{stdout, stderr}, said: map[string]bool{}, isJoint: areSame(stdout, stderr)}
	if hasBar {
		s.columns = widthOf(stderr)
	}
	return s
}

// areSame reports whether two streams write to the same file, as with 2>&1.
func areSame(a, b io.Writer) bool {
	first, isFirst := a.(*os.File)
	second, isSecond := b.(*os.File)
	if !isFirst || !isSecond {
		return false
	}
	x, errX := first.Stat()
	y, errY := second.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
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

// write writes output of the job to a stream. If the stream is broken, the output is discarded and
// the job continues.
func (s *screen) write(stream int, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printQueued()
	s.clearBar()
	if !s.isBroken[stream] {
		_, err := s.streams[stream].Write(data)
		s.isBroken[stream] = err != nil
	}
	if len(data) > 0 {
		s.isMidLine[stream] = data[len(data)-1] != '\n'
	}
	s.showBar()
}

// message prints a message to the user on its own line.
func (s *screen) message(format string, values ...any) {
	s.print(fmt.Sprintf("courier: "+format+"\n", values...))
}

// messageOnce prints a message unless one with the format was printed.
func (s *screen) messageOnce(format string, values ...any) {
	if !s.said[format] {
		s.said[format] = true
		s.message(format, values...)
	}
}

// print prints complete lines to standard error.
func (s *screen) print(text string) {
	if s.later == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.printNow(text)
		return
	}
	select {
	case s.later <- text:
	default:
		s.dropped.Add(1)
	}
	s.notify()
}

func (s *screen) printNow(text string) {
	s.clearBar()
	if s.isMidLine[1] || s.isMidLine[0] && (s.isJoint || s.columns != nil) {
		text = "\n" + text
		s.isMidLine = [2]bool{}
	}
	_, _ = io.WriteString(s.streams[1], text) // a failure cannot be reported anywhere
	s.showBar()
}

// draw sets the text of the progress bar; an empty text removes it.
func (s *screen) draw(line string) {
	if s.later != nil {
		s.nextBar.Store(&line)
		s.notify()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawNow(line)
}

// drawNext draws the last bar that waits.
func (s *screen) drawNext() {
	if bar := s.nextBar.Swap(nil); bar != nil {
		s.drawNow(*bar)
	}
}

func (s *screen) drawNow(line string) {
	if line == s.bar && s.isBarShown {
		return
	}
	s.clearBar()
	s.bar = line
	s.showBar()
}

// clearBar erases the progress bar.
func (s *screen) clearBar() {
	if s.isBarShown {
		_, _ = io.WriteString(s.streams[1], "\r\x1b[K") // see print
		s.isBarShown = false
	}
}

// showBar draws the progress bar unless a line of the job is incomplete.
func (s *screen) showBar() {
	if s.columns == nil || s.bar == "" || s.isMidLine[0] || s.isMidLine[1] {
		return
	}
	_, _ = io.WriteString(s.streams[1], truncateLine(s.bar, s.columns()-1)) // see print
	s.isBarShown = true
}

// truncateLine truncates a line to a number of characters.
func truncateLine(line string, characters int) string {
	if characters <= 0 || utf8.RuneCountInString(line) <= characters {
		return line
	}
	return string([]rune(line)[:characters])
}
