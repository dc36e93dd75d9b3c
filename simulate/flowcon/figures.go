package flowcon

import (
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

// Reproduce simulates the fixed schedule of three jobs by each variant. A figure is the reduction of
// a time against fair sharing as a ratio, negative if the time is longer.
func Reproduce() *figures.Comparisons {
	jobs := PaperJobs()
	fair, fairMakespan := Simulate(jobs, Sharing{IsFair: true})
	f := &figures.Comparisons{}
	for _, v := range variants {
		reductions := map[string][]float64{}
		for _, threshold := range v.thresholds {
			o := v.options
			o.Threshold = threshold
			seconds, makespan := Simulate(jobs, Sharing{Quality: o, Interval: v.interval})
			for _, name := range []string{"third", "second"} {
				reductions[name] = append(reductions[name], 1-seconds[name]/fair[name])
			}
			reductions["makespan"] = append(reductions["makespan"], 1-makespan/fairMakespan)
		}
		f.Add("completion time of the third job", publishedRatio, v.name, reductions["third"], false)
		f.Add("completion time of the second job", 0, v.name, reductions["second"], false)
		f.Add("makespan", 0, v.name, reductions["makespan"], false)
	}
	return f
}
