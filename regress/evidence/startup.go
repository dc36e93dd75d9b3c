package evidence

import (
	"math"
	"slices"
)

const (
	// otherNodeDeviation is the deviation of a start-up that was measured on other node types only.
	otherNodeDeviation = 0.7
	minStartup         = 1e-3 // seconds
)

// startupVariance is wide, because a first start reads from a cold disk, and soon gives way to measured ones.
var startupVariance = sharedVariance{prior: 0.15 * 0.15, weight: 1}

// fitStartups estimates the start-ups of one subject by node type, as curves of one epoch. Runs are
// sorted by node type.
func fitStartups(runs []Run) (all []ConfigurationTimes) {
	var measured []*measuredTimes
	for i := 0; i < len(runs); {
		first := i
		for i < len(runs) && runs[i].NodeType == runs[first].NodeType {
			i++
		}
		if curves := startupCurves(runs[first:i]); len(curves) > 0 {
			s := runs[first].subject()
			c := Configuration{Model: s.model, Dataset: s.dataset, NodeType: runs[first].NodeType}
			measured = append(measured, newMeasuredTimes(c, curves))
		}
	}
	for i := range measured {
		all = append(all, fitCurve(measured, i, startupVariance))
	}
	return all
}

// startupCurves returns the start-ups of runs. The first start on a node type reads programs from a
// cold disk and fills caches of compilers, which is not repeated. So it counts only until there is a
// second one, unless it was not clearly slower than that.
func startupCurves(runs []Run) (curves []runCurve) {
	measured := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		return !(r.StartupSeconds > 0 && r.StartupSeconds <= maxSeconds)
	})
	slices.SortStableFunc(measured, func(a, b Run) int { return a.StartedAt.Compare(b.StartedAt) })
	const cold = 1.1 // times the second start
	if len(measured) > 1 && !measured[0].StartedAt.IsZero() &&
		measured[0].StartupSeconds > cold*measured[1].StartupSeconds {
		measured = measured[1:]
	}
	for i := range measured {
		curves = append(curves, runCurve{sums: []float64{max(measured[i].StartupSeconds, minStartup)}})
	}
	return curves
}

// startup returns the distribution of the start-up seconds of a subject on a node type; its scale
// is 0 if no start-up was measured.
func (s *Subject) startup(nodeType string) Distribution {
	mean, runs := 0.0, 0.0
	for i := range s.Startup {
		u := &s.Startup[i]
		if u.NodeType == nodeType {
			d := u.point(0).distribution()
			d.Degrees = max(d.Degrees, restDegrees) // a sum would reach less far than a part with heavier tails
			return d
		}
		runs += float64(u.Runs)
		mean += float64(u.Runs) * (u.Location[0] - mean) / runs
	}
	if runs == 0 {
		return Distribution{}
	}
	variance := s.Startup[0].RunVariance[0] + otherNodeDeviation*otherNodeDeviation
	return Distribution{mean, math.Sqrt(variance), modelWeight}
}
