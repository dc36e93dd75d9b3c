package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"courier/schemas"
	"courier/services"
)

// bar is a progress bar on a terminal, and a line per step elsewhere.
type bar struct {
	out      io.Writer
	total    int
	begin    time.Time
	terminal bool
}

func newBar(out io.Writer, total int) *bar {
	return &bar{out: out, total: total, begin: time.Now(), terminal: services.IsTerminal(out)}
}

func (b *bar) draw(done int, what string) {
	const width = 24
	full := width * done / b.total
	line := fmt.Sprintf("   [%s%s] %d/%d %s, %s", stringOf('#', full), stringOf('.', width-full), done, b.total, what, schemas.FormatSeconds(time.Since(b.begin).Round(time.Second).Seconds()))
	if b.terminal {
		fmt.Fprintf(b.out, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(b.out, line)
	}
}

func (b *bar) end() {
	if b.terminal {
		fmt.Fprintln(b.out)
	}
}

func stringOf(c byte, n int) string { return string(slices.Repeat([]byte{c}, n)) }
