package resize

import (
	"context"
	"math"
	"math/rand/v2"

	"courier/policy/speed"
	"courier/simulate/figures"
)

// batchSizes are the batch sizes of a worker that a job allows besides the requested 64.
var batchSizes = []int{16, 32, 128, 256}

// priceError is the standard deviation of the logarithm of the gradient noise scale that a policy
// knows, where prices are uncertain.
const priceError = 0.3

// allowBatches lets the jobs change their batch sizes. The work with a batch size follows the gradient
// noise scale of a job, a number of samples from 32 to 2,048 (McCandlish et al., An Empirical Model of
// Large-Batch Training, 2018). The policy knows the noise scale but for a relative error.
func allowBatches(jobs []GuessedJob, relativeError float64, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	for i := range jobs {
		j := &jobs[i]
		scale := 32 * math.Pow(64, random.Float64())
		known := scale * math.Exp(relativeError*random.NormFloat64())
		j.Truth.Facts.Batches = pricesOf(scale, j.Truth.Facts.SamplesPerWorker)
		j.Facts.Batches = pricesOf(known, j.Facts.SamplesPerWorker)
		model := j.Truth
		model.Facts = j.Facts
		j.Speeds = model.Speeds(largest)
	}
}

// pricesOf returns the batch sizes of a noise scale. Training to an accuracy with a batch takes work in
// proportion to 1 + batch/scale.
func pricesOf(scale, requested float64) []speed.Batch {
	batches := make([]speed.Batch, 0, len(batchSizes))
	for _, samples := range batchSizes {
		work := (1 + float64(samples)/scale) / (1 + requested/scale)
		batches = append(batches, speed.Batch{Samples: samples, WorkRatio: work})
	}
	return batches
}

// guessBatch starts the jobs in the fastest batch size of their guessed shape, by their true speed, or
// in the largest one.
func guessBatch(jobs []GuessedJob, isLargest bool) {
	for i := range jobs {
		j := &jobs[i]
		for _, samples := range batchSizes {
			s := j.Guess
			s.Samples = samples
			if isLargest || j.speed(s) > j.speed(j.Guess) {
				j.Guess = s
			}
		}
	}
}

type batchVariant struct {
	name      string
	knowledge Knowledge
	prepare   func(jobs []GuessedJob, seed uint64)
}

var batchVariants = []batchVariant{
	{"guessed shape, largest batch size", KnowsNothing, func(jobs []GuessedJob, seed uint64) {
		allowBatches(jobs, 0, seed)
		guessBatch(jobs, true)
	}},
	{"guessed shape, fastest batch size by true speeds and prices", KnowsNothing,
		func(jobs []GuessedJob, seed uint64) {
			allowBatches(jobs, 0, seed)
			guessBatch(jobs, false)
		}},
	{"learned model, requested batch size", KnowsTelemetry, func([]GuessedJob, uint64) {}},
	{"learned model, batch sizes with true prices", KnowsTelemetry,
		func(jobs []GuessedJob, seed uint64) { allowBatches(jobs, 0, seed) }},
	{"learned model, batch sizes with prices by a noise scale off by 30 %", KnowsTelemetry,
		func(jobs []GuessedJob, seed uint64) { allowBatches(jobs, priceError, seed) }},
}

// addBatches adds how much shorter the times are with a choice of the batch size, against keeping the
// guessed shape and the requested batch size.
func addBatches(ctx context.Context, f *figures.Comparisons, runs *seedRuns) error {
	p := Population{jobsPerRun, 95, 0.6, 0.9}
	bySeed, err := runs.simulate(ctx, func(seed uint64) (all []effects) {
		before := Simulate(p.Draw(seed), KnowsNothing, seed)
		for _, v := range batchVariants {
			jobs := p.Draw(seed)
			v.prepare(jobs, seed)
			all = append(all, reductions(before, Simulate(jobs, v.knowledge, seed)))
		}
		return all
	})
	if err != nil {
		return err
	}
	for i, v := range batchVariants {
		f.Begin(v.name+", guesses at 0.6 to 0.9 of the best, mean gap 95 s", "")
		for _, effect := range []string{effectCompletion, effectQueueing} {
			f.Add(figures.Reduction, effect, figures.Target{}, valuesOf(bySeed, i, effect)...)
		}
	}
	return nil
}
