package runner

import (
	"testing"
	"time"
)

// The events of a run keep their order and their intervals when the clock of the node is put back, and
// follow the clock when it is put forward.
func TestAfterStamp_DoesNotGoBack(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	last, clock := time.Time{}, noon
	for i, step := range []struct{ elapsed, clock, want time.Duration }{
		{0, 0, 0},
		{10 * time.Second, 10 * time.Second, 10 * time.Second},
		{10 * time.Second, -time.Hour, 20 * time.Second},
		{10 * time.Second, -time.Hour + 10*time.Second, 30 * time.Second},
		{10 * time.Second, time.Hour, time.Hour},
	} {
		clock = noon.Add(step.clock)
		last = afterStamp(last, step.elapsed, clock)
		if got := last.Sub(noon); got != step.want {
			t.Errorf("event %d, when the clock shows %s, is stamped %s after noon, want %s", i,
				clock.Format(time.TimeOnly), got, step.want)
		}
	}
}
