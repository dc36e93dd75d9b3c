package resize

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// seedRuns simulates seeds, and reports how many simulations have ended.
type seedRuns struct {
	seeds    int
	progress func(done, total int) // may be nil
	total    int

	mutex sync.Mutex
	done  int
}

// simulate calls run for each seed, on all processors, and returns the effects by seed and variant.
func (r *seedRuns) simulate(
	ctx context.Context, run func(seed uint64) []effects,
) ([][]effects, error) {
	bySeed := make([][]effects, r.seeds)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range bySeed {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			bySeed[i] = run(uint64(i) + 1)
			r.ended()
			return nil
		})
	}
	return bySeed, g.Wait()
}

// ended counts a simulation that has ended.
func (r *seedRuns) ended() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.done++
	if r.progress != nil {
		r.progress(r.done, r.total)
	}
}

// effects are what a variant changes in a simulation, by name.
type effects map[string]float64

// valuesOf returns an effect of a variant for each seed.
func valuesOf(bySeed [][]effects, variant int, name string) (values []float64) {
	for _, variants := range bySeed {
		values = append(values, variants[variant][name])
	}
	return values
}

// Names of effects.
const (
	effectCompletion = "completion time"
	effectQueueing   = "queueing time"
	effectOfTrue     = "reduction of the completion time, of that with the true model"
	effectSlower     = "jobs that are more than 3 % slower than in their guessed shape"
	effectSlowest    = "time of the slowest job beyond that in its guessed shape"
	effectNamed      = "windows with the true bottleneck"
	effectClear      = "windows with the true bottleneck, if it takes 85 % of the step"
)

// reductions returns how much shorter the mean times are, as ratios.
func reductions(before, after *Outcome) effects {
	e := effects{}
	for name, seconds := range map[string]func(*ResizedJob) float64{
		effectCompletion: (*ResizedJob).CompletionSeconds,
		effectQueueing:   (*ResizedJob).queueSeconds,
	} {
		e[name] = 1 - after.mean(seconds)/before.mean(seconds)
	}
	return e
}

func (j *ResizedJob) queueSeconds() float64 { return j.QueueSeconds }

// mean returns the mean of a time of the jobs.
func (o *Outcome) mean(seconds func(*ResizedJob) float64) float64 {
	sum := 0.0
	for i := range o.Jobs {
		sum += seconds(&o.Jobs[i])
	}
	return sum / float64(len(o.Jobs))
}

// slower returns the ratio of jobs that ran longer than in their guessed shape by more than the bar,
// and by how much the slowest did, as a ratio.
func (o *Outcome) slower() (ratio, slowest float64) {
	for i := range o.Jobs {
		beyond := o.Jobs[i].RunSeconds/o.Jobs[i].Job.WorkSeconds - 1
		if slowest = max(slowest, beyond); beyond > slowerBar {
			ratio += 1 / float64(len(o.Jobs))
		}
	}
	return ratio, slowest
}

const jobsPerRun = 120
