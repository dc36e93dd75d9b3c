package resize

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"courier/policy/fit"
	"courier/simulate/figures"
)

// Reductions of completion and queueing time that the abstract of NEARCHUS reports.
const (
	publishedCompletion = 0.356
	publishedQueueing   = 0.678
)

// Bars of Courier's own: of the true model's gain, and of the time of a job in its guessed shape.
const (
	learnedGainBar = 0.8
	slowerBar      = 0.03
	bottleneckBar  = 0.9
)

const jobsPerRun = 120

// Options of Reproduce. A zero field means the documented default.
type Options struct {
	Seeds    int                   // simulations of each variant; default: 20
	Progress func(done, total int) // called after each comparison; may be nil
}

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

// namedKnowledge is what is compared with keeping the guesses, with the name of its variant.
type namedKnowledge struct {
	knowledge Knowledge
	name      string
}

var knowledges = []namedKnowledge{
	{KnowsTruth, "true model"},
	{KnowsTelemetry, "model learned from steps, CPU and link"},
	{KnowsSteps, "model learned from steps alone"},
}

// knowledges returns what is compared in a case. Without CPU and link, a model is learned for the
// published guesses only.
func (c *comparisonCase) knowledges() []namedKnowledge {
	if c.low == 0.6 {
		return knowledges
	}
	return knowledges[:2]
}

// Reproduce simulates all cases, and compares their figures with the published ones.
func Reproduce(ctx context.Context, o Options) (*figures.Comparisons, error) {
	if o.Seeds <= 0 {
		o.Seeds = 20
	}
	f := &figures.Comparisons{}
	addTunedSpeed(f)
	total := (len(comparisonCases) + 1) * o.Seeds
	for i, c := range comparisonCases {
		effects := map[Knowledge]*effects{}
		for _, k := range knowledges {
			effects[k.knowledge] = newEffects()
		}
		for seed := range o.Seeds {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			c.simulate(uint64(seed)+1, effects)
			if o.Progress != nil {
				o.Progress(i*o.Seeds+seed+1, total)
			}
		}
		c.add(f, effects)
	}
	return f, addBatches(ctx, f, o)
}

// effects are what a knowledge changes, by seed.
type effects struct {
	values map[string][]float64
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

func newEffects() *effects { return &effects{map[string][]float64{}} }

func (e *effects) add(name string, value float64) {
	e.values[name] = append(e.values[name], value)
}

// simulate runs the jobs of a seed with each knowledge.
func (c *comparisonCase) simulate(seed uint64, all map[Knowledge]*effects) {
	jobs := Population{jobsPerRun, c.gap, c.low, c.high}.Draw(seed)
	before := Simulate(jobs, Cluster{Knowledge: KnowsNothing}, seed)
	ofTrue := 0.0
	for _, k := range c.knowledges() {
		after := Simulate(jobs, Cluster{Knowledge: k.knowledge}, seed)
		e := all[k.knowledge]
		completion := 1 - after.mean((*ResizedJob).CompletionSeconds)/before.mean((*ResizedJob).CompletionSeconds)
		e.add(effectCompletion, completion)
		e.add(effectQueueing, 1-after.mean((*ResizedJob).queueSeconds)/before.mean((*ResizedJob).queueSeconds))
		if k.knowledge == KnowsTruth {
			ofTrue = completion
		}
		e.add(effectOfTrue, completion/ofTrue)
		slower, slowest := after.slower()
		e.add(effectSlower, slower)
		e.add(effectSlowest, slowest)
		e.add(effectNamed, float64(after.Named)/float64(max(1, after.Windows)))
		e.add(effectClear, float64(after.ClearNamed)/float64(max(1, after.ClearWindows)))
	}
}

// add adds the figures of a case. The bars of a learned model hold for all guesses; the slowest job
// is that of all seeds.
func (c *comparisonCase) add(f *figures.Comparisons, all map[Knowledge]*effects) {
	for _, k := range c.knowledges() {
		e := all[k.knowledge].values
		variant := k.name + ", " + c.name
		targets := c.learned
		if k.knowledge == KnowsTruth {
			targets = c.known
		}
		f.Add(effectCompletion, targets.completion, variant, e[effectCompletion]...)
		f.Add(effectQueueing, targets.queueing, variant, e[effectQueueing]...)
		if k.knowledge == KnowsTruth {
			continue
		}
		f.AddLevel(effectOfTrue, figures.Bar(learnedGainBar), variant, e[effectOfTrue]...)
		f.AddLimit(effectSlower, figures.Bar(0), variant, e[effectSlower]...)
		f.AddLimit(effectSlowest, figures.Bar(slowerBar), variant, slices.Max(e[effectSlowest]))
		f.AddLevel(effectNamed, figures.Bar(bottleneckBar), variant, e[effectNamed]...)
		f.AddLevel(effectClear, figures.Bar(bottleneckBar), variant, e[effectClear]...)
	}
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

// tunedJobs is the number of jobs whose speed is compared at equal cores.
const tunedJobs = 2000

// addTunedSpeed adds how much faster the best shape with as many cores is than the guess, and what
// exchanges reach without the best shape of the model.
func addTunedSpeed(f *figures.Comparisons) {
	random := rand.New(rand.NewPCG(1, 0))
	var gains, reached []float64
	moves := 0.0
	for range tunedJobs {
		j := newGuessedJob(random)
		gains = append(gains, 1/j.GuessRatio-1)
		ratio, n := j.exchange()
		reached = append(reached, ratio)
		moves += float64(n)
	}
	slices.Sort(gains)
	slices.Sort(reached)
	variant := fmt.Sprintf("true model, equal cores, %d jobs", tunedJobs)
	for _, q := range []struct {
		name   string
		at     float64
		target float64
	}{
		{"median", 0.5, 0.58}, {"75th percentile", 0.75, 1.22}, {"90th percentile", 0.9, 2.36},
	} {
		f.AddIncrease("speed of the best shape, "+q.name, figures.Reported(q.target), variant,
			gains[int(q.at*tunedJobs)])
	}
	f.AddLevel("speed after exchanges, of the best, median", figures.Reported(0.94), variant, reached[tunedJobs/2])
	f.AddCount("exchanges until none is faster, mean", figures.Reported(3.4), variant, moves/tunedJobs)
}

// exchange moves from the guess to the fastest neighbour without more cores, until none is faster.
// It returns the speed, divided by the best, and the number of moves.
func (j *GuessedJob) exchange() (ratio float64, moves int) {
	s := j.Guess
	for {
		next := s
		for _, n := range s.Neighbours(j.Truth.Facts.Architecture, largest) {
			if n.Cores() <= j.Guess.Cores() && j.speed(n) > j.speed(next) {
				next = n
			}
		}
		if next == s {
			break
		}
		s = next
		moves++
	}
	best, _ := fit.Fastest(j.Speeds, j.Guess.Cores())
	return j.speed(s) / j.speed(best), moves
}
