package services

import (
	"fmt"
	"io"
	"strings"
	"time"

	"courier/schemas"
)

// clearLine removes the line of the cursor from a terminal.
const clearLine = "\r\x1b[K"

// ProgressBar shows the progress of a command: a line that changes on a terminal, and a line per
// step elsewhere.
type ProgressBar struct {
	Total    int  // number of steps
	Terminal bool // the output is a terminal

	out   io.Writer
	begin time.Time
}

// NewProgressBar returns a bar of that many steps. It draws nothing yet.
func NewProgressBar(out io.Writer, total int) *ProgressBar {
	return &ProgressBar{
		Total:    total,
		Terminal: IsTerminal(out),
		out:      out,
		begin:    time.Now(),
	}
}

// Draw shows the number of completed steps, with a text about the current one.
func (b *ProgressBar) Draw(done int, text string) {
	const width = 24
	full := width * done / b.Total
	elapsed := time.Since(b.begin).Round(time.Second).Seconds()
	line := fmt.Sprintf("   [%s%s] %d/%d %s, %s",
		strings.Repeat("#", full), strings.Repeat(".", width-full),
		done, b.Total, text, schemas.FormatSeconds(elapsed))
	if b.Terminal {
		fmt.Fprint(b.out, clearLine+truncated(line, b.out))
	} else {
		fmt.Fprintln(b.out, line)
	}
}

// truncated returns a line without the end that would wrap on a terminal.
func truncated(line string, out io.Writer) string {
	columns := TerminalWidth(out)
	if runes := []rune(line); columns > 1 && len(runes) >= columns {
		return string(runes[:columns-1])
	}
	return line
}

// End keeps the last line on the terminal.
func (b *ProgressBar) End() {
	if b.Terminal {
		fmt.Fprintln(b.out)
	}
}

// Clear removes the bar from a terminal.
func (b *ProgressBar) Clear() {
	if b.Terminal {
		fmt.Fprint(b.out, clearLine)
	}
}

// Messages returns a function that prints a line on stderr. On a terminal the line replaces the
// progress bar.
func Messages(stderr io.Writer) func(format string, args ...any) {
	start := ""
	if IsTerminal(stderr) {
		start = clearLine
	}
	return func(format string, args ...any) {
		fmt.Fprintf(stderr, start+format+"\n", args...)
	}
}

// StepBar draws a bar for each step of a long task, on a terminal.
type StepBar struct {
	Out io.Writer

	step  string
	bar   *ProgressBar
	drawn time.Time
}

// Draw shows the progress of a step, at most ten times a second.
func (p *StepBar) Draw(step string, done, total uint64) {
	if total == 0 || !IsTerminal(p.Out) {
		return
	}
	if p.step != step {
		p.step, p.bar = step, NewProgressBar(p.Out, int(total))
	} else if time.Since(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn = time.Now()
	p.bar.Total = int(total)
	p.bar.Draw(int(min(done, total)), step)
}

// End removes the bar.
func (p *StepBar) End() {
	if p.bar != nil {
		p.bar.Clear()
	}
}
