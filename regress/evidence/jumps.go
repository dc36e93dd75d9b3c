package evidence

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

const (
	alarmThreshold = 6.0 // in standard deviations
	maxFactors     = 4
	minRunsInScope = 2
	ridgeDeviation = 0.4 // prior of a factor's log
	// maxSurprise is the maximum evidence of one run, in standard deviations. It is below the alarm
	// threshold, so that one disturbed run raises no alarm.
	maxSurprise = 5.0

	intervalDeviations = 1.96 // of 95 %
	factorDeviation    = 0.05 // of a configuration from its factor
)

// jumps are the factors found in a window of residuals.
type jumps struct {
	residuals []Residual
	factors   []Factor
	inverse   mat.SymDense // covariance of the factors' logs
	remaining []float64    // residuals without factors
}

// Factors returns the active factors in the order in which they were found: one after another, each for
// the scope and start with the strongest evidence. All found factors are estimated jointly (ridge
// regression).
func (d *DriftState) Factors() []Factor {
	j := &jumps{residuals: d.Residuals, remaining: make([]float64, len(d.Residuals))}
	for i := range j.residuals {
		j.remaining[i] = j.residuals[i].Value
	}
	scopes := scopesOf(j.residuals)
	for len(j.factors) < maxFactors {
		var best Factor
		earlier := j.levels()
		for i := range scopes {
			f := j.strongest(&scopes[i], earlier)
			if i == 0 || f.Evidence-f.penalty() > best.Evidence-best.penalty() {
				best = f
			}
		}
		if best.Runs == 0 {
			break
		}
		first := &j.residuals[best.start]
		best.Since, best.StartedAt = first.At, first.StartedAt
		j.factors = append(j.factors, best)
		if !j.estimate() {
			j.factors = j.factors[:len(j.factors)-1]
			break
		}
	}
	for a := range j.factors {
		j.describe(a)
	}
	return j.factors
}

// driftSum sums the residuals of one configuration, each limited to maxSurprise so that one disturbed run is
// never mistaken for a change.
type driftSum struct{ sum, n, noise float64 }

func (t *driftSum) add(r *Residual, left float64) {
	t.n++
	most := maxSurprise * math.Sqrt(r.Variance)
	t.sum += max(-most, min(most, left))
	t.noise += (r.Variance - r.Shared - t.noise) / t.n
	t.noise = max(t.noise, residualTolerance)
}

// residualLevel is the expected residual of a configuration by its earlier runs: the mean and its variance.
type residualLevel struct{ mean, variance float64 }

// levels returns for each residual the level of its configuration before it, from runs with the
// same factors. Without such runs it is 0, with the variance of the error that all runs of the
// configuration share and of its deviation from the factors.
func (j *jumps) levels() []residualLevel {
	type regime struct {
		Configuration
		holding uint
	}
	tallies := map[regime]*driftSum{}
	all := make([]residualLevel, len(j.residuals))
	for i := range j.residuals {
		r := &j.residuals[i]
		holding := j.holding(i, r)
		k := regime{r.Configuration, holding}
		if tallies[k] == nil {
			tallies[k] = &driftSum{}
		}
		t := tallies[k]
		prior := r.Shared
		if holding != 0 {
			prior += factorDeviation * factorDeviation
		}
		l := residualLevel{variance: prior}
		if t.n > 0 && prior > 0 {
			share := prior / (prior + t.noise/t.n)
			l = residualLevel{share * t.sum / t.n, share * t.noise / t.n}
		}
		all[i] = l
		t.add(r, j.remaining[i])
	}
	return all
}

// holding returns the bit set of the factors that apply to a residual.
func (j *jumps) holding(i int, r *Residual) (bits uint) {
	for a := range j.factors {
		if j.factors[a].holds(i, r) {
			bits |= 1 << a
		}
	}
	return bits
}

// strongest returns the factor with the start of strongest evidence for a scope, among the starts
// whose evidence suffices; a factor without runs if there is none. Each configuration is compared
// with its own earlier level, so many runs of one configuration are less evidence than runs of many.
func (j *jumps) strongest(s *Scope, earlier []residualLevel) Factor {
	type tally struct {
		driftSum
		weighted, precision float64 // its part of the sums below
	}
	best := Factor{Scope: *s}
	tallies := map[Configuration]*tally{}
	var weighted, precision float64
	runs := 0
	for i := len(j.residuals) - 1; i >= 0; i-- {
		r := &j.residuals[i]
		if !s.Covers(&r.Configuration) {
			continue
		}
		if tallies[r.Configuration] == nil {
			tallies[r.Configuration] = &tally{}
		}
		t, l := tallies[r.Configuration], &earlier[i]
		t.add(r, j.remaining[i])
		weighted, precision = weighted-t.weighted, precision-t.precision
		t.precision = 1 / (t.noise/t.n + l.variance)
		t.weighted = t.precision * (t.sum/t.n - l.mean)
		weighted, precision = weighted+t.weighted, precision+t.precision
		if runs++; runs < minRunsInScope {
			continue
		}
		z := math.Abs(weighted) / math.Sqrt(precision)
		if z > best.Evidence && z-s.penalty() >= alarmThreshold {
			best.Evidence, best.start, best.Runs = z, i, runs
		}
	}
	return best
}

// holds reports whether a factor applies to residual i.
func (f *Factor) holds(i int, r *Residual) bool {
	return i >= f.start && f.Covers(&r.Configuration)
}

// estimate computes all factors by ridge regression, and the remaining residuals; false, without any
// change, if it cannot.
func (j *jumps) estimate() bool {
	n := len(j.factors)
	normal, right, shifts := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for a := range n {
		normal.SetSym(a, a, 1/(ridgeDeviation*ridgeDeviation))
	}
	for i := range j.residuals {
		r := &j.residuals[i]
		for a := range n {
			if !j.factors[a].holds(i, r) {
				continue
			}
			right.SetVec(a, right.AtVec(a)+r.Value/r.Variance)
			for b := range a + 1 {
				if j.factors[b].holds(i, r) {
					normal.SetSym(a, b, normal.At(a, b)+1/r.Variance)
				}
			}
		}
	}
	var c mat.Cholesky
	var inverse mat.SymDense
	if !c.Factorize(normal) || c.SolveVecTo(shifts, right) != nil || c.InverseTo(&inverse) != nil {
		return false
	}
	j.inverse = inverse
	for a := range n {
		x := shifts.AtVec(a)
		j.factors[a].shift, j.factors[a].Ratio = x, math.Exp(x)
	}
	for i := range j.residuals {
		j.remaining[i] = j.residuals[i].Value
		for a := range j.factors {
			if j.factors[a].holds(i, &j.residuals[i]) {
				j.remaining[i] -= j.factors[a].shift
			}
		}
	}
	return true
}

// describe counts the evidence of a factor and computes its interval. The interval allows for the
// error that runs of a configuration share, and for the deviation of configurations from the
// factor.
func (j *jumps) describe(a int) {
	f := &j.factors[a]
	weights, shared := map[Configuration]float64{}, map[Configuration]float64{}
	weight := 0.0
	f.Runs = 0
	for i := range j.residuals {
		r := &j.residuals[i]
		if !f.holds(i, r) {
			continue
		}
		f.Runs++
		weights[r.Configuration] += 1 / r.Variance
		weight += 1 / r.Variance
		shared[r.Configuration] = r.Shared
	}
	variance := j.inverse.At(a, a)
	for _, c := range slices.SortedFunc(maps.Keys(weights), Configuration.compare) {
		share := weights[c] / weight
		variance += share * share * (shared[c] + factorDeviation*factorDeviation)
	}
	f.Configurations = len(weights)
	f.Low = math.Exp(f.shift - intervalDeviations*math.Sqrt(variance))
	f.High = math.Exp(f.shift + intervalDeviations*math.Sqrt(variance))
}
