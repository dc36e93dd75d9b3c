package evidence

import (
	"maps"
	"math"
	"slices"
	"time"
)

// describe counts the evidence of a factor and computes its interval. The interval allows for the
// error that runs of a configuration share, and for the deviation of configurations from the
// factor.
func (j *jumps) describe(a int, residuals []Residual) {
	f := &j.factors[a]
	weights, shared := map[Configuration]float64{}, map[Configuration]float64{}
	weight := 0.0
	f.Runs, f.subjects = 0, map[subject]bool{}
	for i := range residuals {
		r := &residuals[i]
		if !f.holds(i, r) {
			continue
		}
		f.Runs++
		f.subjects[r.subject()] = true
		weights[r.Configuration] += 1 / r.Variance
		weight += 1 / r.Variance
		shared[r.Configuration] = r.Shared
	}
	variance := j.inverse.At(a, a)
	for _, c := range slices.SortedFunc(maps.Keys(weights), Configuration.compare) {
		share := weights[c] / weight
		variance += share * share * (shared[c] + j.deviation)
	}
	f.Configurations = len(weights)
	f.Low = math.Exp(f.shift - intervalDeviations*math.Sqrt(variance))
	f.High = math.Exp(f.shift + intervalDeviations*math.Sqrt(variance))
}

// suspect is a shift that a single run shows: the last run of its model on a node type with a large
// residual. Another run will confirm or refute it. Until then a part of it is corrected, for
// configurations with the same factors and between the refuting batch sizes. The part decreases
// with each later run without the shift. The variance covers both outcomes, all or nothing.
type suspect struct {
	scope           Scope
	holding         uint // bit set of the factors
	above           int  // the shift applies only to batch sizes above this; 0: no limit
	below           int  // the shift applies only to batch sizes below this; 0: no limit
	shift, variance float64
}

// maxExpectedRuns is the number of later runs without the shift after which a suspect is dropped.
const maxExpectedRuns = 8

// covers reports whether a suspect applies to a configuration.
func (s *suspect) covers(c *Configuration) bool {
	return s.scope.Covers(c) && c.BatchSize > s.above && (s.below == 0 || c.BatchSize < s.below)
}

// suspect finds the suspects.
func (j *jumps) suspect(residuals []Residual, earlier []residualLevel) {
	type key struct {
		scope   Scope
		holding uint
	}
	expected := map[key][]int{} // batch sizes of later runs without the shift
	done := map[key]bool{}
	for i := len(residuals) - 1; i >= 0; i-- {
		r := &residuals[i]
		s := Scope{Kind: ScopeModelNode, Model: r.Model, Dataset: r.Dataset, NodeType: r.NodeType}
		k := key{s, j.covering(&r.Configuration)}
		later := expected[k]
		if done[k] || len(later) > maxExpectedRuns {
			continue
		}
		off := j.remaining[i] - earlier[i].mean
		if math.Abs(off) < alarmThreshold*math.Sqrt(r.Variance-r.Shared+earlier[i].variance) {
			expected[k] = append(later, r.BatchSize)
			continue
		}
		done[k] = true
		odds := singleOdds / float64(1+len(later))
		share := odds / (odds + 1)
		x := suspect{scope: s, holding: k.holding, shift: share * off,
			variance: share * (1 - share) * off * off}
		if x.narrow(r.BatchSize, later) {
			j.suspects = append(j.suspects, x)
		}
	}
}

// narrow bounds a suspect by the batch sizes of later runs without the shift; false if they refute
// it.
func (s *suspect) narrow(batchSize int, expected []int) bool {
	for _, b := range expected {
		switch {
		case b == batchSize:
			return false
		case b < batchSize:
			s.above = max(s.above, b)
		case s.below == 0 || b < s.below:
			s.below = b
		}
	}
	return s.above == 0 || s.below == 0
}

// shareOf is the probability that a shift applies to a case without later runs, if n others showed
// it.
func shareOf(n int) float64 {
	odds := singleOdds * float64(n*n)
	return odds / (odds + 1)
}

// share is shareOf for a configuration in scope.
func (f *Factor) share(c *Configuration) float64 {
	if f.subjects[c.subject()] {
		return shareOf(f.Configurations)
	}
	return shareOf(len(f.subjects))
}

// at returns the shift of a configuration, its variance, and the number of factors that apply.
//
// A factor applies to a configuration without later runs with a probability that grows with the
// number of configurations that showed it; to a model without later runs with the number of models.
//
// If learned is not zero, the prediction includes runs up to then: only later jumps count.
func (j *jumps) at(c *Configuration, learned time.Time) (shift, variance float64, factors int) {
	bits := j.covering(c)
	for a := range j.factors {
		if !j.factors[a].Since.After(learned) && !learned.IsZero() {
			bits &^= 1 << a
		}
	}
	own, ran := j.own[*c]
	for a := range j.factors {
		if bits&(1<<a) == 0 {
			continue
		}
		factors++
		f := &j.factors[a]
		share := 1.0
		if !ran {
			share = f.share(c)
		}
		shift += share * f.shift
		variance += share * (1 - share) * f.shift * f.shift
		for b := range j.factors {
			if bits&(1<<b) != 0 {
				variance += j.inverse.At(a, b)
			}
		}
	}
	variance = max(variance, 0)
	for i := range j.suspects {
		if s := &j.suspects[i]; s.holding == bits && s.covers(c) {
			shift += s.shift
			variance += s.variance
		}
	}
	if factors == 0 {
		return shift, variance, 0
	}
	if !ran {
		own[1] = j.deviation
	}
	return shift + own[0], variance + own[1], factors
}
