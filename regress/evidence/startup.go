package evidence

import (
	"fmt"
	"math"
)

// StartupTimes summarizes the time from the start to the first epoch of the runs of a subject on
// one node type.
type StartupTimes struct {
	NodeType string `json:"node_type,omitempty"`
	Runs     int    `json:"runs"` // that count; see measureStartup
	// Location of the log seconds and its variance, Variance of one run and its Degrees of freedom.
	Location         float64 `json:"location"`
	LocationVariance float64 `json:"location_variance"`
	Variance         float64 `json:"variance"`
	Degrees          float64 `json:"degrees"`

	logs []float64
}

const (
	// priorStartupDeviation is wide: a first start reads from a cold disk.
	priorStartupDeviation = 0.3
	minStartupDeviation   = 0.02
	// otherNodeDeviation is the deviation of a start-up that was measured on other node types only.
	otherNodeDeviation = 0.7
	minStartup         = 1e-3 // seconds
)

func (s *StartupTimes) check() error {
	if s.Runs < 1 || !(math.Abs(s.Location) < 100) || !(s.LocationVariance >= 0) ||
		!(s.Variance > 0) || s.Variance > 1e6 || !(s.Degrees > 0) {
		return fmt.Errorf("start-up with %d runs, location %g, variance %g and degrees %g is invalid",
			s.Runs, s.Location, s.Variance, s.Degrees)
	}
	return nil
}

// measureStartups collects the start-ups of one subject by node type. Runs are sorted by it.
func measureStartups(runs []Run) (all []StartupTimes) {
	for i := 0; i < len(runs); {
		first := i
		for i < len(runs) && runs[i].NodeType == runs[first].NodeType {
			i++
		}
		s := StartupTimes{NodeType: runs[first].NodeType, logs: startupLogs(runs[first:i])}
		if s.Runs = len(s.logs); s.Runs > 0 {
			all = append(all, s)
		}
	}
	return all
}

// startupLogs returns the log start-ups of runs. The first start on a node type reads programs from
// a cold disk and fills caches of compilers, which is not repeated. So it counts only until there is
// a second one.
func startupLogs(runs []Run) (logs []float64) {
	first := -1
	for i := range runs {
		if !isStartup(runs[i].StartupSeconds) {
			continue
		}
		if first < 0 || runs[i].StartedAt.Before(runs[first].StartedAt) {
			first = i
		}
		logs = append(logs, math.Log(max(runs[i].StartupSeconds, minStartup)))
	}
	if len(logs) < 2 || runs[first].StartedAt.IsZero() {
		return logs
	}
	logs = logs[:0]
	for i := range runs {
		if i != first && isStartup(runs[i].StartupSeconds) {
			logs = append(logs, math.Log(max(runs[i].StartupSeconds, minStartup)))
		}
	}
	return logs
}

// isStartup reports whether a start-up was measured. It may be short: nothing is loaded.
func isStartup(seconds float64) bool { return seconds > 0 && seconds <= maxSeconds }

// spread returns the squares of the start-ups.
func (s *StartupTimes) spread() spread {
	return spread{sumOfSquares(centered(clipAround(s.logs, maxDeviation))), float64(len(s.logs) - 1)}
}

// startupPrior pools the start-ups of a subject.
func startupPrior(own []StartupTimes) spread {
	groups := make([]spread, len(own))
	for i := range own {
		groups[i] = own[i].spread()
	}
	const prior = priorStartupDeviation * priorStartupDeviation
	return spread{mostLent * pool(groups, modelWeight, prior, poolWeight, mostLent), mostLent}
}

// fitStartups estimates the start-ups of one subject, given those of the other subjects.
func fitStartups(own []StartupTimes, others []spread) {
	const prior = priorStartupDeviation * priorStartupDeviation
	model := pool(others, poolWeight, prior, 4*mostLent, mostLent)
	for i := range own {
		s := &own[i]
		var groups []spread
		for k := range own {
			if k != i {
				groups = append(groups, own[k].spread())
			}
		}
		pooled := pool(groups, modelWeight, model, poolWeight, mostLent)
		r := robustMeanOf(clipAround(s.logs, maxDeviation), pooled, modelWeight, robustTails, nil)
		s.Degrees = modelWeight + float64(s.Runs-1)
		s.Variance = max((modelWeight*pooled+r.squares)/s.Degrees, minStartupDeviation*minStartupDeviation)
		s.Location, s.LocationVariance = r.location, s.Variance/r.number
	}
}
