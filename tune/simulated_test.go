package tune_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"courier/tune"
)

// simulatedTraining is a simulated training command on a pool of CPUs. Its time is that of a bubble of
// testing/synctest.
type simulatedTraining struct {
	seconds  func(trial, cpus int) float64 // of an epoch
	start    float64                       // seconds of a start
	restarts bool                          // it cannot continue
	fails    func(g tune.Segment) bool     // after its first epoch
	accuracy func(trial, epoch int) float64

	mu       sync.Mutex
	inUse    int // CPUs
	most     int // CPUs in use at once
	cost     float64
	ended    time.Time
	segments []tune.Segment
	stopped  int
}

// accuracyOf is a figure by which the trial with the largest number is the best one.
func accuracyOf(trial, epoch int) float64 {
	return float64(trial) / (float64(trial) + 10) * (1 - math.Exp(-float64(epoch)))
}

func (c *simulatedTraining) use(g tune.Segment, cpus int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cpus > 0 {
		c.segments = append(c.segments, g)
	}
	c.inUse += cpus
	c.most = max(c.most, c.inUse)
}

// Measure is a tune.Measure.
func (c *simulatedTraining) Measure(
	ctx context.Context, g tune.Segment, _ []string, report func(tune.TrialEpoch),
) (tune.Ending, error) {
	begin := time.Now()
	c.use(g, g.CPUs)
	ending := tune.Ending{Outcome: tune.OutcomeDone}
	pass := func(seconds float64) bool {
		select {
		case <-time.After(time.Duration(seconds * float64(time.Second))):
			return true
		case <-ctx.Done():
			ending.Outcome = tune.OutcomeStopped
			return false
		}
	}
	first := g.From + 1
	if c.restarts {
		first = 1
	}
	accuracy := c.accuracy
	if accuracy == nil {
		accuracy = accuracyOf
	}
	isRunning := pass(c.start)
	for epoch := first; isRunning && epoch <= g.Epochs; epoch++ {
		seconds := c.seconds(g.Trial, g.CPUs)
		if isRunning = pass(seconds); !isRunning {
			break
		}
		report(tune.TrialEpoch{Number: epoch, Seconds: seconds, Accuracy: new(accuracy(g.Trial, epoch))})
		if c.fails != nil && c.fails(g) {
			ending.Outcome, ending.Reason, isRunning = tune.OutcomeFailed, "out of memory", false
		}
	}
	ending.Seconds = time.Since(begin).Seconds()
	c.use(g, -g.CPUs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cost += ending.Seconds * float64(g.CPUs)
	c.ended = time.Now()
	if ending.Outcome == tune.OutcomeStopped {
		c.stopped++
	}
	return ending, nil
}

// simulate runs a tuning of a simulated command in a directory.
func simulate(t *testing.T, dir string, o tune.Options, c *simulatedTraining) (*tune.Ranking, error) {
	t.Helper()
	tuning, err := tune.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	ranking, err := tuning.Run(t.Context(), c.Measure, nil)
	if closeErr := tuning.Close(); closeErr != nil {
		t.Fatal(closeErr)
	}
	return ranking, err
}

func tuningOptions() tune.Options {
	return tune.Options{
		Command: []string{"train", "{lr}", "{dir}"},
		Space:   tune.Space{{Name: "lr", Low: 1, High: 2}},
		Trials:  16,
		Epochs:  16,
		CPUs:    []int{1, 2, 4},
		Pool:    4,
	}
}

// amdahl returns the seconds of an epoch of which a part is not sped up by CPUs.
func amdahl(serial, parallel float64) func(trial, cpus int) float64 {
	return func(_, cpus int) float64 { return serial + parallel/float64(cpus) }
}

// Synchronous halving runs 16, 8, 4, 2 and 1 trials for 1, 1, 2, 4 and 8 epochs, keeps the best ones,
// and takes exactly the predicted time and cost from the second stage on.
func TestTuning_HalvesAndPredicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &simulatedTraining{seconds: amdahl(2, 8)}
		r, err := simulate(t, t.TempDir(), tuningOptions(), c)
		if err != nil || r.Reason != "every stage is done" || r.Trials[0].Trial != 16 || r.Trials[0].Epochs != 16 {
			t.Fatalf("%+v, %v; want trial 16 to be the best after 16 epochs", r, err)
		}
		for i, want := range []struct{ trials, cpus int }{{16, 1}, {8, 1}, {4, 1}, {2, 2}, {1, 4}} {
			s := r.Stages[i]
			if s.Trials != want.trials || s.PlannedTrials != want.trials || s.CPUs != want.cpus {
				t.Errorf("stage %+v, want %d trials of %d CPUs", s, want.trials, want.cpus)
			}
			if i > 0 && (math.Abs(s.Seconds-s.PredictedSeconds) > 1e-6 ||
				math.Abs(s.CoreSeconds-s.PredictedCoreSeconds) > 1e-6) {
				t.Errorf("stage %+v, want what was predicted", s)
			}
		}
		if c.most > 4 {
			t.Errorf("%d CPUs at once, want at most 4", c.most)
		}
		for i := 1; i < len(r.Trials); i++ {
			if *r.Trials[i].Accuracy > *r.Trials[i-1].Accuracy {
				t.Errorf("rank %d is better than rank %d", i+1, i)
			}
		}
	})
}

// A command that starts from the beginning is planned with all of its epochs.
func TestTuning_CountsRepeatedEpochs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := tuningOptions()
		c := &simulatedTraining{seconds: amdahl(0, 10), restarts: true}
		r, err := simulate(t, t.TempDir(), o, c)
		if err != nil {
			t.Fatal(err)
		}
		best := r.Trials[0]
		if best.Epochs != 16 || best.SpentEpochs != 1+2+4+8+16 {
			t.Errorf("the best trial %+v, want 16 epochs and 31 spent ones", best)
		}
		last := r.Stages[4]
		if math.Abs(last.PredictedSeconds-last.Seconds) > 1e-6 || math.Abs(last.Seconds-40) > 1e-6 {
			t.Errorf("the last stage %+v, want 16 epochs of 2.5 s", last)
		}
	})
}

// Failed trials are out with their reason, and their epochs and times count.
func TestTuning_LeavesOutFailedTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := tuningOptions()
		c := &simulatedTraining{seconds: amdahl(2, 8), fails: func(g tune.Segment) bool {
			return g.Trial == 16 && g.Stage == 3 || g.Trial%5 == 0
		}}
		r, err := simulate(t, t.TempDir(), o, c)
		if err != nil || r.Trials[0].Trial != 14 {
			t.Fatalf("%+v, %v; want trial 14 to be the best", r, err)
		}
		spent, out := 0.0, 0
		for _, row := range r.Trials {
			spent += row.CoreSeconds
			if row.Reason == "out of memory" && row.Rank == 0 && row.SpentEpochs > 0 {
				out++
			}
		}
		if out != 4 || math.Abs(spent-c.cost) > 1e-6 || math.Abs(r.CoreSeconds-c.cost) > 1e-6 {
			t.Errorf("%d failed trials, %g and %g of %g core-seconds; want 4 and all", out, spent,
				r.CoreSeconds, c.cost)
		}
	})
}

func TestTuning_EndsIfTheFirstTrialsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &simulatedTraining{seconds: amdahl(1, 0), fails: func(tune.Segment) bool { return true }}
		if _, err := simulate(t, t.TempDir(), tuningOptions(), c); err == nil ||
			len(c.segments) > 8 {
			t.Errorf("%v after %d segments, want an early error", err, len(c.segments))
		}
	})
}

// A bound that is too small for all stages is used up, with the one that suffices, and the same directory
// continues with a larger one.
func TestTuning_NamesTheBoundThatSuffices(t *testing.T) {
	for name, set := range map[string]func(*tune.Options, float64){
		"--max-time ": func(o *tune.Options, ratio float64) {
			o.MaxTime = time.Duration(ratio * 100 * float64(time.Second))
		},
		"--budget ": func(o *tune.Options, ratio float64) { o.Budget = ratio * 400 / 3600 },
	} {
		synctest.Test(t, func(t *testing.T) {
			o, dir := tuningOptions(), t.TempDir()
			c := &simulatedTraining{seconds: amdahl(2, 8)}
			set(&o, 1)
			r, err := simulate(t, dir, o, c)
			var incomplete *tune.IncompleteTuning
			if !errors.As(err, &incomplete) || !strings.HasPrefix(incomplete.Needs, name) || r == nil ||
				r.Complete || r.Trials[0].Epochs == 0 {
				t.Fatalf("%s: %+v, %v, want what ran and the bound that suffices", name, r, err)
			}
			set(&o, 4)
			r, err = simulate(t, dir, o, c)
			if err != nil || r.Reason != "every stage is done" {
				t.Errorf("%s: %+v, %v with four times the bound, want a complete tuning", name, r, err)
			}
		})
	}
}

// A tuning that becomes slower than measured ends at its bound with the best so far, and a larger bound
// continues it.
func TestTuning_EndsAtItsBoundWithTheBestSoFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, dir := tuningOptions(), t.TempDir()
		o.MaxTime, o.CPUs = 400*time.Second, []int{1}
		begin := time.Now()
		c := &simulatedTraining{seconds: func(trial, cpus int) float64 {
			if time.Since(begin) > 100*time.Second && time.Since(begin) < 400*time.Second {
				return 100
			}
			return amdahl(2, 8)(trial, cpus)
		}}
		r, err := simulate(t, dir, o, c)
		if err != nil || r.Complete || r.StagesDone >= 5 || len(r.Trials) == 0 {
			t.Fatalf("%+v, %v; want the best of an incomplete tuning", r, err)
		}
		var text strings.Builder
		r.WriteText(&text)
		for _, want := range []string{" of 5 stages done: --max-time 6m40s", "\nbest so far, after "} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the text has no %q:\n%s", want, &text)
			}
		}

		o.MaxTime = time.Hour
		if r, err = simulate(t, dir, o, c); err != nil || !r.Complete || r.StagesDone != 5 {
			t.Errorf("%+v, %v with a larger bound; want a complete tuning", r, err)
		}
	})
}

// Before an epoch was measured, the bound that suffices is unknown.
func TestTuning_EndsBeforeAnEpochWasMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := tuningOptions()
		o.MaxTime = time.Second
		c := &simulatedTraining{seconds: amdahl(10, 0)}
		r, err := simulate(t, t.TempDir(), o, c)
		want := "--max-time 1s is used up before the time of an epoch was measured"
		var none *tune.NoResult
		if !errors.As(err, &none) || r == nil || none.Reason != want || r.Reason != want || c.stopped != 4 {
			t.Errorf("%+v, %v with %d stopped trials; want the reason %q and 4", r, err, c.stopped, want)
		}
	})
}

// A tuning whose trials all fail, some of them in a later stage, has no result.
func TestTuning_HasNoResultWithoutATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := tuningOptions()
		o.Trials = 2
		r, err := simulate(t, t.TempDir(), o, &simulatedTraining{
			seconds: amdahl(1, 0), fails: func(g tune.Segment) bool { return g.Trial == 2 || g.Stage > 0 },
		})
		var none *tune.NoResult
		if !errors.As(err, &none) || none.Reason != "no trial is left" || r == nil || len(r.Trials) != 2 {
			t.Errorf("%+v, %v; want no result, because no trial is left", r, err)
		}
	})
}

// A budget of more time than a time.Duration has is no limit.
func TestTuning_HasAHugeBudget(t *testing.T) {
	for _, budget := range []float64{2.6e6, 1e9, 1e300} {
		synctest.Test(t, func(t *testing.T) {
			o := tuningOptions()
			o.Budget = budget
			r, err := simulate(t, t.TempDir(), o, &simulatedTraining{seconds: amdahl(2, 8)})
			if err != nil || r.Reason != "every stage is done" {
				t.Errorf("--budget %g: %+v, %v; want a complete tuning", budget, r, err)
			}
		})
	}
}

// randomTuning returns random options and a random command.
func randomTuning(random *rand.Rand) (tune.Options, *simulatedTraining) {
	o := tuningOptions()
	o.Trials, o.Eta, o.Epochs = 1+random.IntN(30), 2+random.IntN(3), 1+random.IntN(20)
	o.Pool = 1 + random.IntN(6)
	o.CPUs = nil
	for c := 1; c <= o.Pool; c++ {
		if c == 1 || random.IntN(2) == 0 {
			o.CPUs = append(o.CPUs, c)
		}
	}
	serial, parallel := 5*random.Float64(), 20*random.Float64()
	failing, restarts := random.IntN(20), random.IntN(2) == 0
	c := &simulatedTraining{
		start: 2 * random.Float64(), restarts: restarts,
		fails: func(g tune.Segment) bool { return failing > 2 && (g.Trial*7+g.Stage)%failing == 2 },
		seconds: func(trial, cpus int) float64 {
			noise := 1 + 0.2*math.Sin(float64(trial*31+cpus*17))
			return (0.5 + serial + parallel/float64(cpus)) * noise
		},
		accuracy: func(trial, epoch int) float64 {
			return 0.5 + 0.4*math.Sin(float64(trial*trial)) - 0.3/float64(epoch)
		},
	}
	return o, c
}

// In random tunings no more CPUs are in use than the pool has, no command runs after --max-time, and
// no more than --budget is spent.
func TestTuning_NeverExceedsPoolAndBound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	complete, cut := 0, 0
	for n := range 100 {
		synctest.Test(t, func(t *testing.T) {
			o, c := randomTuning(random)
			unlimited, err := simulate(t, t.TempDir(), o, c)
			if err != nil { // all of its trials fail
				return
			}
			if c.most > o.Pool {
				t.Fatalf("case %d: %d CPUs of %d at once", n, c.most, o.Pool)
			}
			ratio := 0.3 + 1.5*random.Float64()
			if n%2 == 0 {
				o.MaxTime = time.Duration(ratio * unlimited.Seconds * float64(time.Second))
			} else {
				o.Budget = ratio * unlimited.CoreSeconds / 3600
			}
			c.cost, c.most = 0, 0
			begin := time.Now()
			r, err := simulate(t, t.TempDir(), o, c)
			took := c.ended.Sub(begin)
			if o.MaxTime > 0 && took > o.MaxTime || o.Budget > 0 && c.cost > o.Budget*3600*(1+1e-6) || c.most > o.Pool {
				t.Fatalf("case %d: %s of %s, %g of %g core-seconds, %d of %d CPUs", n, took, o.MaxTime, c.cost,
					o.Budget*3600, c.most, o.Pool)
			}
			var none *tune.NoResult
			var incomplete *tune.IncompleteTuning
			switch {
			case errors.As(err, &none), errors.As(err, &incomplete):
				cut++
			case err != nil:
				t.Fatalf("case %d: %v", n, err)
			case r.Complete:
				complete++
			default:
				cut++
			}
			if isComplete := r.Complete; err != nil && isComplete ||
				isComplete != (r.Reason == "every stage is done") ||
				isComplete != (r.StagesDone == len(r.Stages)) {
				t.Errorf("case %d: %+v with the error %v", n, r, err)
			}
		})
	}
	if complete < 15 || cut < 15 {
		t.Errorf("%d complete and %d cut tunings, want some of each", complete, cut)
	}
	t.Logf("%d complete, %d cut", complete, cut)
}
