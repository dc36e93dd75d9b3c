package evidence

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// describe counts what a factor rests on. Its interval allows for the error that runs of a
// configuration share, and for how configurations deviate from the factor.
func (j *jumps) describe(a int, residuals []Residual) {
	f := &j.factors[a]
	weights, shared := map[Configuration]float64{}, map[Configuration]float64{}
	var weight, rest, squares, explained float64
	f.Runs, f.RestRuns, f.subjects, f.edge = 0, 0, map[subject]bool{}, 0
	for i := f.start; i < len(residuals); i++ {
		r := &residuals[i]
		squares += r.Value * r.Value / r.Variance
		if !f.Covers(&r.Configuration) {
			f.border(&r.Configuration)
			rest += r.Value
			f.RestRuns++
			continue
		}
		f.Runs++
		f.subjects[r.subject()] = true
		left := r.Value - f.shift
		explained += (r.Value*r.Value - left*left) / r.Variance
		weights[r.Configuration] += 1 / r.Variance
		weight += 1 / r.Variance
		shared[r.Configuration] = r.Shared
	}
	variance := j.inverse[a*len(j.factors)+a]
	for _, c := range slices.SortedFunc(maps.Keys(weights), compareConfigurations) {
		share := weights[c] / weight
		variance += share * share * (shared[c] + j.deviation)
	}
	f.Configurations = len(weights)
	f.Low = math.Exp(f.shift - intervalDeviations*math.Sqrt(variance))
	f.High = math.Exp(f.shift + intervalDeviations*math.Sqrt(variance))
	if f.RestRuns > 0 {
		f.RestRatio = math.Exp(rest / float64(f.RestRuns))
	}
	if squares > 0 {
		f.Explained = max(0, min(1, explained/squares))
	}
}

// border notes a configuration outside a range that ran since.
func (f *Factor) border(c *Configuration) {
	if c.Model != f.Model || c.Dataset != f.Dataset {
		return
	}
	if f.Kind == ScopeFrom && c.BatchSize > f.edge ||
		f.Kind == ScopeTo && (f.edge == 0 || c.BatchSize < f.edge) {
		f.edge = c.BatchSize
	}
}

// isBetween reports whether a configuration is between a range and what is known not to belong to
// it.
func (f *Factor) isBetween(c *Configuration) bool {
	if f.edge == 0 || c.Model != f.Model || c.Dataset != f.Dataset {
		return false
	}
	low, high := f.edge, f.BatchSize
	if f.Kind == ScopeTo {
		low, high = high, low
	}
	return low < c.BatchSize && c.BatchSize < high
}

// compareConfigurations orders configurations of any subjects.
func compareConfigurations(a, b Configuration) int {
	return cmp.Or(a.subject().compare(b.subject()), a.compare(b))
}

// suspect is a shift that one run shows, of those of its model on a node type the last that was far
// off. Another run will confirm or refute it. Until then a part of it is corrected where the same
// factors hold, the less the more runs were as expected since, and between their batch sizes. Its
// variance is that of all or nothing.
type suspect struct {
	scope           Scope
	holding         uint // a bit for each factor
	above           int  // batch size; 0: no bound
	below           int
	shift, variance float64
}

// patience is how many runs of the model a suspect waits for another one.
const patience = 8

// covers reports whether a suspect is one for a configuration.
func (s *suspect) covers(c *Configuration) bool {
	return s.scope.Covers(c) && c.BatchSize > s.above && (s.below == 0 || c.BatchSize < s.below)
}

// suspect finds the suspects.
func (j *jumps) suspect(residuals []Residual, earlier []level) {
	type key struct {
		scope   Scope
		holding uint
	}
	expected := map[key][]int{} // batch sizes of later runs that were as expected
	done := map[key]bool{}
	for i := len(residuals) - 1; i >= 0; i-- {
		r := &residuals[i]
		s := Scope{Kind: ScopeModelNode, Model: r.Model, Dataset: r.Dataset, NodeType: r.NodeType}
		k := key{s, j.covering(&r.Configuration)}
		later := expected[k]
		if done[k] || len(later) > patience {
			continue
		}
		off := j.left[i] - earlier[i].clipped
		if math.Abs(off) < alarm*math.Sqrt(r.Variance-r.Shared+earlier[i].variance) {
			expected[k] = append(later, r.BatchSize)
			continue
		}
		done[k] = true
		odds := oneShows / float64(1+len(later))
		share := odds / (odds + 1)
		x := suspect{scope: s, holding: k.holding, shift: share * off,
			variance: share * (1 - share) * off * off}
		if x.narrow(r.BatchSize, later) {
			j.suspects = append(j.suspects, x)
		}
	}
}

// narrow bounds a suspect by the batch sizes that were as expected since; false if they refute it.
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

// shareOf is the probability that a shift holds for what has not run since, if so many showed it.
func shareOf(n int) float64 {
	odds := oneShows * float64(n*n)
	return odds / (odds + 1)
}

// share is shareOf for a configuration in scope.
func (f *Factor) share(c *Configuration) float64 {
	if f.subjects[c.subject()] {
		return shareOf(f.Configurations)
	}
	return shareOf(len(f.subjects))
}

// at returns the shift of a configuration, its variance, and how many factors hold.
//
// Where the configuration has not run since, a factor holds with a probability that grows with the
// number of configurations that showed it; where its model has not, with the number of models.
//
// learned is the end of a run that is part of what is corrected: only later jumps count.
func (j *jumps) at(c *Configuration, learned time.Time) (shift, variance float64, factors int) {
	n, bits := len(j.factors), j.covering(c)
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
				variance += j.inverse[a*n+b]
			}
		}
	}
	variance = max(variance, 0)
	for a := range j.factors {
		if f := &j.factors[a]; bits&(1<<a) == 0 && f.isBetween(c) && !f.Since.Before(learned) {
			shift += f.shift / 2 // with even odds
			variance += f.shift * f.shift / 4
		}
	}
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
