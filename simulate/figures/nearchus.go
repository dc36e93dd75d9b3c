package figures

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Bars: the reductions that the abstract of NEARCHUS reports, and Courier's own of the true model's gain,
// and of the time of a job in its guessed shape.
const (
	publishedCompletion = 0.356
	publishedQueueing   = 0.678
	learnedGainBar      = 0.8
	slowerBar           = 0.03
)

// comparisonCase is a population that is simulated with each knowledge.
type comparisonCase struct {
	name string
	population

	// Targets of the reductions of times with the true model, and with a learned one.
	known, learned reductionTargets
}

type reductionTargets struct{ completion, queueing target }

// published are the targets of guesses that are comparable with the publication, and designed those
// that section 3.6 of the design page resource-policies reports for all guesses and the true model:
// the weaker ends of its ranges.
var (
	published = reductionTargets{bar(publishedCompletion), bar(publishedQueueing)}
	designed  = reductionTargets{reported(0.71), reported(0.87)}
	none      = reductionTargets{}
)

// comparisonCases are the guesses of the comparison with the published figures, by load, and then
// guesses of other quality.
var comparisonCases = []comparisonCase{
	{"guesses at 0.6 to 0.9 of the best, mean gap 70 s", population{120, 70, 0.6, 0.9}, published, published},
	{"guesses at 0.6 to 0.9 of the best, mean gap 95 s", population{120, 95, 0.6, 0.9}, published, published},
	{"guesses at 0.6 to 0.9 of the best, mean gap 120 s", population{120, 120, 0.6, 0.9}, published, published},
	{"guesses at 0.9 to 1.0 of the best, mean gap 95 s", population{120, 95, 0.9, 1}, none, none},
	{"guesses at 0.4 to 0.6 of the best, mean gap 95 s", population{120, 95, 0.4, 0.6}, none, none},
	{"guesses at 0 to 0.4 of the best, mean gap 95 s", population{120, 95, 0, 0.4}, none, none},
	{"all guesses, mean gap 95 s", population{120, 95, 0, 1}, designed, none},
}

// NEARCHUS compares policy/fit with keeping the shapes that users guessed, in all cases with a number of
// seeds. progress is called after each simulation, one call at a time.
func NEARCHUS(ctx context.Context, seeds int, progress func(done, total int)) (*Comparisons, error) {
	results, done := make([][]map[knowledge]effects, len(comparisonCases)), 0
	var mutex sync.Mutex // protects done, and the calls of progress
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range comparisonCases {
		results[i] = make([]map[knowledge]effects, seeds)
		for k := range seeds {
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				results[i][k] = comparisonCases[i].simulate(uint64(k) + 1)
				mutex.Lock()
				defer mutex.Unlock()
				done++
				progress(done, len(comparisonCases)*seeds)
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	f := &Comparisons{}
	for i := range comparisonCases {
		comparisonCases[i].add(f, results[i])
	}
	return f, nil
}

// effects are what a knowledge changes in a simulation, by name.
type effects map[string]float64

// Names of effects.
const (
	effectCompletion = "completion time"
	effectQueueing   = "queueing time"
	effectOfTrue     = "reduction of the completion time, of that with the true model"
	effectSlower     = "jobs that are more than 3 % slower than in their guessed shape"
	effectSlowest    = "time of the slowest job beyond that in its guessed shape"
)

// simulate runs the jobs of a seed with each knowledge.
func (c *comparisonCase) simulate(seed uint64) map[knowledge]effects {
	jobs := c.draw(seed)
	before := simulateResizing(jobs, knowsNothing, seed)
	known := before.effects(simulateResizing(jobs, knowsTruth, seed))
	learned := before.effects(simulateResizing(jobs, learns, seed))
	learned[effectOfTrue] = learned[effectCompletion] / known[effectCompletion]
	return map[knowledge]effects{knowsTruth: known, learns: learned}
}

// effects returns how much shorter the mean times are after a change, as ratios, and how late jobs are.
func (o *resizeOutcome) effects(after *resizeOutcome) effects {
	completionBefore, queueingBefore := o.totals()
	completion, queueing := after.totals()
	e := effects{
		effectCompletion: 1 - completion/completionBefore,
		effectQueueing:   1 - queueing/queueingBefore,
	}
	for i := range after.jobs {
		beyond := after.jobs[i].runSeconds/after.jobs[i].workSeconds - 1
		e[effectSlowest] = max(e[effectSlowest], beyond)
		if beyond > slowerBar {
			e[effectSlower] += 1 / float64(len(after.jobs))
		}
	}
	return e
}

func (o *resizeOutcome) totals() (completion, queueing float64) {
	for i := range o.jobs {
		completion += o.jobs[i].queueSeconds + o.jobs[i].runSeconds
		queueing += o.jobs[i].queueSeconds
	}
	return completion / float64(len(o.jobs)), queueing / float64(len(o.jobs))
}

// add adds the figures of a case. The bars of a learned model hold for all guesses; the slowest job
// is that of all seeds.
func (c *comparisonCase) add(f *Comparisons, bySeed []map[knowledge]effects) {
	for _, k := range []knowledge{knowsTruth, learns} {
		values := func(name string) (all []float64) {
			for _, e := range bySeed {
				all = append(all, e[k][name])
			}
			return all
		}
		f.begin(string(k)+", "+c.name, "")
		targets := c.learned
		if k == knowsTruth {
			targets = c.known
		}
		f.add(kindReduction, effectCompletion, targets.completion, values(effectCompletion)...)
		f.add(kindReduction, effectQueueing, targets.queueing, values(effectQueueing)...)
		if k == knowsTruth {
			continue
		}
		f.add(kindLevel, effectOfTrue, bar(learnedGainBar), values(effectOfTrue)...)
		f.add(kindLimit, effectSlower, bar(0), values(effectSlower)...)
		f.add(kindLimit, effectSlowest, bar(slowerBar), slices.Max(values(effectSlowest)))
	}
}
