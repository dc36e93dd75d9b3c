package collector

import (
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// screen is where the job's output, our messages and the progress bar meet. The
// job's bytes pass unchanged; the bar is one line that is cleared before them
// and drawn again behind them, never within a line of theirs. It is safe for
// several goroutines.
type screen struct {
	mu      sync.Mutex
	streams [2]io.Writer // standard output and standard error
	columns func() int   // width of the terminal that the bar is drawn on; nil: no bar
	bar     string       // the line to show; "" for none
	shown   bool         // it is on the screen
	within  [2]bool      // the job is within a line on that stream
	broken  [2]bool      // nobody reads that stream any more
}

// newScreen returns a screen. The bar is drawn if asked for and standard error
// is a terminal.
func newScreen(stdout, stderr io.Writer, bar bool) *screen {
	s := &screen{streams: [2]io.Writer{stdout, stderr}}
	if _, isTerminal := columnsOf(stderr); isTerminal && bar {
		s.columns = func() int { columns, _ := columnsOf(stderr); return columns }
	}
	return s
}

// write passes what the job printed on a stream. Where nobody reads it any
// more, the job goes on unseen.
func (s *screen) write(stream int, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if !s.broken[stream] {
		_, err := s.streams[stream].Write(data)
		s.broken[stream] = err != nil
	}
	s.within[stream] = data[len(data)-1] != '\n'
	s.show()
}

// say writes a message of ours on a line of its own.
func (s *screen) say(format string, values ...any) {
	s.print(fmt.Sprintf("courier: "+format+"\n", values...))
}

// print writes text of ours, whole lines, to standard error.
func (s *screen) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if s.within[1] || s.within[0] && s.columns != nil {
		text = "\n" + text
		s.within = [2]bool{}
	}
	_, _ = io.WriteString(s.streams[1], text) // nobody reads it: there is no one to tell
	s.show()
}

// draw shows the line as the progress bar from now on; "" takes it away. While
// somebody holds the terminal still, it does not wait.
func (s *screen) draw(line string) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if line == s.bar && s.shown {
		return
	}
	s.clear()
	s.bar = line
	s.show()
}

// close takes the bar away for good.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.bar = ""
}

// clear takes the bar from the screen.
func (s *screen) clear() {
	if s.shown {
		_, _ = io.WriteString(s.streams[1], "\r\x1b[K") // as in print
		s.shown = false
	}
}

// show draws the bar unless the job is within a line.
func (s *screen) show() {
	if s.columns == nil || s.bar == "" || s.within[0] || s.within[1] {
		return
	}
	_, _ = io.WriteString(s.streams[1], shorten(s.bar, s.columns()-1)) // as in print
	s.shown = true
}

// shorten cuts a line to a number of characters.
func shorten(line string, characters int) string {
	if characters <= 0 || utf8.RuneCountInString(line) <= characters {
		return line
	}
	return string([]rune(line)[:characters])
}
