package collector

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// told is a log that tests wait on. Lines that nobody takes are dropped.
type told struct{ lines chan string }

func (l *told) Write(p []byte) (int, error) {
	select {
	case l.lines <- string(p):
	default:
	}
	return len(p), nil
}

func (l *told) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// await waits for a line with this text.
func (l *told) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case line := <-l.lines:
			if strings.Contains(line, text) {
				return
			}
		case <-deadline:
			t.Fatalf("log does not say %q", text)
		}
	}
}
