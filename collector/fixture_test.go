package collector_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
)

// patience limits how long a test waits, so that a failing test cannot hang. No machine
// is too slow for it.
const patience = 5 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

// buffer is a concurrent buffer whose content a test can wait for.
type buffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func newBuffer() *buffer { return &buffer{changed: make(chan struct{}, 1)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await waits until the buffer contains the text.
func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(b.String(), text) {
		select {
		case <-b.changed:
		case <-deadline:
			t.Fatalf("output = %q, want it to contain %q", b.String(), text)
		}
	}
}

// stored waits until n events in JOB match the subject, and returns them.
func stored(t *testing.T, b *bus.Bus, subject string, n int) []schemas.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all []schemas.Event
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: []string{subject}}
	if err := b.Follow(ctx, o, func(r bus.Record) error {
		if all = append(all, r.Event); len(all) == n {
			cancel()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) != n {
		t.Fatalf("%d events of %s, want %d", len(all), subject, n)
	}
	return all
}

// awaitFile waits until the file contains the text.
func awaitFile(t *testing.T, path, text string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), text) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s = %q, %v, want it to contain %q", path, data, err, text)
		}
	}
}
