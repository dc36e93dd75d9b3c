package spool

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// patience limits how long a test waits, so that a failing test cannot hang. No machine
// is too slow for it.
const patience = 5 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// logBuffer is a log that a test can wait on. Lines that do not fit are dropped.
type logBuffer struct{ lines chan string }

func newLogBuffer() *logBuffer { return &logBuffer{lines: make(chan string, 100)} }

func (l *logBuffer) Write(p []byte) (int, error) {
	select {
	case l.lines <- string(p):
	default:
	}
	return len(p), nil
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// await waits for a line that contains the text.
func (l *logBuffer) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line := <-l.lines:
			if strings.Contains(line, text) {
				return
			}
		case <-deadline:
			t.Fatalf("the log does not contain %q", text)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
