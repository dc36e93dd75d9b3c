package evidence

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Time is the predicted duration of a training.
type Time struct {
	// Distribution of the seconds of all epochs, plus the start-up if that is known. Its scale is
	// 0 if the time is unknown (Support is NeverRun).
	Distribution
	// StartupSeconds is the median start-up, 0 if none was ever measured.
	StartupSeconds float64
	Support        Support
	Counts         RunCounts
	// Correction that the prediction contains; the zero value if none.
	Correction Correction
}

// estimate is the posterior of the log epoch seconds of a configuration: mean and variance of the
// expectation of a run, and the variance of a run around it.
type estimate struct {
	mean, variance, run float64
	runs                int // of the same configuration
}

// timePredictor is the compiled form of a TimeModel.
type timePredictor struct {
	model             *TimeModel
	process           *timeProcess
	nodes             map[string]int
	reaches           []measuredRange // by node type
	runs              int
	unmeasuredDegrees float64                        // of freedom, without runs
	measured          map[Configuration]estimate     // configurations with runs
	interpolate       map[Configuration]estimateLine // between them; the key has no batch size

	// extraLines caches lines without runs, at most maxExtraLines: loads without runs are
	// requested repeatedly.
	extraLines     sync.Map
	extraLineCount atomic.Int32
}

const maxExtraLines = 256

// estimateLine holds the estimates at quarter octaves of the batch size, with all other features
// fixed.
type estimateLine struct {
	first     float64 // log2 of the first batch size
	estimates []estimate
}

const perOctave = 4

func newTimePredictor(t *TimeModel) (*timePredictor, bool) {
	o := t.observations()
	points := o.points
	g, ok := newGaussianProcess(t.Hyperparameters, o)
	if !ok {
		return nil, false
	}
	p := &timePredictor{model: t, process: g, nodes: t.nodeTypes(),
		unmeasuredDegrees: min(t.Degrees, 4+float64(len(points))),
		measured:          map[Configuration]estimate{},
		interpolate:       map[Configuration]estimateLine{}}
	p.reaches = make([]measuredRange, len(p.nodes))
	room := make([]float64, len(points))
	v := variances{t.EpochVariance, t.RunVariance, t.Degrees}
	for i := range t.Configurations {
		m := &t.Configurations[i]
		p.runs += m.Runs
		p.reaches[points[i].node].include(&points[i], m.Runs)
		mean, variance := g.predict(&points[i], i, room)
		p.measured[m.Configuration] = estimate{mean, variance, v.ownRun(m), m.Runs}
	}
	for i := range p.reaches {
		slices.Sort(p.reaches[i].batches)
	}
	p.compileLines(room)
	return p, true
}

// include extends the range by a point.
func (r *measuredRange) include(p *point, runs int) {
	if r.runs == 0 {
		r.low, r.high = p.x, p.x
	}
	for f, x := range p.x {
		r.low[f], r.high[f] = min(r.low[f], x), max(r.high[f], x)
	}
	r.batches = append(r.batches, p.x[0])
	r.runs += runs
}

// compileLines computes the estimates between the batch sizes of each line.
func (p *timePredictor) compileLines(room []float64) {
	for i := range p.model.Configurations {
		key := p.model.Configurations[i].Configuration
		key.BatchSize = 0
		if _, ok := p.interpolate[key]; !ok {
			p.interpolate[key] = p.line(p.process.points[i], room)
		}
	}
}

// line computes the estimates at quarter octaves within the batch sizes that ran on the node type,
// with the other features of a point.
func (p *timePredictor) line(at point, room []float64) estimateLine {
	r := &p.reaches[at.node]
	l := estimateLine{first: math.Floor(perOctave*r.low[0]) / perOctave}
	for at.x[0] = l.first; ; at.x[0] += 1. / perOctave {
		mean, variance := p.process.predict(&at, -1, room)
		l.estimates = append(l.estimates, estimate{mean, variance, p.model.RunVariance, 0})
		if at.x[0] >= r.high[0] {
			return l
		}
	}
}

// between interpolates linearly in the log of the batch size.
func (l *estimateLine) between(x float64) (estimate, bool) {
	at := (x - l.first) * perOctave
	last := len(l.estimates) - 1
	if last < 0 || !(at >= 0 && at <= float64(last)) {
		return estimate{}, false
	}
	i := min(int(at), max(last-1, 0))
	e := l.estimates[i]
	if share := at - float64(i); share > 0 {
		f := l.estimates[i+1]
		e.mean += share * (f.mean - e.mean)
		e.variance += share * (f.variance - e.variance)
	}
	return e, true
}

// estimate returns the posterior for a banded configuration and its evidence.
func (p *timePredictor) estimate(c *Configuration) (estimate, Support, RunCounts) {
	node, ran := p.nodes[c.NodeType]
	if !ran {
		return estimate{}, NeverRun, RunCounts{Model: p.runs}
	}
	r := &p.reaches[node]
	counts := RunCounts{NodeType: r.runs, Model: p.runs}
	if e, ok := p.measured[*c]; ok {
		counts.Configuration = e.runs
		return e, Measured, counts
	}
	at := pointOf(c, node)
	e := p.estimateUnmeasured(c, &at)
	if len(p.measured) >= minConfigurations && r.interpolates(&at) &&
		e.variance <= maxInterpolatedDeviation*maxInterpolatedDeviation {
		return e, Interpolated, counts
	}
	return e, Extrapolated, counts
}

// estimateUnmeasured returns the posterior for a configuration without runs.
func (p *timePredictor) estimateUnmeasured(c *Configuration, at *point) estimate {
	key := *c
	key.BatchSize = 0
	l, ok := p.interpolate[key]
	if !ok {
		l = p.extraLine(key, at)
	}
	if e, ok := l.between(at.x[0]); ok {
		return e
	}
	var room [MaxConfigurations]float64
	mean, variance := p.process.predict(at, -1, room[:])
	return estimate{mean, variance, p.model.RunVariance, 0}
}

// extraLine returns a line without runs. It is cached while there is room.
func (p *timePredictor) extraLine(key Configuration, at *point) estimateLine {
	if l, ok := p.extraLines.Load(key); ok {
		return l.(estimateLine)
	}
	l := p.line(*at, make([]float64, len(p.process.points)))
	if p.extraLineCount.Add(1) <= maxExtraLines {
		p.extraLines.Store(key, l)
	} else {
		p.extraLineCount.Store(maxExtraLines)
	}
	return l
}

// degrees returns the degrees of freedom of predictions with a kind of support.
func (p *timePredictor) degrees(s Support) float64 {
	if s == Measured {
		return p.model.Degrees
	}
	return p.unmeasuredDegrees
}

// run returns the distribution of the log of the mean seconds of a number of epochs of a run.
func (p *timePredictor) run(e *estimate, s Support, epochs float64) Distribution {
	scale := math.Sqrt(e.variance + e.run + p.model.EpochVariance/max(epochs, 1))
	return Distribution{e.mean, scale, p.degrees(s)}
}

// Correction corrects the prediction of one configuration.
type Correction struct {
	// Shift of the log of epoch seconds.
	Shift float64
	// Variance is added to the variance of the log. It is negative if the runs revealed the
	// error of the configuration's own prediction.
	Variance float64
	// Inflation multiplies the variance afterwards.
	Inflation float64
	// Factors is the number of active factors that apply to the configuration.
	Factors int
}
