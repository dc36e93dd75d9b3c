package bustest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Buffer collects the output or the log of a program, and lets a test wait for a text in it. It is
// safe for concurrent use.
type Buffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

// NewBuffer returns an empty buffer.
func NewBuffer() *Buffer { return &Buffer{changed: make(chan struct{}, 1)} }

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

// String returns everything that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Await waits until the buffer contains the text.
func (b *Buffer) Await(t testing.TB, text string) {
	t.Helper()
	b.AwaitThat(t, "contain "+text, func(all string) bool { return strings.Contains(all, text) })
}

// AwaitThat waits until the content satisfies a condition, which want describes.
func (b *Buffer) AwaitThat(t testing.TB, want string, is func(all string) bool) {
	t.Helper()
	deadline := time.After(patience)
	for !is(b.String()) {
		select {
		case <-b.changed:
		case <-deadline:
			t.Fatalf("output = %q, want it to %s", b.String(), want)
		}
	}
}
