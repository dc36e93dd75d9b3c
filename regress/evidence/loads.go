package evidence

import (
	"cmp"
	"math"
	"slices"
)

// Parameters of LoadVariance.
const (
	maxLoadRuns       = 200  // that count, the last ones in their order
	constantLoad      = 1.0  // weight of the prior that loads do not change, in runs
	maxLoadDeviation  = 0.5  // bound of the influence of one run
	leastLoadVariance = 1e-6 // smaller ones are rounding errors
)

// fitLoads compares the pace of each run under its loads with that under the foreign load of its start.
func (t *TimeModel) fitLoads(runs []Run) {
	of := map[string][]*Run{}
	var names []string
	for i := range runs {
		name := runs[i].comparedName()
		if len(of[name]) == 0 {
			names = append(names, name)
		}
		of[name] = append(of[name], &runs[i])
	}
	names = names[max(0, len(names)-maxLoadRuns):]
	if !slices.ContainsFunc(names, func(name string) bool { return len(of[name]) > 1 }) {
		return
	}
	p, ok := newTimePredictor(t)
	if !ok {
		return
	}
	squares, count := 0.0, constantLoad
	for _, name := range names {
		change := max(-maxLoadDeviation, min(maxLoadDeviation, p.loadChange(of[name])))
		squares += change * change
		count++
	}
	if v := squares / count; v > leastLoadVariance {
		t.LoadVariance = v
	}
}

// loadChange returns the log ratio of the pace of the parts of a run to their pace under the foreign load
// of the first one.
func (p *timePredictor) loadChange(parts []*Run) float64 {
	if len(parts) < 2 {
		return 0
	}
	first := slices.MinFunc(parts, func(a, b *Run) int { return cmp.Compare(a.firstEpoch(), b.firstEpoch()) })
	actual, constant := 0.0, 0.0
	for _, r := range parts {
		n, then := float64(len(r.Epochs)), r.Configuration
		then.ForeignCPURatio, then.ForeignIOWaitRatio = first.ForeignCPURatio, first.ForeignIOWaitRatio
		now, start := p.times(&r.Configuration), p.times(&then)
		actual += n * math.Exp(now.pace())
		constant += n * math.Exp(start.pace())
	}
	if !(actual > 0) || !(constant > 0) {
		return 0
	}
	return math.Log(actual / constant)
}

// firstEpoch returns the number of the first epoch of a run, whose epochs are sorted.
func (r *Run) firstEpoch() int {
	if len(r.Epochs) == 0 {
		return math.MaxInt
	}
	return r.Epochs[0].Number
}

// pace returns the log seconds per epoch after the first.
func (t *times) pace() float64 {
	if t.measured != nil {
		return t.measured.pace()
	}
	return t.estimate.mean
}

// loadVariance returns the variance of the log pace of some epochs because the load changes after the first.
func (t *TimeModel) loadVariance(epochs int) float64 {
	return t.LoadVariance * (1 - 1/float64(max(epochs, 1)))
}
