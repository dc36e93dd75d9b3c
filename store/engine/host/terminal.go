//go:build linux && amd64 && !noengine

package host

import (
	"fmt"
	"io"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminal is the pseudo terminal that serves as the engine's standard input.
//
// Without a terminal and --interactive, engine 26.7.3 aborts the process when a client sends a
// malformed request or resets a connection (ClickHouse issue 115666). It may be removed when a
// newer engine is pinned and the test with rude clients passes without it.
type terminal struct {
	master *os.File
}

// newTerminal makes the terminal the standard input of this process, and discards the engine's
// output to it (prompt, escape sequences).
func newTerminal() (*terminal, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if err := unix.Dup2(int(slave.Fd()), 0); err != nil {
		return nil, fmt.Errorf("make it standard input: %w", err)
	}
	t := &terminal{master: master}
	go t.drain()
	return t, nil
}

// drain reads until the process ends: the slave stays open as standard input.
func (t *terminal) drain() {
	if _, err := io.Copy(io.Discard, t.master); err != nil {
		fmt.Fprintln(os.Stderr, "host: read the engine's terminal:", err)
	}
}

// endOfInput writes Ctrl-D, which on an empty line ends the engine's session.
func (t *terminal) endOfInput() {
	if _, err := t.master.Write([]byte{0x04}); err != nil {
		fmt.Fprintln(os.Stderr, "host: write to the engine's terminal:", err)
	}
}
