package sharing

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"courier/policy/quality"
	"courier/simulate/figures"
)

// publishedRatio is the reduction of the completion time of the last job that the abstract of
// FlowCon reports, with a makespan that is not longer.
const publishedRatio = 0.4206

// sharingVariant is a rule with the thresholds for which it is simulated, and the reductions that
// section 2.7 of the design page resource-policies reports. Where the page has a range over the
// thresholds, the target of each threshold is the weaker end.
type sharingVariant struct {
	name                    string
	thresholds              []float64
	interval                float64
	options                 quality.Options
	third, second, makespan figures.Target
}

// sameMakespan is a makespan that is printed as 0.0 % longer.
var sameMakespan = figures.Within(0, 0.0005)

var variants = []sharingVariant{
	{
		"as published: caps, beta 1 + 1/n", []float64{0.005, 0.01, 0.05}, 20,
		quality.Options{IsPublished: true},
		figures.Reported(0.14), figures.Reported(-0.02), figures.Reported(-0.03),
	},
	{
		"caps, beta 2", []float64{0.005, 0.01, 0.05}, 20, quality.Options{IsPublished: true, Floor: 2},
		figures.Reported(0.22), figures.Reported(-0.01), figures.Reported(-0.04),
	},
	{
		"weights, beta 2, losses every 10 s", []float64{0.005, 0.01}, 10, quality.Options{Floor: 2},
		figures.Reported(0.406), figures.Reported(0.118), sameMakespan,
	},
	{
		"weights, beta 4, losses every 10 s", []float64{0.005, 0.01}, 10, quality.Options{Floor: 4},
		figures.Reported(0.428), figures.Reported(0.065), sameMakespan,
	},
	{
		"weights, beta 2, losses every 5 s", []float64{0.005, 0.01}, 5, quality.Options{Floor: 2},
		figures.Reported(0.406), figures.Reported(0.118), sameMakespan,
	},
}

// Reproduce simulates the fixed schedule of three jobs by each variant, and random schedules. A figure
// is the reduction of a time against fair sharing as a ratio, negative if the time is longer.
func Reproduce() *figures.Comparisons {
	f := &figures.Comparisons{}
	fair := Simulate(PaperJobs(), Sharing{IsFair: true}, 0)
	addFair(f, fair)
	for i := range variants {
		variants[i].add(f, fair)
	}
	addRandom(f)
	return f
}

// addFair adds the completion times by fair sharing. The page's simulator had steps of 0.5 s.
func addFair(f *figures.Comparisons, fair *NodeOutcome) {
	f.Begin("fair sharing", "")
	for _, c := range []struct {
		job     string
		seconds float64
	}{{"first", 390.5}, {"second", 270.5}, {"third", 90}} {
		target := figures.Within(c.seconds, 0.55)
		f.Add(figures.Seconds, "completion time of the "+c.job+" job", target, fair.Seconds[c.job])
	}
}

// add adds the figures of the fixed schedule, for each threshold.
func (v *sharingVariant) add(f *figures.Comparisons, fair *NodeOutcome) {
	for _, threshold := range v.thresholds {
		o := v.options
		o.Threshold = threshold
		got := Simulate(PaperJobs(), Sharing{Quality: o, Interval: v.interval}, 0)
		f.Begin(fmt.Sprintf("%s, threshold %g", v.name, threshold), v.name)
		third := 1 - got.Seconds["third"]/fair.Seconds["third"]
		second := 1 - got.Seconds["second"]/fair.Seconds["second"]
		f.Add(figures.Reduction, "completion time of the third job", v.third, third)
		if !o.IsPublished {
			f.Add(figures.Reduction, "completion time of the third job, published", figures.Bar(publishedRatio), third)
		}
		f.Add(figures.Reduction, "completion time of the second job", v.second, second)
		f.Add(figures.Reduction, "makespan", v.makespan, 1-got.Makespan/fair.Makespan)
	}
}

const randomSeeds = 30

// randomEffects are the reductions of times, by random schedule.
type randomEffects struct {
	best, average []float64 // completion times, of the best job and of all
	quality       []float64 // times to 90 % of the loss reduction
	makespan      []float64
}

// simulateRandom compares weights with fair sharing on random schedules.
func simulateRandom(jobs int, overSeconds, contention float64) (e randomEffects) {
	for seed := range uint64(randomSeeds) {
		jobs := RandomJobs(jobs, overSeconds, seed)
		fair := Simulate(jobs, Sharing{IsFair: true}, contention)
		got := Simulate(jobs, Sharing{Interval: 10}, contention)
		e.best = append(e.best, bestOf(got.Seconds, fair.Seconds))
		e.average = append(e.average, 1-total(jobs, got.Seconds)/total(jobs, fair.Seconds))
		e.quality = append(e.quality, 1-total(jobs, got.Quality)/total(jobs, fair.Quality))
		e.makespan = append(e.makespan, 1-got.Makespan/fair.Makespan)
	}
	return e
}

// bestOf returns the largest reduction of the time of a job.
func bestOf(got, base map[string]float64) float64 {
	best := 0.0
	for name, seconds := range got {
		best = max(best, 1-seconds/base[name])
	}
	return best
}

// addRandom adds the effects of FlowCon on schedules with random arrivals, works and losses. The targets
// are those that section 2.7 of the design page resource-policies reports for a number of jobs.
func addRandom(f *figures.Comparisons) {
	const rule = "weights, beta 2, losses every 10 s, %d random schedules of %d jobs"
	for _, t := range []struct {
		jobs                   int
		best, quality, average float64
	}{{10, 0.33, 0.145, -0.045}, {30, 0.5, 0.22, -0.07}} {
		e := simulateRandom(t.jobs, 20*float64(t.jobs), 0)
		f.Begin(fmt.Sprintf(rule, randomSeeds, t.jobs), "")
		f.AddReductions("completion time of the best job, mean", figures.Reported(t.best), e.best)
		f.AddReductions("time to 90 % of the loss reduction, mean", figures.Reported(t.quality), e.quality)
		f.AddReductions("completion time of all jobs, mean", figures.Reported(t.average), e.average)
	}
	for _, t := range []struct{ contention, average, makespan float64 }{{0.1, 0.05, 0.02}, {0.2, 0.10, 0.05}} {
		e := simulateRandom(10, 900, t.contention)
		f.Begin(fmt.Sprintf(rule+" over 900 s, contention %g", randomSeeds, 10, t.contention), "")
		f.AddReductions("completion time of all jobs, mean", figures.Reported(t.average), e.average)
		f.AddReductions("makespan, mean", figures.Reported(t.makespan), e.makespan)
	}
}

// total returns the sum of the times of jobs, in their order.
func total(jobs []TrainingJob, seconds map[string]float64) float64 {
	sum := 0.0
	for i := range jobs {
		sum += seconds[jobs[i].Name]
	}
	return sum
}

// PaperJobs returns the fixed schedule of three jobs.
func PaperJobs() []TrainingJob {
	return []TrainingJob{
		{Name: "first", Arrival: 0, Work: 240, FinalLoss: 0.1, Decay: 0.08},
		{Name: "second", Arrival: 40, Work: 120, FinalLoss: 0.1, Decay: 0.12},
		{Name: "third", Arrival: 80, Work: 30, FinalLoss: 0.05, Decay: 0.35},
	}
}

// RandomJobs returns n jobs that arrive over a time.
func RandomJobs(n int, overSeconds float64, seed uint64) []TrainingJob {
	random := rand.New(rand.NewPCG(seed, 0))
	jobs := make([]TrainingJob, n)
	for i := range jobs {
		arrival := overSeconds * random.Float64()
		work := []float64{20, 40, 80, 160}[random.IntN(4)]
		jobs[i] = TrainingJob{
			Name:      strconv.Itoa(i),
			Arrival:   arrival,
			Work:      work,
			FinalLoss: 0.1,
			Decay:     []float64{0.05, 0.08, 0.15, 0.35}[random.IntN(4)],
		}
		// Two more numbers are drawn, so that the schedules remain those of the published figures.
		random.Float64()
		random.NormFloat64()
	}
	return jobs
}
