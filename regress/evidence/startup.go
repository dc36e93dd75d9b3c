package evidence

import (
	"fmt"
	"math"
)

// StartupTimes summarizes the time from the start to the first epoch of the runs of a subject on
// one node type.
type StartupTimes struct {
	NodeType string `json:"node_type,omitempty"`
	Runs     int    `json:"runs"` // that count; see measureStartups
	// Mean of the log seconds and the sum of Squares about it.
	Mean    float64 `json:"mean"`
	Squares float64 `json:"squares"`
	// Variance of one run, shrunk towards the variance of all subjects, with Degrees of freedom.
	Variance float64 `json:"variance"`
	Degrees  float64 `json:"degrees"`
}

const (
	// priorStartupDeviation is wide: a first start reads from a cold disk.
	priorStartupDeviation = 0.4
	priorStartupDegrees   = 4.0
	// otherNodeDeviation is the deviation of a start-up that was measured on other node types only.
	otherNodeDeviation = 0.7
	minStartup         = 1e-3 // seconds
)

func (s *StartupTimes) check() error {
	if s.Runs < 1 || !(math.Abs(s.Mean) < 100) || !(s.Squares >= 0) ||
		!(s.Variance > 0) || s.Variance > 1e6 || !(s.Degrees > 0) {
		return fmt.Errorf("start-up with %d runs, mean %g, variance %g and degrees %g is invalid",
			s.Runs, s.Mean, s.Variance, s.Degrees)
	}
	return nil
}

// measureStartups summarizes the start-ups of one subject by node type. The first start on a node
// type reads programs from a cold disk and fills caches of compilers, which is not repeated. So it
// counts only until there is a second one.
func measureStartups(runs []Run) []StartupTimes {
	var measured []Run
	for i := range runs { // sorted by node type
		if isPlausible(runs[i].StartupSeconds) {
			measured = append(measured, runs[i])
		}
	}
	var all []StartupTimes
	for len(measured) > 0 {
		onType := measured[:1]
		for len(onType) < len(measured) && measured[len(onType)].NodeType == onType[0].NodeType {
			onType = measured[:len(onType)+1]
		}
		all = append(all, measureStartup(onType))
		measured = measured[len(onType):]
	}
	return all
}

// measureStartup summarizes the start-ups of one subject on one node type.
func measureStartup(runs []Run) StartupTimes {
	first := 0
	for i := range runs {
		if runs[i].StartedAt.Before(runs[first].StartedAt) {
			first = i
		}
	}
	isCold := len(runs) > 1 && !runs[first].StartedAt.IsZero()
	s := StartupTimes{NodeType: runs[0].NodeType}
	for i := range runs {
		if isCold && i == first {
			continue
		}
		s.Runs++
		y := math.Log(max(runs[i].StartupSeconds, minStartup))
		d := y - s.Mean
		s.Mean += d / float64(s.Runs)
		s.Squares += d * (y - s.Mean)
	}
	return s
}

func startupSpread(all []StartupTimes) (sum spread) {
	for i := range all {
		sum.add(spread{all[i].Squares, float64(all[i].Runs - 1)})
	}
	return sum
}

// shareStartupVariance sets the variances of one subject: its own squares, shrunk towards the
// squares of all subjects, which are shrunk towards the prior.
func shareStartupVariance(own []StartupTimes, all spread) {
	prior := all.shrunk(priorStartupDeviation*priorStartupDeviation, priorStartupDegrees)
	sum := startupSpread(own)
	for i := range own {
		own[i].Variance = sum.shrunk(prior, priorStartupDegrees)
		own[i].Degrees = priorStartupDegrees + sum.freedom
	}
}

// Plus returns the distribution of the sum of two independent durations by the delta method. The
// variance of its log is the sum of the variances of the logs, weighted by the squared shares of
// the medians. The degrees of freedom follow Welch and Satterthwaite.
func (d Distribution) Plus(e Distribution) Distribution {
	if !e.Known() {
		return d
	}
	total := d.Median() + e.Median()
	if !(total > 0) || math.IsInf(total, 0) {
		return d
	}
	a, b := d.Scale*d.Median()/total, e.Scale*e.Median()/total
	a, b = a*a, b*b
	sum := a + b
	return Distribution{
		Location: math.Log(total),
		Scale:    math.Sqrt(sum),
		Degrees:  sum * sum / (a*a/d.Degrees + b*b/e.Degrees),
	}
}
