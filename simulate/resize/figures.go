package resize

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"courier/simulate/figures"

	"golang.org/x/sync/errgroup"
)

// Bars: the reductions that the abstract of NEARCHUS reports, and Courier's own of the true model's gain,
// of the time of a job in its guessed shape, and of the named bottlenecks.
const (
	publishedCompletion = 0.356
	publishedQueueing   = 0.678
	learnedGainBar      = 0.8
	slowerBar           = 0.03
	bottleneckBar       = 0.9
)

const jobsPerRun = 120

// comparisonCase is a population that is simulated with each knowledge.
type comparisonCase struct {
	name      string
	gap       float64
	low, high float64

	// Targets of the reductions of times with the true model, and with a learned one.
	known, learned reductionTargets
}

type reductionTargets struct{ completion, queueing figures.Target }

// published are the targets of guesses that are comparable with the publication, and designed those
// that section 3.6 of the design page resource-policies reports for all guesses and the true model:
// the weaker ends of its ranges.
var (
	published = reductionTargets{figures.Bar(publishedCompletion), figures.Bar(publishedQueueing)}
	designed  = reductionTargets{figures.Reported(0.71), figures.Reported(0.87)}
	none      = reductionTargets{}
)

// comparisonCases are the guesses of the comparison with the published figures, by load, and then
// guesses of other quality.
var comparisonCases = []comparisonCase{
	{"guesses at 0.6 to 0.9 of the best, mean gap 70 s", 70, 0.6, 0.9, published, published},
	{"guesses at 0.6 to 0.9 of the best, mean gap 95 s", 95, 0.6, 0.9, published, published},
	{"guesses at 0.6 to 0.9 of the best, mean gap 120 s", 120, 0.6, 0.9, published, published},
	{"guesses at 0.9 to 1.0 of the best, mean gap 95 s", 95, 0.9, 1, none, none},
	{"guesses at 0.4 to 0.6 of the best, mean gap 95 s", 95, 0.4, 0.6, none, none},
	{"guesses at 0 to 0.4 of the best, mean gap 95 s", 95, 0, 0.4, none, none},
	{"all guesses, mean gap 95 s", 95, 0, 1, designed, none},
}

// compared is what is compared with keeping the guesses.
var compared = []Knowledge{KnowsTruth, KnowsTelemetry}

// Reproduce simulates all cases with a number of seeds, and compares their figures with the published
// ones. progress is called after each comparison, one call at a time.
func Reproduce(ctx context.Context, seeds int, progress func(done, total int)) (*figures.Comparisons, error) {
	f := &figures.Comparisons{}
	runs := &seedRuns{seeds: seeds, progress: progress, total: len(comparisonCases) * seeds}
	for i := range comparisonCases {
		c := &comparisonCases[i]
		bySeed, err := runs.simulate(ctx, c.simulate)
		if err != nil {
			return nil, err
		}
		c.add(f, bySeed)
	}
	return f, nil
}

// effects are what a variant changes in a simulation, by name.
type effects map[string]float64

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

// simulate runs the jobs of a seed with each of the knowledges.
func (c *comparisonCase) simulate(seed uint64) (all []effects) {
	jobs := Population{jobsPerRun, c.gap, c.low, c.high}.Draw(seed)
	before := Simulate(jobs, KnowsNothing, seed)
	for _, k := range compared {
		after := Simulate(jobs, k, seed)
		e := reductions(before, after)
		all = append(all, e)
		e[effectOfTrue] = e[effectCompletion] / all[0][effectCompletion]
		e[effectSlower], e[effectSlowest] = after.slower()
		e[effectNamed] = float64(after.Named) / float64(max(1, after.Windows))
		e[effectClear] = float64(after.ClearNamed) / float64(max(1, after.ClearWindows))
	}
	return all
}

// reductions returns how much shorter the mean times are, as ratios.
func reductions(before, after *Outcome) effects {
	completionBefore, queueingBefore := before.totals()
	completion, queueing := after.totals()
	return effects{
		effectCompletion: 1 - completion/completionBefore,
		effectQueueing:   1 - queueing/queueingBefore,
	}
}

func (o *Outcome) totals() (completion, queueing float64) {
	for i := range o.Jobs {
		completion += o.Jobs[i].CompletionSeconds()
		queueing += o.Jobs[i].QueueSeconds
	}
	return completion / float64(len(o.Jobs)), queueing / float64(len(o.Jobs))
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

// add adds the figures of a case. The bars of a learned model hold for all guesses; the slowest job
// is that of all seeds.
func (c *comparisonCase) add(f *figures.Comparisons, bySeed [][]effects) {
	for i, k := range compared {
		values := func(name string) []float64 { return valuesOf(bySeed, i, name) }
		f.Begin(string(k)+", "+c.name, "")
		targets := c.learned
		if k == KnowsTruth {
			targets = c.known
		}
		f.Add(figures.Reduction, effectCompletion, targets.completion, values(effectCompletion)...)
		f.Add(figures.Reduction, effectQueueing, targets.queueing, values(effectQueueing)...)
		if k == KnowsTruth {
			continue
		}
		f.Add(figures.Level, effectOfTrue, figures.Bar(learnedGainBar), values(effectOfTrue)...)
		f.Add(figures.Limit, effectSlower, figures.Bar(0), values(effectSlower)...)
		f.Add(figures.Limit, effectSlowest, figures.Bar(slowerBar), slices.Max(values(effectSlowest)))
		f.Add(figures.Level, effectNamed, figures.Bar(bottleneckBar), values(effectNamed)...)
		f.Add(figures.Level, effectClear, figures.Bar(bottleneckBar), values(effectClear)...)
	}
}

func valuesOf(bySeed [][]effects, variant int, name string) (values []float64) {
	for _, variants := range bySeed {
		values = append(values, variants[variant][name])
	}
	return values
}

// seedRuns simulates seeds, and reports how many simulations have ended.
type seedRuns struct {
	seeds    int
	progress func(done, total int)
	total    int

	mutex sync.Mutex
	done  int
}

// simulate calls run for each seed, on all processors, and returns the effects by seed and variant.
func (r *seedRuns) simulate(ctx context.Context, run func(seed uint64) []effects) ([][]effects, error) {
	bySeed := make([][]effects, r.seeds)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range bySeed {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			bySeed[i] = run(uint64(i) + 1)
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.done++
			r.progress(r.done, r.total)
			return nil
		})
	}
	return bySeed, g.Wait()
}
