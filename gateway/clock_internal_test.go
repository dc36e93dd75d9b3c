package gateway

import (
	"testing"
	"time"

	"courier/schemas"
)

func TestClockLag(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name string
		lags []time.Duration // a sample each ten seconds
		want float64         // 0: the clock is right
	}{
		{"right", []time.Duration{s / 100, s / 10, s / 50}, 0},
		{"right, and one sample was delayed", []time.Duration{40 * s, s / 10, 30 * s}, 0},
		{"samples of an outage arrive late, then live ones", []time.Duration{600 * s, 300 * s, s / 5}, 0},
		{"an hour slow", []time.Duration{3600 * s, 3601 * s, 3605 * s}, 3600},
		{"three seconds fast", []time.Duration{-3 * s, -3*s + s/20, 2 * s}, -3},
		{"set right by a minute ago", append([]time.Duration{-60 * s, -60 * s}, make([]time.Duration, 20)...), 0},
	} {
		var l clockLag
		at := noon
		for _, lag := range c.lags {
			l.add(lag, at)
			at = at.Add(10 * s)
		}
		got := 0.0
		if v := l.seconds(); v != nil {
			got = *v
		}
		if got != c.want {
			t.Errorf("%s: lag %v s, want %v", c.name, got, c.want)
		}
	}
}

// The clock of a node that is silent does not count.
func TestNodeTable_SkewOfLiveNodes(t *testing.T) {
	table := newNodeTable()
	for node, lag := range map[string]time.Duration{"fast": -3 * time.Second, "slow": 40 * time.Second} {
		s := &schemas.Sample{Node: node, IntervalSeconds: 2}
		s.At = noon.Add(-lag)
		table.apply(s, noon)
	}
	gone := &schemas.Sample{Node: "gone", IntervalSeconds: 2}
	gone.At = noon.Add(time.Hour)
	table.apply(gone, noon.Add(-time.Hour))
	ahead, behind := table.skew(noon.Add(time.Second))
	if ahead != 3*time.Second || behind != 40*time.Second {
		t.Errorf("clocks are %s ahead and %s behind, want 3 s and 40 s", ahead, behind)
	}
}
