package advisor

import (
	"math"
	"testing"
	"time"

	"courier/advisor/cluster"
	"courier/bus"
	"courier/schemas"
)

// runningSince returns a state with running jobs with these first sequences; the job with sequence
// s started s minutes after noon.
func runningSince(firsts ...uint64) *cluster.Cluster {
	c := cluster.New()
	for _, first := range firsts {
		id := string(rune('a' + first%26))
		started := noon.Add(time.Duration(first) * time.Minute)
		e := &schemas.Started{JobStamp: stampOf(id, schemas.StartedID(id, 1), 1)}
		e.At = started
		c.Apply(e, first, started)
	}
	return c
}

var noon = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

const gibibyte = 1 << 30

// The log has 100 events of 1 GiB, with sequences 1 to 100.
func TestLogNeed(t *testing.T) {
	whole := bus.StreamInfo{
		First: 1, Last: 100, Messages: 100, Bytes: 100 * gibibyte, MaxBytes: 200 * gibibyte,
		MaxAge: 1000 * time.Minute,
	}
	half := whole
	half.First, half.Messages, half.Bytes = 51, 50, 50*gibibyte
	endless := whole
	endless.MaxBytes, endless.MaxAge = -1, 0
	for _, c := range []struct {
		name     string
		c        *cluster.Cluster
		place    bus.StreamInfo
		first    uint64
		gib      float64
		since    time.Duration
		headroom float64
	}{
		{"no job runs", runningSince(), whole, 0, 0, 0, 1},
		{"since a fifth of the log", runningSince(81, 90), whole, 81, 40, 19 * time.Minute, 0.9},
		{"since its begin", runningSince(1, 90), whole, 1, 200, 99 * time.Minute, 0.5},
		{"its first events are dropped", runningSince(41), half, 41, 120, 59 * time.Minute, 0},
		{"without a limit", runningSince(1), endless, 1, 200, 99 * time.Minute, 1},
		{"recorded a moment ago", runningSince(101), whole, 0, 0, 0, 1},
	} {
		a := &Advisor{cluster: c.c}
		n := a.logNeed(c.place, noon.Add(100*time.Minute))
		if n.first != c.first || n.bytes != c.gib*gibibyte || n.since != c.since {
			t.Errorf("%s: got need %+v, want %g GiB from event %d, for %s", c.name, n, c.gib, c.first, c.since)
		}
		if got := logHeadroom(c.place, n); math.Abs(got-c.headroom) > 1e-9 {
			t.Errorf("%s: headroom %g, want %g", c.name, got, c.headroom)
		}
	}
}
