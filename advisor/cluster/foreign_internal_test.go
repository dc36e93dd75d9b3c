package cluster

import (
	"testing"
	"time"

	"courier/schemas"
)

func TestRecentMean_FollowsTheMeasurements(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	m := RecentMean{}
	for range 12 {
		m.add(schemas.RatioOf(0), 5, at)
		at = at.Add(5 * time.Second)
	}
	for n, want := range []float64{0.2, 0.3, 0.4, 0.5, 0.6} { // 1 - exp(-5n/20) of 0.8, rounded
		m.add(schemas.RatioOf(0.8), 5, at)
		if got := m.Ratio(at); got != schemas.RatioOf(want) {
			t.Errorf("after %d samples: %+v, want %g", n+1, got, want)
		}
		at = at.Add(5 * time.Second)
	}
	m.add(schemas.Ratio{}, 5, at)
	if got := m.Ratio(at); got != schemas.RatioOf(0.6) {
		t.Errorf("after an unknown measurement: %+v, want no change", got)
	}
}
