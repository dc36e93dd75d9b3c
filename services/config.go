package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/term"
)

// NewLogger returns a logger that writes to w. The format is "text", "json", or "auto": text on a
// terminal, and JSON elsewhere.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch {
	case format == "text", format == "auto" && IsTerminal(w):
		return slog.New(slog.NewTextHandler(w, o)), nil
	case format == "json", format == "auto":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("--log-format %q: want auto, text or json", format)
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TerminalWidth returns the number of columns of w; 0 if it is no terminal.
func TerminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, _ := term.GetSize(int(f.Fd())) // 0 with an error
	return columns
}

// Port is the value of a port flag.
type Port struct {
	Flag    string // for messages, such as "--http-port"
	Given   int    // 0: any free one; -1: not given, use Default
	Default int
	Last    int // port of the previous process, whose clients may still use it; 0: none
}

// Listen listens on a port of host. Without a given port it prefers the port of the previous process. If
// that or the default port is in use, Listen takes another and describes that in note. If a given port is in
// use, it returns an error that names the flag.
func (p Port) Listen(ctx context.Context, host string) (l net.Listener, note string, err error) {
	listen := func(port int) (net.Listener, error) {
		var lc net.ListenConfig
		return lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	}
	if p.Given <= 0 && p.Last > 0 {
		if l, err = listen(p.Last); err == nil {
			return l, "", nil
		}
	}

	port := p.Given
	if port < 0 {
		port = p.Default
	}
	l, err = listen(port)
	isUsed := errors.Is(err, syscall.EADDRINUSE)
	if isUsed && p.Given >= 0 {
		return nil, "", fmt.Errorf("%s %d is in use: set another, or 0 for any free one", p.Flag, port)
	}
	if isUsed {
		l, err = listen(0)
	}
	if err != nil {
		return nil, "", fmt.Errorf("listen on %s %d: %w", p.Flag, port, err)
	}
	wanted, used := port, l.Addr().(*net.TCPAddr).Port
	if p.Given <= 0 && p.Last > 0 {
		wanted = p.Last
	}
	if wanted != 0 && used != wanted {
		note = fmt.Sprintf("port %d is in use, using another (%s)", wanted, p.Flag)
	}
	return l, note, nil
}

// Choose is Listen for a server that listens by itself. Where the system would choose, port is 0: until the
// server listens, another program could take a port that was free.
func (p Port) Choose(ctx context.Context, host string) (port int, note string, err error) {
	l, note, err := p.Listen(ctx, host)
	if err != nil {
		return 0, "", err
	}
	port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, "", fmt.Errorf("release %s %d after the check: %w", p.Flag, port, err)
	}
	if !slices.Contains([]int{p.Given, p.Default, p.Last}, port) {
		port = 0
	}
	return port, note, nil
}
