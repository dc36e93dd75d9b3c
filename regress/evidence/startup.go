package evidence

import (
	"math"
	"slices"
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
	minStartupDeviation = 0.02
	// otherNodeDeviation is the deviation of a start-up that was measured on other node types only.
	otherNodeDeviation = 0.7
	minStartup         = 1e-3 // seconds
)

// startupVariance is wide: a first start reads from a cold disk.
var startupVariance = sharedVariance{prior: 0.3 * 0.3, weight: 4}

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
	measured := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		return !(r.StartupSeconds > 0 && r.StartupSeconds <= maxSeconds)
	})
	slices.SortStableFunc(measured, func(a, b Run) int { return a.StartedAt.Compare(b.StartedAt) })
	if len(measured) > 1 && !measured[0].StartedAt.IsZero() {
		measured = measured[1:]
	}
	for i := range measured {
		logs = append(logs, math.Log(max(measured[i].StartupSeconds, minStartup)))
	}
	return logs
}

func startupSpreads(own []StartupTimes) []spread {
	groups := make([]spread, len(own))
	for i := range own {
		groups[i] = spread{clippedSquares(own[i].logs), float64(len(own[i].logs) - 1)}
	}
	return groups
}

// fitStartups estimates the start-ups of one subject.
func fitStartups(own []StartupTimes) []StartupTimes {
	groups := startupSpreads(own)
	for i := range own {
		s := &own[i]
		pooled, weight := startupVariance.ofOthers(groups, i, startupVariance.prior)
		r := robustMeanOf(clipAround(s.logs, maxDeviation), pooled, weight, robustTails, nil)
		s.Degrees = weight + groups[i].freedom
		s.Variance = max((weight*pooled+r.squares)/s.Degrees, minStartupDeviation*minStartupDeviation)
		s.Location, s.LocationVariance = r.location, s.Variance/r.number
	}
	return own
}
