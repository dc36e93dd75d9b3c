package halving_test

import (
	"math/rand/v2"
	"testing"

	"courier/tune/halving"
)

func TestWaves(t *testing.T) {
	for _, c := range []struct{ trials, cores, pool, want int }{
		{16, 1, 2, 8},
		{16, 2, 2, 16},
		{3, 2, 3, 3}, // one core is idle: ceil(3*2/3) = 2 would be too few
		{1, 4, 4, 1},
		{1, 5, 4, 0},
		{0, 1, 4, 0},
	} {
		if got := halving.Waves(c.trials, c.cores, c.pool); got != c.want {
			t.Errorf("Waves(%d, %d, %d) = %d, want %d", c.trials, c.cores, c.pool, got, c.want)
		}
	}
}

// With a sublinear speed-up, a full pool is best used with one core per trial, and the last trial
// with all cores.
func TestPoolFronts_SpendCoresWhereFewTrialsRemain(t *testing.T) {
	speeds := []halving.PoolSpeed{{Cores: 1, EpochSeconds: 10}, {Cores: 4, EpochSeconds: 4}}
	stages := []halving.Stage{{Trials: 8, Epochs: 1}, {Trials: 4, Epochs: 1}, {Trials: 1, Epochs: 4}}
	fronts := halving.PoolFronts(stages, speeds, 4)
	plan := fronts.Fastest()
	var cores []int
	for i, k := range plan.Options {
		cores = append(cores, fronts[i][k].Cores)
	}
	// 8 trials: 20 s with one core, 32 s with four. 4 trials: 10 and 16 s. 1 trial: 40 and 16 s.
	if plan.Seconds != 46 || plan.Cost != 80+40+64 || cores[0] != 1 || cores[1] != 1 || cores[2] != 4 {
		t.Errorf("plan %+v with %v cores, want 46 s and 184 core-seconds with 1, 1 and 4", plan, cores)
	}
	cheapest := fronts.Cheapest()
	if cheapest.Seconds != 70 || cheapest.Cost != 160 {
		t.Errorf("cheapest plan %+v, want 70 s and 160 core-seconds", cheapest)
	}
}

// In 2,000 random cases, a plan on a pool keeps its bound, is never beaten by the same cores in all
// stages by more than one step, and uses no more core-seconds than the pool has in its time.
func TestStageFronts_KeepPoolAndBound(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for n := range 2000 {
		pool := 1 + random.IntN(16)
		var speeds []halving.PoolSpeed
		for cores := 1; cores <= pool; cores *= 2 {
			speeds = append(speeds, halving.PoolSpeed{
				Cores: cores, EpochSeconds: 1 + 20*random.Float64(), StartSeconds: 2 * random.Float64(),
			})
		}
		var stages []halving.Stage
		for trials := 1 + random.IntN(64); trials > 0; trials /= 2 + random.IntN(3) {
			stages = append(stages, halving.Stage{Trials: trials, Epochs: 1 + random.IntN(8)})
		}
		fronts := halving.PoolFronts(stages, speeds, pool)
		fastest, cheapest := fronts.Fastest(), fronts.Cheapest()
		part := random.Float64()
		budget := cheapest.Cost + part*(fastest.Cost-cheapest.Cost) + 1e-9
		deadline := fastest.Seconds + part*(cheapest.Seconds-fastest.Seconds) + 1e-9
		within, err := fronts.FastestWithin(budget)
		if err != nil || within.Cost > budget {
			t.Fatalf("case %d: %+v, %v; want at most %g core-seconds", n, within, err, budget)
		}
		timely, err := fronts.CheapestWithin(deadline)
		if err != nil || timely.Seconds > deadline {
			t.Fatalf("case %d: %+v, %v; want at most %g s", n, timely, err, deadline)
		}
		for _, p := range []halving.Plan{within, timely, fastest, cheapest} {
			if p.Cost > float64(pool)*p.Seconds*(1+1e-9) {
				t.Fatalf("case %d: %g core-seconds in %g s need more than %d cores", n, p.Cost, p.Seconds, pool)
			}
		}
		if _, err := fronts.CheapestWithin(fastest.Seconds * 0.99); err == nil {
			t.Fatalf("case %d: a deadline below the shortest one, %g s, is accepted", n, fastest.Seconds)
		}
	}
}
