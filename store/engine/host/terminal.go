//go:build linux && amd64 && !noengine

package host

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// terminal is the pseudo terminal that stands in for the engine's standard
// input.
//
// It is not decoration. Engine 26.7.3 without a terminal and --interactive
// aborts the whole process when any client sends a malformed request or resets
// a connection (ClickHouse issue 115666). It may go only together with a newer
// pin, and only if the rude-client test passes without it.
type terminal struct {
	master *os.File
}

// newTerminal makes the terminal standard input of this process, and reads
// and drops what the engine writes to it (prompt, escape sequences).
func newTerminal() (*terminal, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock: %w", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("read its number: %w", err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
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

// drain ends with the process: the slave stays open as its standard input.
func (t *terminal) drain() {
	if _, err := io.Copy(io.Discard, t.master); err != nil {
		fmt.Fprintln(os.Stderr, "host: read the engine's terminal:", err)
	}
}

// endOfInput types Ctrl-D, which on an empty line ends the engine's session.
func (t *terminal) endOfInput() {
	if _, err := t.master.Write([]byte{0x04}); err != nil {
		fmt.Fprintln(os.Stderr, "host: write to the engine's terminal:", err)
	}
}
