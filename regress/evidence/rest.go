package evidence

import "math"

// Span is consecutive epochs of a running job that were measured together.
type Span struct {
	Epochs  int     // 1 or more
	Seconds float64 // of all of them
	// Under is the configuration under which they ran.
	Under Configuration
}

// Parameters of the filter of a running job (docs/decisions/0016).
const (
	surprise       = 4.0  // innovations beyond so many deviations are clipped
	stepDeviation  = 0.3  // of a step in pace, after two clipped innovations in the same direction
	bendDeviation  = 0.15 // of a change of the slope, at the same time
	scaleWeight    = 6.0  // innovations that the assumed variances count for
	restDegrees    = 4.0
	leastRunShare  = 0.2  // of the variance of a run that is an effect of the whole run
	aloneDeviation = 1e3  // of the pace of a run without earlier runs
	maxPace        = 3.0  // logarithmic, against the curve
	horizon        = 10.0 // epochs after which correlated noise is forgotten
)

// curveOf is the course of a run under a configuration.
type curveOf func(epochs int) (seconds float64)

// flat is the course of a run of which nothing is known but that epochs are alike.
func flat(epochs int) float64 { return float64(epochs) }

// paceFilter follows the log pace of a running job against its curve: effect of the run + slope *
// ln(epoch/2) + correlated noise, by a Kalman filter. The first epoch is not compared: it differs.
type paceFilter struct {
	state      [3]float64 // effect, slope, correlated noise
	covariance [3][3]float64
	longest    int     // measured epochs of the curve
	beyond     float64 // variance of the pace, and of its trend, in each octave after the measured epochs
	white      float64 // variance of an epoch's independent noise
	correlated float64 // variance of the correlated noise
	odd        float64 // variance of an epoch by odd ones, such as stalls
	done       int     // epochs
	// surprise is the square of the last innovation, with its sign, if it was clipped and it is not yet
	// known whether it was noise or the beginning of a step.
	surprise float64
	slower   float64 // clipped part of the first innovation, above 0, until the second one; 0 for an irregular model
	squares  float64 // of innovations, by their assumed variances
	counted  float64
}

// newPaceFilter returns the filter of a run with the variance of a whole run of some epochs.
func newPaceFilter(run, slope, white, correlated float64, epochs int) *paceFilter {
	f := &paceFilter{white: white, correlated: correlated}
	f.covariance[0][0] = max(run-white/float64(epochs)-meanCorrelated(correlated, epochs), leastRunShare*run)
	f.covariance[1][1] = slope
	f.covariance[2][2] = correlated
	return f
}

// observe adds epochs that were measured together, which the curve expected to take some seconds.
func (f *paceFilter) observe(epochs int, seconds, expected float64) {
	first := f.done + 1
	f.addUnmeasured(f.done, f.done+epochs)
	f.done += epochs
	f.advance(math.Pow(epochCorrelation, float64(epochs)))
	if f.done < 2 || !(seconds > 0) || !(expected > 0) {
		return
	}
	h := [3]float64{1, logEpoch(float64(first+f.done) / 2), 1}
	scale := f.scale()
	noise := f.white * scale / float64(epochs)
	ph, variance := f.project(&h, noise)
	v := math.Log(seconds/expected) - (h[0]*f.state[0] + h[1]*f.state[1] + h[2]*f.state[2])
	f.slower = 0
	most, square := surprise*math.Sqrt(variance), math.Copysign(v*v/variance*scale, v)
	switch {
	case math.Abs(v) <= most:
		f.count(f.surprise)
		f.count(square)
		f.surprise = 0
	case f.surprise == 0:
		if f.counted == 0 && f.odd == 0 {
			f.slower = max(0, v-most)
		}
		f.surprise, v = square, math.Copysign(most, v)
	case f.surprise*v > 0: // twice in the same direction: a step, or a bend
		f.covariance[0][0] += stepDeviation * stepDeviation
		f.covariance[1][1] += bendDeviation * bendDeviation
		ph, variance = f.project(&h, noise)
		f.surprise = 0
	default: // in both directions: the job is less regular than assumed, whatever the size of either
		both := min(math.Abs(f.surprise), math.Abs(square))
		f.squares += 2 * both
		f.counted += 2
		f.surprise, v = 0, math.Copysign(most, v)
	}
	for i := range f.state {
		f.state[i] += ph[i] / variance * v
		for j := range f.state {
			f.covariance[i][j] -= ph[i] * ph[j] / variance
		}
	}
}

// count adds the square of an innovation to those that say how regular the job is, within a bound.
func (f *paceFilter) count(square float64) {
	if square != 0 {
		f.squares += min(math.Abs(square), surprise*surprise*f.scale())
		f.counted++
	}
}

// logEpoch is the regressor of the slope.
func logEpoch(epoch float64) float64 { return math.Log(max(epoch, 1) / 2) }

// advance lets the correlated noise fade.
func (f *paceFilter) advance(fade float64) {
	f.state[2] *= fade
	for i := range f.state {
		f.covariance[i][2] *= fade
		f.covariance[2][i] *= fade
	}
	f.covariance[2][2] += f.correlated * (1 - fade*fade)
}

// addUnmeasured adds the uncertainty of epochs after the measured ones: the pace is a random walk in
// octaves of epochs, and its trend is unknown.
func (f *paceFilter) addUnmeasured(before, after int) {
	if after <= f.longest {
		return
	}
	f.covariance[0][0] += f.beyond * octaves(max(before, f.longest), after)
	if before <= f.longest {
		trend := [2]float64{-logEpoch(float64(f.longest)), 1}
		for i := range trend {
			for j := range trend {
				f.covariance[i][j] += f.beyond / (math.Ln2 * math.Ln2) * trend[i] * trend[j]
			}
		}
	}
}

// project returns the covariance of the state with an observation, and its variance.
func (f *paceFilter) project(h *[3]float64, noise float64) (ph [3]float64, variance float64) {
	for i := range ph {
		ph[i] = f.covariance[i][0]*h[0] + f.covariance[i][1]*h[1] + f.covariance[i][2]*h[2]
	}
	return ph, h[0]*ph[0] + h[1]*ph[1] + h[2]*ph[2] + noise
}

// rest returns the log seconds of the epochs until a total, and its variance (delta method). It sums
// the epochs to come in parts that grow with the distance.
func (f *paceFilter) rest(of curveOf, total int) (location, variance float64) {
	sum, squares, before := 0.0, 0.0, of(f.done)
	var mean [3]float64
	// Seconds after the measured epochs, and the same seconds weighted by their octaves after these.
	unmeasured, trend := 0.0, 0.0
	for n := f.done; n < total; {
		k := min(1+(n-f.done)/3, total-n)
		after := of(n + k)
		middle := float64(n) + float64(k+1)/2
		h := [3]float64{1, logEpoch(middle), math.Pow(epochCorrelation, middle-float64(f.done))}
		pace := h[0]*f.state[0] + h[1]*f.state[1] + h[2]*f.state[2]
		seconds := (after - before) * math.Exp(max(-maxPace, min(maxPace, pace)))
		sum += seconds
		squares += seconds * seconds / float64(k)
		for i := range mean {
			mean[i] += seconds * h[i]
		}
		if n+k > f.longest {
			unmeasured += seconds
			trend += seconds * max(0, math.Log2(middle/float64(f.longest)))
		}
		n, before = n+k, after
	}
	for i := range mean {
		mean[i] /= sum
	}
	_, variance = f.project(&mean, 0)
	squares /= sum * sum
	n := float64(total - f.done)
	noise := f.white*squares + f.correlated*squares*
		min(n, (1+epochCorrelation)/(1-epochCorrelation))*(1-math.Pow(epochCorrelation, 2*min(n, horizon)))
	variance += noise*f.scale() + f.odd*squares
	// An odd epoch and a slower run are equally probable until a second epoch is compared.
	location = math.Log(sum) + f.slower/2
	variance += f.slower * f.slower / 4
	if unmeasured > 0 {
		unmeasured, trend = unmeasured/sum, trend/sum
		variance += f.beyond * unmeasured * unmeasured * octaves(max(f.done, f.longest), total) / 2
		if f.done <= f.longest {
			variance += f.beyond * trend * trend
		}
	}
	return location, variance
}

// scale is above 1 for a job that is less regular than assumed.
func (f *paceFilter) scale() float64 {
	return max(1, (scaleWeight+f.squares)/(scaleWeight+f.counted))
}

// Rest predicts the epochs of a running job that are left until a total, from past runs and from
// its own epochs, in order. Without own epochs it is Epochs. It is unknown if the model never ran on
// the node type, and if no epochs are left.
func (p *Predictor) Rest(c Configuration, done []Span, total int) EpochTime {
	now := p.times(c)
	e, n := now.epochs(total), 0
	for i := range done {
		n += done[i].Epochs
	}
	if !e.Known() || n == 0 || n >= total {
		return e
	}
	white, correlated := now.of.model.epochNoise(now.curve.ConfigurationTimes)
	f := newPaceFilter(e.Variance, slopeDeviation*slopeDeviation, white, correlated, total)
	f.odd = now.curve.OddVariance
	f.longest = now.curve.longest()
	if n > 1 { // until an epoch is compared, the variance of the whole run includes it
		f.beyond = now.of.model.PaceVariance
	}
	under, then := c.Banded(), now
	for i := range done {
		if u := done[i].Under.Banded(); u != under && u.BatchSize > 0 {
			under, then = u, now.of.times(&u)
		}
		expected := 0.0
		if then.support != NeverRun {
			expected = then.seconds(f.done+done[i].Epochs) - then.seconds(f.done)
		}
		f.observe(done[i].Epochs, done[i].Seconds, expected)
	}
	location, variance := f.rest(now.seconds, total)
	e.Location = location - math.Log(float64(total-n))
	e.Pace = location - math.Log(now.seconds(total)-now.seconds(n))
	e.Variance = variance
	e.Degrees = min(e.Degrees, restDegrees)
	return e
}

// RestAlone is Rest without any past run: an estimate with the support OwnEpochs. It is unknown
// before the first epoch has ended.
func RestAlone(done []Span, total int) EpochTime {
	const epoch = priorEpochDeviation * priorEpochDeviation
	const slope = unknownSlopeDeviation * unknownSlopeDeviation
	f := newPaceFilter(aloneDeviation*aloneDeviation, slope,
		epoch*(1-priorCorrelated), epoch*priorCorrelated, max(total, 1))
	f.longest = total
	n, first := 0, 0.0
	for i := range done {
		if first == 0 {
			first = done[i].Seconds / float64(max(done[i].Epochs, 1))
		}
		n += done[i].Epochs
		f.observe(done[i].Epochs, done[i].Seconds, float64(done[i].Epochs))
	}
	if !(first > 0) || n >= total {
		return EpochTime{}
	}
	e := EpochTime{Support: OwnEpochs, Degrees: restDegrees}
	if f.counted == 0 { // only the first epoch, which may be slow or short
		const unlike = 0.5
		e.Location, e.Variance = math.Log(first), unlike*unlike
		return e
	}
	location, variance := f.rest(flat, total)
	e.Location, e.Variance = location-math.Log(float64(total-n)), variance
	return e
}
