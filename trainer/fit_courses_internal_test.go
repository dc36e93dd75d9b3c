package trainer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"courier/regress/evidence"
	"courier/schemas"
)

// queuedRuns returns the examples of runs that arrive at random and share two processors evenly. work returns the
// seconds of an epoch alone.
func queuedRuns(r *rand.Rand, runs, epochs int, work func(epoch int) float64) (all []Example) {
	const arrivals, noise = 0.1, 0.02 // a second; of an epoch
	type job struct{ left, since, jobSeconds float64 }
	running, now, next := map[int]*job{}, 0.0, r.ExpFloat64()/arrivals
	begin := time.Unix(1_790_000_000, 0)
	done := make([]int, runs)
	for begun := 0; begun < runs || len(running) > 0; {
		slow, least, which := math.Max(1, float64(len(running))/2), next-now, -1
		for id, j := range running {
			if j.left*slow < least {
				least, which = j.left*slow, id
			}
		}
		for _, j := range running {
			j.left, j.jobSeconds = j.left-least/slow, j.jobSeconds+least*float64(len(running))
		}
		if now += least; which < 0 {
			which = begun
			running[which] = &job{since: now}
			if begun++; begun == runs {
				next = math.Inf(1)
			} else {
				next = now + r.ExpFloat64()/arrivals
			}
		} else {
			j := running[which]
			seconds := now - j.since
			x := epochExamples("queued", which, 32, begin, seconds)[0]
			done[which]++
			jobs := j.jobSeconds / seconds
			x.At, x.Features.EpochsDone = begin.Add(time.Duration(now*1e9)), uint32(done[which])
			x.Features.Load = schemas.Load{ConcurrentJobs: jobs, Processes: jobs, ProcessesPerCore: jobs / 2}
			all = append(all, x)
			j.since, j.jobSeconds = now, 0
		}
		if running[which].left = work(done[which]) * math.Exp(noise*r.NormFloat64()); done[which] == epochs {
			delete(running, which)
		}
	}
	return all
}

// Runs whose load changes all the time teach what an epoch takes under each load, whether epochs are alike or
// grow. By the parts of runs, epochs that grow are wrong by 4 % on average and up to a quarter; by whole runs
// under the load that lasted longest, both are wrong by 9 % and up to 39 %.
func TestFit_FiguresOfChangingLoads(t *testing.T) {
	const runs, epochs = 60, 20
	for name, work := range map[string]func(int) float64{
		"alike": func(int) float64 { return 0.5 }, "growing": func(n int) float64 { return 0.2 + 0.04*float64(n) },
	} {
		alone := 0.0
		for n := range epochs {
			alone += work(n)
		}
		var errors []float64
		for seed := range uint64(6) {
			examples := queuedRuns(rand.New(rand.NewPCG(seed, 7)), runs, epochs, work)
			known := evidenceRuns(schemas.TargetEpochTime, examples, nil)
			h, err := evidence.Fit(t.Context(), known, evidence.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := evidence.Compile(h)
			if err != nil {
				t.Fatal(err)
			}
			for jobs := 1.0; jobs <= 4; jobs++ {
				c := evidence.Configuration{Model: "queued", BatchSize: 32, CPUs: 1}
				c.ConcurrentJobs, c.ProcessesPerCore = jobs, jobs/2
				got := p.Time(c, epochs)
				errors = append(errors, math.Abs(math.Log(got.Median()/(alone*max(1, jobs/2)))))
			}
		}
		slices.Sort(errors)
		mean := 0.0
		for _, e := range errors {
			mean += e / float64(len(errors))
		}
		if t.Logf("%s: error %.3f, at most %.3f", name, mean, errors[len(errors)-1]); mean > 0.01 {
			t.Errorf("%s: mean error %.3f, want at most 0.01", name, mean)
		}
	}
}
