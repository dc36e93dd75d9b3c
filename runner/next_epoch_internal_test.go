package runner

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestWallOf(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	for _, c := range []struct {
		name string
		slo  time.Duration
		end  string
		want time.Time
	}{
		{"nothing", 0, "", time.Time{}},
		{"an SLO", time.Minute, "", at.Add(time.Minute)},
		{"Slurm", 0, "1790000030", at.Add(30 * time.Second)},
		{"Slurm is earlier", time.Minute, "1790000030", at.Add(30 * time.Second)},
		{"the SLO is earlier", time.Minute, "1790000090", at.Add(time.Minute)},
		{"no number", time.Minute, "UNLIMITED", at.Add(time.Minute)},
	} {
		if got := wallOf(at, c.slo, c.end); !got.Equal(c.want) {
			t.Errorf("%s: wall %v, want %v", c.name, got, c.want)
		}
	}
}

// The probabilities are calibrated: of epochs with a probability of at least p, at least about p end
// in time, whatever the spread of a run's epochs is.
func TestEpochFit_IsCalibrated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Unix(1_790_000_000, 0)
	for _, p := range []float64{0.5, 0.8, 0.95} {
		for _, spread := range []float64{0.02, 0.1, 0.2} {
			for _, epochs := range []int{1, 2, 5, 30} {
				kept, total := 0, 4000
				for range total {
					var f epochFit
					for range epochs {
						f.add(60 * math.Exp(spread*random.NormFloat64()))
					}
					next := 60 * math.Exp(spread*random.NormFloat64())
					if next <= f.distribution().Quantile(p) {
						kept++
					}
				}
				// After few epochs, the spread of the prior still counts.
				share, tolerance := float64(kept)/float64(total), 0.03
				if epochs < 30 && spread > priorEpochSpread {
					tolerance = 0.13
				}
				if share < p-tolerance {
					t.Errorf("spread %g, %d epochs: %.3f within the quantile of %g, want at least %.3f",
						spread, epochs, share, p, p-tolerance)
				}
			}
		}
	}
	var f epochFit
	f.wall = start.Add(time.Minute)
	if p := f.probability(start); p != nil {
		t.Errorf("probability before the first epoch: %g, want unknown", *p)
	}
	f.add(60)
	f.add(math.NaN())
	f.add(-1)
	if p := f.probability(start); p == nil || *p != 0.5 {
		t.Errorf("probability of an epoch of 60 s within 60 s: %v, want 0.5", p)
	}
	if p := f.probability(start.Add(time.Hour)); p == nil || *p != 0 {
		t.Errorf("probability behind the wall: %v, want 0", p)
	}
}
