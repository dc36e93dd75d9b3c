package sharing

import (
	"fmt"
	"math"

	"courier/policy/quality"
	"courier/simulate/figures"
)

// publishedRatio is the reduction of the completion time of the last job that the abstract of
// FlowCon reports, with a makespan that is not longer.
const publishedRatio = 0.4206

// sharingVariant is a rule with the thresholds for which it is simulated.
type sharingVariant struct {
	name       string
	thresholds []float64
	interval   float64
	options    quality.Options
}

var variants = []sharingVariant{
	{"as published: caps, beta 1 + 1/n", []float64{0.005, 0.01, 0.05}, 20, quality.Options{IsPublished: true}},
	{"caps, beta 2", []float64{0.005, 0.01, 0.05}, 20, quality.Options{IsPublished: true, Floor: 2}},
	{"weights, beta 2, losses every 10 s", []float64{0.005, 0.01}, 10, quality.Options{Floor: 2}},
	{"weights, beta 4, losses every 10 s", []float64{0.005, 0.01}, 10, quality.Options{Floor: 4}},
	{"weights, beta 2, losses every 5 s", []float64{0.005, 0.01}, 5, quality.Options{Floor: 2}},
}

// Reproduce simulates the fixed schedule of three jobs by each variant, and random
// schedules. A figure is the reduction of a time against fair sharing as a ratio, negative if the time is longer.
func Reproduce() *figures.Comparisons {
	jobs := PaperJobs()
	fair := Simulate(jobs, Sharing{Rule: RuleFair}, 0)
	f := &figures.Comparisons{}
	for _, v := range variants {
		reductions := map[string][]float64{}
		for _, threshold := range v.thresholds {
			o := v.options
			o.Threshold = threshold
			got := Simulate(jobs, Sharing{Quality: o, Interval: v.interval}, 0)
			for _, name := range []string{"third", "second"} {
				reductions[name] = append(reductions[name], 1-got.Seconds[name]/fair.Seconds[name])
			}
			reductions["makespan"] = append(reductions["makespan"], 1-got.Makespan/fair.Makespan)
		}
		f.Add("completion time of the third job", publishedRatio, v.name, reductions["third"], false)
		f.Add("completion time of the second job", 0, v.name, reductions["second"], false)
		f.Add("makespan", 0, v.name, reductions["makespan"], false)
	}
	addRandom(f)
	return f
}

// randomSeeds is the number of random schedules of each size.
const randomSeeds = 30

// randomTarget are the effects of FlowCon that section 2.7 of the design page resource-policies
// reports for a number of jobs.
type randomTarget struct {
	jobs                      int
	bestJob, quality, average float64
}

var randomTargets = []randomTarget{{10, 0.33, 0.145, -0.045}, {30, 0.5, 0.22, -0.07}}

// addRandom adds the figures of schedules with random arrivals, works and losses.
func addRandom(f *figures.Comparisons) {
	for _, target := range randomTargets {
		var best, quality, average []float64
		for seed := range uint64(randomSeeds) {
			jobs := RandomJobs(target.jobs, 20*float64(target.jobs), 0, seed)
			fair := Simulate(jobs, Sharing{Rule: RuleFair}, 0)
			got := Simulate(jobs, Sharing{Interval: 10}, 0)
			fastest := 0.0
			for name, seconds := range got.Seconds {
				fastest = max(fastest, 1-seconds/fair.Seconds[name])
			}
			best = append(best, fastest)
			quality = append(quality, 1-total(jobs, got.Quality)/total(jobs, fair.Quality))
			average = append(average, 1-total(jobs, got.Seconds)/total(jobs, fair.Seconds))
		}
		variant := fmt.Sprintf("weights, beta 2, losses every 10 s, %d random schedules of %d jobs",
			randomSeeds, target.jobs)
		f.AddReductions("completion time of the best job, mean", target.bestJob, variant, meanOf(best))
		f.AddReductions("time to 90 % of the loss reduction, mean", target.quality, variant, meanOf(quality))
		f.AddReductions("completion time of all jobs, mean", target.average, variant, meanOf(average))
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

// meanOf returns a mean with its 95 % interval.
func meanOf(values []float64) figures.Interval {
	n := float64(len(values))
	var sum, squares float64
	for _, v := range values {
		sum += v
		squares += v * v
	}
	mean := sum / n
	half := 1.96 * math.Sqrt(max(0, squares/n-mean*mean)/max(1, n-1))
	return figures.Interval{Reached: mean, Low: mean - half, High: mean + half}
}
