package evidence

import (
	"math"
	"slices"
)

const (
	alarm          = 6.0 // standard deviations
	mostFactors    = 4
	leastInScope   = 2
	ridgeDeviation = 0.4 // prior of a factor's log
	// mostSurprise is for how many standard deviations one run counts as evidence, at most: less
	// than an alarm, however much it was disturbed.
	mostSurprise = 5.0
	// straddlePenalty is like the penalties of scopes, and more than all of them.
	straddlePenalty = 0.5
	// oneShows is how much likelier it is than not that a shift that one shows holds for others; that
	// n show it makes it n^2 times as likely.
	oneShows = 1.5

	intervalDeviations = 1.96 // of 95 %

	priorDeviation  = 0.05 // of a configuration from its factor
	deviationWeight = 2.0
)

// jumps are the factors found in a window of residuals.
type jumps struct {
	factors   []Factor
	inverse   []float64 // covariance of the factors' logs, row after row
	left      []float64 // of the residuals, without factors and deviations
	deviation float64   // variance of a configuration from its factors
	own       map[Configuration][2]float64
	suspects  []suspect
}

// findJumps finds factors one after another, each where the evidence for one scope and
// start is greatest, and estimates all that were found jointly (ridge regression).
func findJumps(residuals []Residual) *jumps {
	j := &jumps{left: make([]float64, len(residuals)), own: map[Configuration][2]float64{}}
	for i := range residuals {
		j.left[i] = residuals[i].Value
	}
	scopes, ids := scopesOf(residuals), number(residuals)
	earlier := j.levels(residuals, ids)
	for len(j.factors) < mostFactors {
		var best Factor
		for i := range scopes {
			f := j.strongest(&scopes[i], residuals, ids, earlier)
			f.preference = f.Evidence - f.penalty()
			if f.Runs > 0 && j.straddles(&f, residuals) {
				f.preference -= straddlePenalty
			}
			if i == 0 || f.preference > best.preference {
				best = f
			}
		}
		if best.Runs == 0 {
			break
		}
		best.Since, best.StartedAt = residuals[best.start].At, residuals[best.start].StartedAt
		best.Threshold = alarm + best.penalty()
		j.factors = append(j.factors, best)
		if !j.estimate(residuals) {
			j.factors = j.factors[:len(j.factors)-1]
			j.estimate(residuals)
			break
		}
		j.deviations(residuals)
		earlier = j.levels(residuals, ids)
	}
	for a := range j.factors {
		j.describe(a, residuals)
	}
	j.suspect(residuals, earlier)
	for i := range residuals {
		if j.any(i, &residuals[i]) {
			j.left[i] -= j.own[residuals[i].Configuration][0]
		}
	}
	return j
}

// straddles reports whether a scope covers configurations for which other factors hold than for
// the first that showed it.
func (j *jumps) straddles(f *Factor, residuals []Residual) bool {
	of := j.covering(&residuals[f.start].Configuration)
	return slices.ContainsFunc(residuals, func(r Residual) bool {
		return f.Covers(&r.Configuration) && j.covering(&r.Configuration) != of
	})
}

// number gives equal configurations equal numbers, from 0.
func number(residuals []Residual) []int {
	seen, ids := map[Configuration]int{}, make([]int, len(residuals))
	for i := range residuals {
		id, ok := seen[residuals[i].Configuration]
		if !ok {
			id = len(seen)
			seen[residuals[i].Configuration] = id
		}
		ids[i] = id
	}
	return ids
}

// tally sums up residuals of one configuration.
type tally struct{ sum, clipped, n, noise float64 }

func (t *tally) add(r *Residual, left float64) {
	t.n++
	t.sum += left
	t.clipped += r.clipped(left, mostSurprise)
	t.noise += (r.Variance - r.Shared - t.noise) / t.n
	t.noise = max(t.noise, residualTolerance)
}

// level is what earlier runs of a configuration say about its residuals: their mean, with and
// without bounds on each, and its variance.
type level struct{ mean, clipped, variance float64 }

// levels returns the level of the configuration of each residual before it, from the runs for
// which the same factors hold. Without any it is 0 give or take the error that all runs of the
// configuration share, and its deviation from the factors.
func (j *jumps) levels(residuals []Residual, ids []int) []level {
	regimes := 1 << len(j.factors)
	tallies, all := make([]tally, len(residuals)*regimes), make([]level, len(residuals))
	for i := range residuals {
		r := &residuals[i]
		holding := j.holding(i, r)
		t := &tallies[ids[i]*regimes+int(holding)]
		prior := r.Shared
		if holding != 0 {
			prior += j.deviation
		}
		l := level{variance: prior}
		if t.n > 0 && prior > 0 {
			share := prior / (prior + t.noise/t.n)
			l = level{share * t.sum / t.n, share * t.clipped / t.n, share * t.noise / t.n}
		}
		all[i] = l
		t.add(r, j.left[i])
	}
	return all
}

// holding returns which factors hold for a residual, a bit for each.
func (j *jumps) holding(i int, r *Residual) (bits uint) {
	for a := range j.factors {
		if j.factors[a].holds(i, r) {
			bits |= 1 << a
		}
	}
	return bits
}

// strongest returns the start at which the evidence for a scope is greatest, of those at which it
// would be enough if no run counted for more than mostSurprise; a factor without runs if there is
// none. Each configuration is compared with its own earlier level, so that many runs of one are
// less evidence than runs of many.
func (j *jumps) strongest(s *Scope, residuals []Residual, ids []int, earlier []level) Factor {
	best := Factor{Scope: *s}
	var tallies [MaxResiduals]tally
	var parts [MaxResiduals][3]float64 // of the sums below, by configuration
	var weighted, clipped, precision float64
	runs := 0
	for i := len(residuals) - 1; i >= 0; i-- {
		r := &residuals[i]
		if !s.Covers(&r.Configuration) {
			continue
		}
		t, part, l := &tallies[ids[i]], &parts[ids[i]], &earlier[i]
		t.add(r, j.left[i])
		weighted, clipped, precision = weighted-part[0], clipped-part[1], precision-part[2]
		p := 1 / (t.noise/t.n + l.variance)
		*part = [3]float64{p * (t.sum/t.n - l.mean), p * (t.clipped/t.n - l.clipped), p}
		weighted, clipped, precision = weighted+part[0], clipped+part[1], precision+part[2]
		if runs++; runs < leastInScope {
			continue
		}
		deviation := math.Sqrt(precision)
		z := math.Abs(weighted) / deviation
		if z > best.Evidence && math.Abs(clipped)/deviation-s.penalty() >= alarm {
			best.Evidence, best.start, best.Runs = z, i, runs
		}
	}
	return best
}

// clipped bounds a deviation by so many standard deviations, so that one disturbed run is never
// taken for a change.
func (r *Residual) clipped(deviation, most float64) float64 {
	most *= math.Sqrt(r.Variance)
	return max(-most, min(most, deviation))
}

// holds reports whether a factor holds for a residual.
func (f *Factor) holds(i int, r *Residual) bool {
	return i >= f.start && f.Covers(&r.Configuration)
}

// estimate computes all factors by ridge regression, and what they leave.
func (j *jumps) estimate(residuals []Residual) bool {
	n := len(j.factors)
	normal, right := make([]float64, n*n), make([]float64, n)
	for a := range n {
		normal[a*n+a] = 1 / (ridgeDeviation * ridgeDeviation)
	}
	for i := range residuals {
		r := &residuals[i]
		for a := range n {
			if !j.factors[a].holds(i, r) {
				continue
			}
			right[a] += r.Value / r.Variance
			for b := range n {
				if j.factors[b].holds(i, r) {
					normal[a*n+b] += 1 / r.Variance
				}
			}
		}
	}
	c, ok := factorize(n, normal)
	if !ok {
		return false
	}
	for a, x := range c.solve(right) {
		j.factors[a].shift, j.factors[a].Ratio = x, math.Exp(x)
	}
	j.inverse = c.inverse()
	for i := range residuals {
		j.left[i] = residuals[i].Value
		for a := range j.factors {
			if j.factors[a].holds(i, &residuals[i]) {
				j.left[i] -= j.factors[a].shift
			}
		}
	}
	return true
}

// covering returns which factors hold for a configuration, a bit for each.
func (j *jumps) covering(c *Configuration) (bits uint) {
	for a := range j.factors {
		if j.factors[a].Covers(c) {
			bits |= 1 << a
		}
	}
	return bits
}

// deviations estimates how configurations in scope differ from their factors: shrunken
// means of what is left, with a variance by moments.
func (j *jumps) deviations(residuals []Residual) {
	tallies := map[Configuration]*tally{}
	var order []Configuration
	for i := range residuals {
		r := &residuals[i]
		if !j.any(i, r) {
			continue
		}
		t := tallies[r.Configuration]
		if t == nil {
			t = &tally{}
			tallies[r.Configuration] = t
			order = append(order, r.Configuration)
		}
		t.n++
		t.sum += j.left[i]
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

func (j *jumps) any(i int, r *Residual) bool {
	for a := range j.factors {
		if j.factors[a].holds(i, r) {
			return true
		}
	}
	return false
}
