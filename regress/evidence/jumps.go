package evidence

import "math"

const (
	alarmThreshold = 6.0 // in standard deviations
	maxFactors     = 4
	minRunsInScope = 2
	// maxSurprise is the maximum evidence of one run, in standard deviations. It is below the alarm
	// threshold, so that one disturbed run raises no alarm.
	maxSurprise = 5.0

	intervalDeviations = 1.96 // of 95 %
	factorDeviation    = 0.05 // of a configuration from its factor
)

// Factors returns the active factors in the order in which they were found: one after another, each
// for the scope and start with the strongest evidence in what the earlier ones do not explain.
func (d *DriftState) Factors() (all []Factor) {
	left := make([]float64, len(d.Residuals))
	for i := range d.Residuals {
		left[i] = d.Residuals[i].Value
	}
	scopes := scopesOf(d.Residuals)
	for len(all) < maxFactors {
		var best Factor
		earlier := d.levels(left)
		for i := range scopes {
			f := d.strongest(&scopes[i], left, earlier)
			if i == 0 || f.Evidence-f.penalty() > best.Evidence-best.penalty() {
				best = f
			}
		}
		if best.Runs == 0 {
			break
		}
		all = append(all, best)
		for i := best.start; i < len(left); i++ {
			if best.Covers(&d.Residuals[i].Configuration) {
				left[i] -= math.Log(best.Ratio)
			}
		}
	}
	return all
}

// driftMean is the mean of the residuals of one configuration.
type driftMean struct {
	runs, mean float64
	limited    float64 // the same mean, in which each run counts with at most maxSurprise
	variance   float64 // of the mean, without the error that all runs share

	// The differences from the previous level, with their precision.
	above, limitedAbove, precision float64
}

func (m *driftMean) add(r *Residual, left float64) {
	m.runs++
	m.mean += (left - m.mean) / m.runs
	most := maxSurprise * math.Sqrt(r.Variance)
	m.limited += (max(-most, min(most, left)) - m.limited) / m.runs
	m.variance = (r.Variance - r.Shared) / m.runs
}

// levels returns what each residual is expected to be by the earlier runs of its configuration. Without
// such runs it is 0, with the variance of the error that all runs of the configuration share.
func (d *DriftState) levels(left []float64) []estimate {
	of := map[Configuration]*driftMean{}
	all := make([]estimate, len(left))
	for i := range d.Residuals {
		r := &d.Residuals[i]
		m := of[r.Configuration]
		if m == nil {
			m = &driftMean{}
			of[r.Configuration] = m
			all[i] = estimate{0, r.Shared}
		} else {
			share := r.Shared / (r.Shared + m.variance)
			all[i] = estimate{share * m.limited, share * m.variance}
		}
		m.add(r, left[i])
	}
	return all
}

// strongest returns the factor with the start of strongest evidence for a scope, among the starts
// whose evidence suffices; a factor without runs if there is none. Each configuration is compared with
// its own earlier level, so many runs of one configuration are less evidence than runs of many.
func (d *DriftState) strongest(s *Scope, left []float64, earlier []estimate) Factor {
	best := Factor{Scope: *s}
	of := map[Configuration]*driftMean{}
	var sum, limited, precision float64
	runs := 0
	for i := len(d.Residuals) - 1; i >= 0; i-- {
		r := &d.Residuals[i]
		if !s.Covers(&r.Configuration) {
			continue
		}
		if of[r.Configuration] == nil {
			of[r.Configuration] = &driftMean{}
		}
		m := of[r.Configuration]
		precision -= m.precision
		sum -= m.precision * m.above
		limited -= m.precision * m.limitedAbove
		m.add(r, left[i])
		m.above, m.limitedAbove = m.mean-earlier[i].mean, m.limited-earlier[i].mean
		m.precision = 1 / (m.variance + earlier[i].variance)
		precision += m.precision
		sum += m.precision * m.above
		limited += m.precision * m.limitedAbove
		if runs++; runs < minRunsInScope {
			continue
		}
		z := math.Abs(limited) / math.Sqrt(precision)
		if z > best.Evidence && z-s.penalty() >= alarmThreshold && s.isShown(of, limited) {
			best = Factor{Scope: *s, Since: r.At, StartedAt: r.StartedAt, Runs: runs, Evidence: z, start: i}
			deviation := math.Sqrt(1/precision + factorDeviation*factorDeviation/float64(len(of)))
			best.Ratio = math.Exp(sum / precision)
			best.Low = math.Exp(sum/precision - intervalDeviations*deviation)
			best.High = math.Exp(sum/precision + intervalDeviations*deviation)
		}
	}
	return best
}

// isShown reports whether the runs of at least two models show a jump, if the scope covers all models. So runs
// of one model, odd or reported falsely, never change the prediction of another.
func (s *Scope) isShown(of map[Configuration]*driftMean, jump float64) bool {
	const minModels, deviations = 2, 2
	if s.Model != "" {
		return true
	}
	sums, precisions, shown := map[subject]float64{}, map[subject]float64{}, 0
	for c, m := range of {
		sums[c.subject()] += math.Copysign(m.precision, jump) * m.limitedAbove
		precisions[c.subject()] += m.precision
	}
	for k, sum := range sums {
		if sum >= deviations*math.Sqrt(precisions[k]) {
			shown++
		}
	}
	return shown >= minModels
}
