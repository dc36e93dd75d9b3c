package explore_test

import (
	"strings"
	"testing"
	"time"

	"courier/explore"
)

// The time that is left is an upper bound, so that it is never 0 before a block.
func TestProgress_RoundsTheTimeUp(t *testing.T) {
	for left, want := range map[time.Duration]string{
		10 * time.Millisecond:    "at most 0.01 s left",
		2 * time.Second:          "at most 2 s left",
		61500 * time.Millisecond: "at most 61.5 s left",
	} {
		p := explore.Progress{Total: 4, Done: 1, Left: left}
		if text := p.Text(); !strings.Contains(text, want) {
			t.Errorf("text %q, want %q", text, want)
		}
	}
}
