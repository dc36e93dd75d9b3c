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

// Options of Reproduce. A zero field means the documented default.
type Options struct {
	Seeds    int                   // simulations of each variant; default: 20
	Progress func(done, total int) // called after each comparison, one call at a time; may be nil
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
	runs := &seedRuns{seeds: o.Seeds, progress: o.Progress, total: (len(comparisonCases) + 1) * o.Seeds}
	for i := range comparisonCases {
		c := &comparisonCases[i]
		bySeed, err := runs.simulate(ctx, c.simulate)
		if err != nil {
			return nil, err
		}
		c.add(f, bySeed)
	}
	return f, addBatches(ctx, f, runs)
}

// simulate runs the jobs of a seed with each of the knowledges.
func (c *comparisonCase) simulate(seed uint64) (all []effects) {
	jobs := Population{jobsPerRun, c.gap, c.low, c.high}.Draw(seed)
	before := Simulate(jobs, KnowsNothing, seed)
	ofTrue := 0.0
	for _, k := range c.knowledges() {
		after := Simulate(jobs, k.knowledge, seed)
		e := reductions(before, after)
		if k.knowledge == KnowsTruth {
			ofTrue = e[effectCompletion]
		}
		e[effectOfTrue] = e[effectCompletion] / ofTrue
		e[effectSlower], e[effectSlowest] = after.slower()
		e[effectNamed] = float64(after.Named) / float64(max(1, after.Windows))
		e[effectClear] = float64(after.ClearNamed) / float64(max(1, after.ClearWindows))
		all = append(all, e)
	}
	return all
}

// add adds the figures of a case. The bars of a learned model hold for all guesses; the slowest job
// is that of all seeds.
func (c *comparisonCase) add(f *figures.Comparisons, bySeed [][]effects) {
	for i, k := range c.knowledges() {
		values := func(name string) []float64 { return valuesOf(bySeed, i, name) }
		variant := k.name + ", " + c.name
		targets := c.learned
		if k.knowledge == KnowsTruth {
			targets = c.known
		}
		f.Add(effectCompletion, targets.completion, variant, values(effectCompletion)...)
		f.Add(effectQueueing, targets.queueing, variant, values(effectQueueing)...)
		if k.knowledge == KnowsTruth {
			continue
		}
		f.AddLevel(effectOfTrue, figures.Bar(learnedGainBar), variant, values(effectOfTrue)...)
		f.AddLimit(effectSlower, figures.Bar(0), variant, values(effectSlower)...)
		f.AddLimit(effectSlowest, figures.Bar(slowerBar), variant, slices.Max(values(effectSlowest)))
		f.AddLevel(effectNamed, figures.Bar(bottleneckBar), variant, values(effectNamed)...)
		f.AddLevel(effectClear, figures.Bar(bottleneckBar), variant, values(effectClear)...)
	}
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
