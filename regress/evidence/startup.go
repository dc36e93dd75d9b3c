package evidence

import (
	"fmt"
	"math"
)

// StartupTimes is what runs of a subject on one node type showed about the time
// from the start to the first epoch's begin.
type StartupTimes struct {
	NodeType string `json:"node_type,omitempty"`
	Runs     int    `json:"runs"`
	// Mean of the log seconds and the sum of Squares about it.
	Mean    float64 `json:"mean"`
	Squares float64 `json:"squares"`
	// Variance of one run, shrunk to that of all subjects, with Degrees of freedom.
	Variance float64 `json:"variance"`
	Degrees  float64 `json:"degrees"`
}

const (
	// priorStartupDeviation is wide: a first start reads from a cold disk.
	priorStartupDeviation = 0.4
	priorStartupDegrees   = 4.0
	// otherNodeDeviation is that of a start-up that was only seen on other node types.
	otherNodeDeviation = 0.7
	leastStartup       = 1e-3 // seconds
)

func (s *StartupTimes) check() error {
	if s.Runs < 1 || !(math.Abs(s.Mean) < 100) || !(s.Squares >= 0) ||
		!(s.Variance > 0) || s.Variance > 1e6 || !(s.Degrees > 0) {
		return fmt.Errorf("%d runs, mean %g, variance %g, degrees %g",
			s.Runs, s.Mean, s.Variance, s.Degrees)
	}
	return nil
}

// measureStartups sums up the start-ups of one subject by node type, in order.
func measureStartups(runs []Run) []StartupTimes {
	var all []StartupTimes
	for i := range runs { // sorted by node type
		r := &runs[i]
		if !believable(r.StartupSeconds) {
			continue
		}
		if n := len(all); n == 0 || all[n-1].NodeType != r.NodeType {
			all = append(all, StartupTimes{NodeType: r.NodeType})
		}
		s := &all[len(all)-1]
		s.Runs++
		y := math.Log(max(r.StartupSeconds, leastStartup))
		d := y - s.Mean
		s.Mean += d / float64(s.Runs)
		s.Squares += d * (y - s.Mean)
	}
	return all
}

func startupSpread(all []StartupTimes) (sum spread) {
	for i := range all {
		sum.add(spread{all[i].Squares, float64(all[i].Runs - 1)})
	}
	return sum
}

// shareStartupVariance sets the variances of one subject: its own squares, shrunk to
// those of all subjects, shrunk to the prior.
func shareStartupVariance(own []StartupTimes, all spread) {
	prior := all.shrunken(priorStartupDeviation*priorStartupDeviation, priorStartupDegrees)
	sum := startupSpread(own)
	for i := range own {
		own[i].Variance = sum.shrunken(prior, priorStartupDegrees)
		own[i].Degrees = priorStartupDegrees + sum.freedom
	}
}

// startup returns the distribution of the start-up seconds of a subject on a node
// type; its scale is 0 if no start-up was ever seen.
func (s *Subject) startup(nodeType string) Distribution {
	mean, runs := 0.0, 0.0
	for i := range s.Startup {
		u := &s.Startup[i]
		if u.NodeType == nodeType {
			scale := math.Sqrt(u.Variance * (1 + 1/float64(u.Runs)))
			return Distribution{u.Mean, scale, u.Degrees}
		}
		runs += float64(u.Runs)
		mean += float64(u.Runs) * (u.Mean - mean) / runs
	}
	if runs == 0 {
		return Distribution{}
	}
	variance := s.Startup[0].Variance + otherNodeDeviation*otherNodeDeviation
	return Distribution{mean, math.Sqrt(variance), priorStartupDegrees}
}

// StartupRuns returns how many runs of a model showed their start-up: on the node type, and on
// all.
func (p *Predictor) StartupRuns(c Configuration) (onNodeType, all int) {
	s := p.subjects[c.subject()]
	if s == nil {
		return 0, 0
	}
	for i := range s.Startup {
		u := &s.Startup[i]
		if all += u.Runs; u.NodeType == c.NodeType {
			onNodeType = u.Runs
		}
	}
	return onNodeType, all
}

// Plus is the distribution of the sum of two independent durations, by the delta
// method: its log has the variances of the logs, weighted by the squared shares of the
// medians, and degrees of freedom by Welch and Satterthwaite.
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
	return Distribution{math.Log(total), math.Sqrt(sum), sum * sum / (a*a/d.Degrees + b*b/e.Degrees)}
}
