package runner

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// screen writes the output of the job, messages and the progress bar to standard output and
// standard error. The output of the job is unchanged, except on a terminal that is narrower than
// that of the job. The progress bar is one line, which is
// cleared before other output and drawn again after it, but never within a line of the job. A
// screen is safe for concurrent use.
type screen struct {
	mu         sync.Mutex
	streams    [2]io.Writer // standard output and standard error
	columns    func() int   // width of the terminal for the progress bar; nil: no progress bar
	bar        string       // text of the progress bar; empty: none
	isBarShown bool
	isMidLine  [2]bool // the job has not completed its line on that stream
	isBroken   [2]bool // a write to that stream failed

	width  func() int // width of the terminal at standard output; nil: it is no terminal
	narrow narrower   // of the job's terminal, which may be wider

	later atomic.Pointer[printQueue] // messages and progress bar; nil: they are printed at once
}

// printQueue holds messages and the progress bar until they are printed. A terminal may be paused (Ctrl-S,
// a pager). Heartbeats and cancellations must not wait for it.
type printQueue struct {
	mu      sync.Mutex
	texts   []string
	dropped int     // messages beyond maxQueuedTexts
	bar     *string // new text of the progress bar; nil: unchanged
	isEnded bool    // wake is closed
	wake    chan struct{}
	printed chan struct{} // closed when the goroutine has ended
}

// maxQueuedTexts bounds the messages that wait for a paused terminal.
const maxQueuedTexts = 1000

// add queues a message, or a text of the progress bar. It reports false if the queue has ended.
func (q *printQueue) add(text string, bar *string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.isEnded:
		return false
	case bar != nil:
		q.bar = bar
	case len(q.texts) < maxQueuedTexts:
		q.texts = append(q.texts, text)
	default:
		q.dropped++
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// end ends the goroutine, and waits for it.
func (q *printQueue) end() {
	q.mu.Lock()
	q.isEnded = true
	close(q.wake)
	q.mu.Unlock()
	<-q.printed
}

// take empties the queue.
func (q *printQueue) take() (texts []string, bar *string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	texts, bar = q.texts, q.bar
	if q.dropped > 0 {
		texts = append(texts, fmt.Sprintf("courier: %d messages were dropped\n", q.dropped))
	}
	q.texts, q.dropped, q.bar = nil, 0, nil
	return texts, bar
}

// detach starts a goroutine that prints messages and the progress bar until finish is called.
func (s *screen) detach() {
	q := &printQueue{wake: make(chan struct{}, 1), printed: make(chan struct{})}
	s.later.Store(q)
	go func() {
		defer close(q.printed)
		for range q.wake {
			s.mu.Lock()
			s.printQueued(q)
			s.mu.Unlock()
		}
	}()
}

// finish ends the goroutine of detach, and prints the rest of the queue.
func (s *screen) finish() {
	q := s.later.Swap(nil)
	if q == nil {
		return
	}
	q.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printQueued(q)
}

// printQueued prints and empties the queue. The caller holds s.mu.
func (s *screen) printQueued(q *printQueue) {
	texts, bar := q.take()
	if bar != nil { // first: an old bar must not be shown again after a text
		s.drawNow(*bar)
	}
	for _, text := range texts {
		s.printNow(text)
	}
}

// newScreen returns a screen. It has a progress bar if that is requested and standard error is a
// terminal.
func newScreen(stdout, stderr io.Writer, hasBar bool) *screen {
	s := &screen{streams: [2]io.Writer{stdout, stderr}}
	if hasBar {
		s.columns = widthOf(stderr)
	}
	s.width = widthOf(stdout)
	return s
}

// write writes output of the job to a stream. If the stream is broken, the output is discarded and
// the job continues.
func (s *screen) write(stream int, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.later.Load(); q != nil {
		s.printQueued(q)
	}
	s.clearBar()
	if s.width != nil && stream == 0 {
		if columns := s.width(); columns > 0 && columns < minJobColumns {
			data = s.narrow.cut(data, columns)
		}
	}
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

// print prints complete lines to standard error.
func (s *screen) print(text string) {
	if q := s.later.Load(); q != nil && q.add(text, nil) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printNow(text)
}

func (s *screen) printNow(text string) {
	s.clearBar()
	if s.isMidLine[1] || s.isMidLine[0] && s.columns != nil {
		text = "\n" + text
		s.isMidLine = [2]bool{}
	}
	_, _ = io.WriteString(s.streams[1], text) // a failure cannot be reported anywhere
	s.showBar()
}

// draw sets the text of the progress bar; an empty text removes it.
func (s *screen) draw(line string) {
	if q := s.later.Load(); q != nil && q.add("", &line) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawNow(line)
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
