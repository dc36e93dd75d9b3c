package figures

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"courier/policy/quality"
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
	third, second, makespan target
}

// sameMakespan is a makespan that is printed as 0.0 % longer.
var sameMakespan = within(0, 0.0005)

var sharingVariants = []sharingVariant{
	{
		"as published: caps, beta 1 + 1/n", []float64{0.005, 0.01, 0.05}, 20,
		quality.Options{IsPublished: true}, reported(0.14), reported(-0.02), reported(-0.03),
	},
	{
		"caps, beta 2", []float64{0.005, 0.01, 0.05}, 20,
		quality.Options{IsPublished: true, Floor: 2}, reported(0.22), reported(-0.01), reported(-0.04),
	},
	{
		"weights, beta 2, losses every 10 s", []float64{0.005, 0.01}, 10,
		quality.Options{Floor: 2}, reported(0.406), reported(0.118), sameMakespan,
	},
	{
		"weights, beta 4, losses every 10 s", []float64{0.005, 0.01}, 10,
		quality.Options{Floor: 4}, reported(0.428), reported(0.065), sameMakespan,
	},
	{
		"weights, beta 2, losses every 5 s", []float64{0.005, 0.01}, 5,
		quality.Options{Floor: 2}, reported(0.406), reported(0.118), sameMakespan,
	},
}

// FlowCon simulates the fixed schedule of three jobs on a node by each variant, and random schedules. A
// figure is the reduction of a time against fair sharing as a ratio, negative if the time is longer.
func FlowCon() *Comparisons {
	f := &Comparisons{}
	fair := simulateSharing(paperJobs, sharing{isFair: true}, 0)
	f.begin("fair sharing", "")
	for _, c := range []struct {
		job     string
		seconds float64
	}{{"first", 390.5}, {"second", 270.5}, {"third", 90}} { // the page's simulator had steps of 0.5 s
		t := within(c.seconds, 0.55)
		f.add(kindSeconds, "completion time of the "+c.job+" job", t, fair.seconds[c.job])
	}
	for i := range sharingVariants {
		sharingVariants[i].add(f, fair)
	}
	for i := range randomCases {
		randomCases[i].add(f)
	}
	return f
}

// add adds the figures of the fixed schedule, for each threshold.
func (v *sharingVariant) add(f *Comparisons, fair *sharingOutcome) {
	for _, threshold := range v.thresholds {
		o := v.options
		o.Threshold = threshold
		got := simulateSharing(paperJobs, sharing{options: o, interval: v.interval}, 0)
		f.begin(fmt.Sprintf("%s, threshold %g", v.name, threshold), v.name)
		third := 1 - got.seconds["third"]/fair.seconds["third"]
		second := 1 - got.seconds["second"]/fair.seconds["second"]
		f.add(kindReduction, "completion time of the third job", v.third, third)
		if !o.IsPublished {
			f.add(kindReduction, "completion time of the third job, published", bar(publishedRatio), third)
		}
		f.add(kindReduction, "completion time of the second job", v.second, second)
		f.add(kindReduction, "makespan", v.makespan, 1-got.makespan/fair.makespan)
	}
}

const randomSeeds = 30

// Effects of weights on random schedules, as means of the schedules.
const (
	effectBest     = "completion time of the best job, mean"
	effectQuality  = "time to 90 % of the loss reduction, mean"
	effectAll      = "completion time of all jobs, mean"
	effectMakespan = "makespan, mean"
)

// randomCase are schedules with random arrivals, works and losses. The targets are those that section 2.7
// of the design page resource-policies reports.
type randomCase struct {
	name                    string
	jobs                    int
	overSeconds, contention float64
	targets                 []effectTarget
}

type effectTarget struct {
	effect string
	ratio  float64
}

var randomCases = []randomCase{
	{"10 jobs", 10, 200, 0, []effectTarget{{effectBest, 0.33}, {effectQuality, 0.145}, {effectAll, -0.045}}},
	{"30 jobs", 30, 600, 0, []effectTarget{{effectBest, 0.5}, {effectQuality, 0.22}, {effectAll, -0.07}}},
	{
		"10 jobs over 900 s, contention 0.1", 10, 900, 0.1,
		[]effectTarget{{effectAll, 0.05}, {effectMakespan, 0.02}},
	},
	{
		"10 jobs over 900 s, contention 0.2", 10, 900, 0.2,
		[]effectTarget{{effectAll, 0.10}, {effectMakespan, 0.05}},
	},
}

// add adds the reductions by weights against fair sharing.
func (c *randomCase) add(f *Comparisons) {
	effects := map[string][]float64{}
	for seed := range uint64(randomSeeds) {
		jobs := randomJobs(c.jobs, c.overSeconds, seed)
		fair := simulateSharing(jobs, sharing{isFair: true}, c.contention)
		got := simulateSharing(jobs, sharing{interval: 10}, c.contention)
		best, sum, fairSum, quality, fairQuality := 0.0, 0.0, 0.0, 0.0, 0.0
		for i := range jobs {
			name := jobs[i].name
			best = max(best, 1-got.seconds[name]/fair.seconds[name])
			sum, fairSum = sum+got.seconds[name], fairSum+fair.seconds[name]
			quality, fairQuality = quality+got.quality[name], fairQuality+fair.quality[name]
		}
		for effect, reduction := range map[string]float64{
			effectBest:     best,
			effectQuality:  1 - quality/fairQuality,
			effectAll:      1 - sum/fairSum,
			effectMakespan: 1 - got.makespan/fair.makespan,
		} {
			effects[effect] = append(effects[effect], reduction)
		}
	}
	f.begin(fmt.Sprintf("weights, beta 2, losses every 10 s, %d random schedules of %s", randomSeeds, c.name), "")
	for _, t := range c.targets {
		f.addReductions(t.effect, reported(t.ratio), effects[t.effect])
	}
}

// paperJobs are the fixed schedule.
var paperJobs = []trainingJob{
	{name: "first", arrival: 0, work: 240, finalLoss: 0.1, decay: 0.08},
	{name: "second", arrival: 40, work: 120, finalLoss: 0.1, decay: 0.12},
	{name: "third", arrival: 80, work: 30, finalLoss: 0.05, decay: 0.35},
}

// randomJobs returns n jobs that arrive over a time.
func randomJobs(n int, overSeconds float64, seed uint64) []trainingJob {
	random := rand.New(rand.NewPCG(seed, 0))
	jobs := make([]trainingJob, n)
	for i := range jobs {
		arrival := overSeconds * random.Float64()
		work := []float64{20, 40, 80, 160}[random.IntN(4)]
		jobs[i] = trainingJob{
			name:      strconv.Itoa(i),
			arrival:   arrival,
			work:      work,
			finalLoss: 0.1,
			decay:     []float64{0.05, 0.08, 0.15, 0.35}[random.IntN(4)],
		}
		// Two more numbers are drawn, so that the schedules remain those of the published figures.
		random.Float64()
		random.NormFloat64()
	}
	return jobs
}
