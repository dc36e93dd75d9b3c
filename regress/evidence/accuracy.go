package evidence

import (
	"math"
	"slices"
)

// Accuracy is the predicted accuracy after a number of epochs.
type Accuracy struct {
	// Known is false if less than half of such runs reach the lowest measured level. Then there
	// is no prediction.
	Known bool
	// Median and Mean, 0 to 1; use Mean to rank.
	Median, Mean float64
	Support      Support
	Runs         int // of the same batch size
	ModelRuns    int // of the model and dataset
	// Longest is the last epoch with an accuracy in any run of the model. Beyond reports that no
	// run lasted as long as requested.
	Longest int
	Beyond  bool

	levels    []float64
	quantiles bool               // more values were measured than there are levels
	passed    [maxLevels]float64 // probability that each level is reached
}

// Reaches returns the probability of at least the target accuracy; 0 above the highest measured
// accuracy, and if nothing is known.
func (a *Accuracy) Reaches(target float64) float64 {
	for k, level := range a.levels {
		if level >= target-tolerance {
			return a.passed[k]
		}
	}
	return 0
}

// Quantile returns the highest level that is reached with probability 1-p or more, so that the
// accuracy is lower with probability at most p. It is 0 below the lowest level.
func (a *Accuracy) Quantile(p float64) float64 {
	at := 0.0
	for k, level := range a.levels {
		if a.passed[k] < 1-p {
			break
		}
		at = level
	}
	return at
}

// Highest returns the highest measured accuracy of the model; 0 if there is none.
func (a *Accuracy) Highest() float64 {
	if len(a.levels) == 0 {
		return 0
	}
	return a.levels[len(a.levels)-1]
}

// Interval returns the central interval of the accuracy for a confidence; its ends are measured
// levels. low is 0 if the accuracy may be below all of them. An unknown accuracy has no interval.
func (a *Accuracy) Interval(confidence float64) (low, high float64) {
	if !a.Known {
		return 0, 0
	}
	out := (1 - confidence) / 2
	high = max(a.Quantile(1-out), a.Median)
	if a.quantiles { // values between two levels were measured as well
		if k, _ := slices.BinarySearch(a.levels, high+tolerance); k < len(a.levels) {
			high = a.levels[k]
		}
	}
	return a.Quantile(out), high
}

// crossing is a predicted passage: a Student-t distribution of its logarithm, and the probability
// that it happens.
type crossing struct{ location, scale, reach float64 }

// accuracyPredictor is the compiled form of an AccuracyModel.
type accuracyPredictor struct {
	model    *AccuracyModel
	degrees  float64 // of freedom at unmeasured batch sizes
	longest  int
	runs     int
	measured map[int]int // index of a batch size
	at       [][]crossing
	first    float64 // log2 of the first batch size of grid
	grid     [][]crossing
	octaves  []float64 // log2 of measured batch sizes
}

func newAccuracyPredictor(m *AccuracyModel) *accuracyPredictor {
	v := m.variances()
	levels, inflation := m.processes(&v)
	priors := make([]reachPrior, len(m.Levels))
	for k := range priors {
		priors[k] = newReachPrior(m, k)
	}
	p := &accuracyPredictor{model: m, measured: map[int]int{},
		degrees: min(v.degrees, priorRunDegrees+float64(len(m.Batches)))}
	between := func(b float64, k int) crossing {
		tried, n := m.neighbours(b, k)
		c := crossing{reach: priors[k].probability(tried, n)}
		if len(levels[k].weights) == 0 {
			return crossing{scale: 1}
		}
		mean, variance := levels[k].predict(m, b)
		return c.passing(mean, variance*inflation+v.level[k], 1)
	}
	for i := range m.Batches {
		b := &m.Batches[i]
		p.measured[b.BatchSize] = i
		p.longest, p.runs = max(p.longest, b.Longest), p.runs+b.Runs
		p.octaves = append(p.octaves, math.Log2(float64(b.BatchSize)))
		row := make([]crossing, len(m.Levels))
		for k := range row {
			q := &b.Passages[k]
			row[k] = between(p.octaves[i], k)
			if q.Tried > 0 {
				row[k].reach = priors[k].probability(float64(q.Reached), float64(q.Tried))
			}
			if n := float64(q.Reached); n > 0 {
				row[k] = row[k].passing(q.Mean, v.ownVariance(k, q)*(1+1/n), 1+1/n)
			}
		}
		p.at = append(p.at, row)
	}
	p.compileGrid(between)
	return p
}

// passing sets the distribution of the log of the passage. Epochs are whole numbers, so the
// variance is at least the variance of rounding, times a factor.
func (c crossing) passing(mean, variance, factor float64) crossing {
	epoch := math.Exp(mean) + 0.5
	c.location, c.scale = mean, math.Sqrt(max(variance, factor/(12*epoch*epoch)))
	return c
}

// compileGrid computes the passages at quarter octaves between the batch sizes.
func (p *accuracyPredictor) compileGrid(between func(b float64, k int) crossing) {
	last := p.octaves[len(p.octaves)-1]
	p.first = math.Floor(perOctave*p.octaves[0]) / perOctave
	for b := p.first; ; b += 1. / perOctave {
		row := make([]crossing, len(p.model.Levels))
		for k := range row {
			row[k] = between(b, k)
		}
		p.grid = append(p.grid, row)
		if b >= last {
			break
		}
	}
}

// support returns the support of a batch size and its number of runs.
func (p *accuracyPredictor) support(batch int) (Support, int) {
	if i, ok := p.measured[batch]; ok {
		return Measured, p.model.Batches[i].Runs
	}
	r := measuredRange{batches: p.octaves}
	at := point{x: [inputs]float64{math.Log2(float64(batch))}}
	if len(p.octaves) >= minConfigurations && r.interpolates(&at) {
		return Interpolated, 0
	}
	return Extrapolated, 0
}

// predict returns the prediction for a batch size after a number of epochs.
func (p *accuracyPredictor) predict(batch, epochs int) Accuracy {
	a := Accuracy{
		ModelRuns: p.runs, Longest: p.longest, Beyond: epochs > p.longest,
		levels: p.model.Levels, quantiles: p.model.Quantiles,
	}
	a.Support, a.Runs = p.support(batch)
	if epochs < 1 {
		return a
	}
	x := math.Log(float64(epochs))
	if i, ok := p.measured[batch]; ok {
		t := studentOf(priorRunDegrees + float64(p.model.Batches[i].Runs-1))
		for k, c := range p.at[i] {
			a.passed[k] = c.reach * t.below((x-c.location)/c.scale)
		}
	} else if !p.between(&a, math.Log2(float64(batch)), x) {
		return a
	}
	monotone(a.passed[:len(a.levels)])
	a.summarize()
	return a
}

// between sets the probabilities at a batch size between the measured ones; false outside.
func (p *accuracyPredictor) between(a *Accuracy, b, x float64) bool {
	at := (b - p.first) * perOctave
	if b < p.octaves[0] || b > p.octaves[len(p.octaves)-1] {
		return false
	}
	i := min(int(at), max(len(p.grid)-2, 0))
	share := at - float64(i)
	t := studentOf(p.degrees)
	low, high := p.grid[i], p.grid[min(i+1, len(p.grid)-1)]
	for k := range low {
		c, d := low[k], high[k]
		c.location += share * (d.location - c.location)
		c.scale += share * (d.scale - c.scale)
		c.reach += share * (d.reach - c.reach)
		a.passed[k] = c.reach * t.below((x-c.location)/c.scale)
	}
	return true
}

// summarize computes the median and the mean from the probabilities of the levels.
func (a *Accuracy) summarize() {
	if a.Known = a.passed[0] >= 0.5; !a.Known {
		return
	}
	a.Mean = a.levels[0]
	a.Median = a.levels[0]
	for k := 1; k < len(a.levels); k++ {
		step := a.levels[k] - a.levels[k-1]
		a.Mean += step * a.passed[k]
		if a.passed[k] >= 0.5 {
			a.Median = a.levels[k]
		} else if a.quantiles && a.passed[k-1] >= 0.5 {
			a.Median += step * (a.passed[k-1] - 0.5) / (a.passed[k-1] - a.passed[k])
		}
	}
}

// monotone makes numbers non-increasing by pooling adjacent violators (isotonic regression): a
// higher level is not reached earlier than a lower one.
func monotone(f []float64) {
	var sum, size [maxLevels]float64
	n := 0
	for _, x := range f {
		sum[n], size[n] = x, 1
		for n > 0 && sum[n]*size[n-1] > sum[n-1]*size[n] {
			sum[n-1] += sum[n]
			size[n-1] += size[n]
			n--
		}
		n++
	}
	i := 0
	for b := range n {
		for range int(size[b]) {
			f[i] = sum[b] / size[b]
			i++
		}
	}
}
