package evidence

import (
	"math"

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
	// singleOdds are the odds that a shift shown by one case applies to others; shown by n cases,
	// the odds are n^2 times as high.
	singleOdds = 1.5

	intervalDeviations = 1.96 // of 95 %

	priorDeviation  = 0.05 // of a configuration from its factor
	deviationWeight = 2.0
)

// jumps are the factors found in a window of residuals.
type jumps struct {
	factors   []Factor
	inverse   mat.SymDense // covariance of the factors' logs
	remaining []float64    // residuals without factors and deviations
	deviation float64      // variance of a configuration from its factors
	own       map[Configuration][2]float64
	suspects  []suspect
}

// findJumps finds factors one after another, each for the scope and start with the strongest
// evidence, and estimates all found factors jointly (ridge regression).
func findJumps(residuals []Residual) *jumps {
	residuals = residuals[max(0, len(residuals)-MaxResiduals):]
	j := &jumps{remaining: make([]float64, len(residuals)), own: map[Configuration][2]float64{}}
	for i := range residuals {
		j.remaining[i] = residuals[i].Value
	}
	scopes, earlier := scopesOf(residuals), j.levels(residuals)
	for len(j.factors) < maxFactors {
		var best Factor
		for i := range scopes {
			f := j.strongest(&scopes[i], residuals, earlier)
			if i == 0 || f.Evidence-f.penalty() > best.Evidence-best.penalty() {
				best = f
			}
		}
		if best.Runs == 0 {
			break
		}
		best.Since, best.StartedAt = residuals[best.start].At, residuals[best.start].StartedAt
		j.factors = append(j.factors, best)
		if !j.estimate(residuals) {
			j.factors = j.factors[:len(j.factors)-1]
			break
		}
		j.deviations(residuals)
		earlier = j.levels(residuals)
	}
	for a := range j.factors {
		j.describe(a, residuals)
	}
	j.suspect(residuals, earlier)
	for i := range residuals {
		if j.holding(i, &residuals[i]) != 0 {
			j.remaining[i] -= j.own[residuals[i].Configuration][0]
		}
	}
	return j
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
func (j *jumps) levels(residuals []Residual) []residualLevel {
	type regime struct {
		Configuration
		holding uint
	}
	tallies := map[regime]*driftSum{}
	all := make([]residualLevel, len(residuals))
	for i := range residuals {
		r := &residuals[i]
		holding := j.holding(i, r)
		k := regime{r.Configuration, holding}
		if tallies[k] == nil {
			tallies[k] = &driftSum{}
		}
		t := tallies[k]
		prior := r.Shared
		if holding != 0 {
			prior += j.deviation
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
func (j *jumps) strongest(s *Scope, residuals []Residual, earlier []residualLevel) Factor {
	type tally struct {
		driftSum
		weighted, precision float64 // its part of the sums below
	}
	best := Factor{Scope: *s}
	tallies := map[Configuration]*tally{}
	var weighted, precision float64
	runs := 0
	for i := len(residuals) - 1; i >= 0; i-- {
		r := &residuals[i]
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
func (j *jumps) estimate(residuals []Residual) bool {
	n := len(j.factors)
	normal, right, shifts := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for a := range n {
		normal.SetSym(a, a, 1/(ridgeDeviation*ridgeDeviation))
	}
	for i := range residuals {
		r := &residuals[i]
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
	for i := range residuals {
		j.remaining[i] = residuals[i].Value
		for a := range j.factors {
			if j.factors[a].holds(i, &residuals[i]) {
				j.remaining[i] -= j.factors[a].shift
			}
		}
	}
	return true
}

// covering returns the bit set of the factors whose scope contains a configuration.
func (j *jumps) covering(c *Configuration) (bits uint) {
	for a := range j.factors {
		if j.factors[a].Covers(c) {
			bits |= 1 << a
		}
	}
	return bits
}

// deviations estimates how configurations in scope deviate from their factors: shrunken means of
// the remaining residuals, with a variance by the method of moments.
func (j *jumps) deviations(residuals []Residual) {
	tallies := map[Configuration]*driftSum{}
	var order []Configuration
	for i := range residuals {
		r := &residuals[i]
		if j.holding(i, r) == 0 {
			continue
		}
		t := tallies[r.Configuration]
		if t == nil {
			t = &driftSum{}
			tallies[r.Configuration] = t
			order = append(order, r.Configuration)
		}
		t.n++
		t.sum += j.remaining[i]
		t.noise += (r.Variance - t.noise) / t.n
	}
	moments := deviationWeight * priorDeviation * priorDeviation
	for _, c := range order {
		t := tallies[c]
		moments += t.sum/t.n*t.sum/t.n - t.noise/t.n
	}
	least := priorDeviation * priorDeviation / 25
	j.deviation = max(moments/(deviationWeight+float64(len(order))), least)
	for _, c := range order {
		t := tallies[c]
		share := j.deviation / (j.deviation + t.noise/t.n)
		j.own[c] = [2]float64{share * t.sum / t.n, share * t.noise / t.n}
	}
}
