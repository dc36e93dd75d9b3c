package evidence

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Time is the predicted duration of a training.
type Time struct {
	// Distribution of the seconds of all epochs and of the start-up, where that is
	// known. Its scale is 0 where nothing is known (Support is NeverRun).
	Distribution
	// StartupSeconds is the median start-up, 0 if none was ever measured.
	StartupSeconds float64
	Support        Support
	Counts         Counts
	// Correction that the prediction contains; the zero value if none.
	Correction Correction
}

// estimate is the posterior of the log epoch seconds at one place: the mean and
// the variance of the run's expectation, and the variance of a run there.
type estimate struct {
	mean, variance, run float64
	runs                int // of the very configuration
}

// timePredictor is the compiled form of a TimeModel.
type timePredictor struct {
	model       *TimeModel
	process     *process
	nodes       map[string]int
	reaches     []reach // by node type
	runs        int
	unmeasured  float64                    // degrees of freedom off the measured configurations
	measured    map[Configuration]estimate // where runs are
	interpolate map[Configuration]line     // between them; the key has no batch size

	// asked are the lines that were asked for and have no run: computed once, as a
	// load that nothing ran under is asked for again and again. At most maxAsked.
	asked sync.Map
	asks  atomic.Int32
}

const maxAsked = 256

// line holds the estimates at quarter octaves of the batch size, all else equal.
type line struct {
	first     float64 // log2 of the first batch size
	estimates []estimate
}

const perOctave = 4

func newTimePredictor(t *TimeModel) (*timePredictor, bool) {
	o := t.observations()
	points := o.points
	g, ok := newProcess(t.Hyperparameters, o)
	if !ok {
		return nil, false
	}
	p := &timePredictor{model: t, process: g, nodes: t.nodeTypes(),
		unmeasured:  min(t.Degrees, 4+float64(len(points))),
		measured:    map[Configuration]estimate{},
		interpolate: map[Configuration]line{}}
	p.reaches = make([]reach, len(p.nodes))
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

// include widens the range by a point.
func (r *reach) include(p *point, runs int) {
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

// line computes the estimates at quarter octaves within the batch sizes that ran on the
// node type; all else is that of a point.
func (p *timePredictor) line(at point, room []float64) line {
	r := &p.reaches[at.node]
	l := line{first: math.Floor(perOctave*r.low[0]) / perOctave}
	for at.x[0] = l.first; ; at.x[0] += 1. / perOctave {
		mean, variance := p.process.predict(&at, -1, room)
		l.estimates = append(l.estimates, estimate{mean, variance, p.model.RunVariance, 0})
		if at.x[0] >= r.high[0] {
			return l
		}
	}
}

// between interpolates linearly in the log of the batch size.
func (l *line) between(x float64) (estimate, bool) {
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

// estimate returns the posterior for a banded configuration and what it rests on.
func (p *timePredictor) estimate(c *Configuration) (estimate, Support, Counts) {
	node, ran := p.nodes[c.NodeType]
	if !ran {
		return estimate{}, NeverRun, Counts{Model: p.runs}
	}
	r := &p.reaches[node]
	counts := Counts{NodeType: r.runs, Model: p.runs}
	if e, ok := p.measured[*c]; ok {
		counts.Configuration = e.runs
		return e, Measured, counts
	}
	at := pointOf(c, node)
	e := p.offLine(c, &at)
	if len(p.measured) >= leastNeighbours && r.interpolates(&at) &&
		e.variance <= mostInterpolatedSD*mostInterpolatedSD {
		return e, Interpolated, counts
	}
	return e, Extrapolated, counts
}

// offLine returns the posterior where no run is.
func (p *timePredictor) offLine(c *Configuration, at *point) estimate {
	key := *c
	key.BatchSize = 0
	l, ok := p.interpolate[key]
	if !ok {
		l = p.askedLine(key, at)
	}
	if e, ok := l.between(at.x[0]); ok {
		return e
	}
	var room [MaxConfigurations]float64
	mean, variance := p.process.predict(at, -1, room[:])
	return estimate{mean, variance, p.model.RunVariance, 0}
}

// askedLine returns a line without runs, and keeps it while there is room.
func (p *timePredictor) askedLine(key Configuration, at *point) line {
	if l, ok := p.asked.Load(key); ok {
		return l.(line)
	}
	l := p.line(*at, make([]float64, len(p.process.points)))
	if p.asks.Add(1) <= maxAsked {
		p.asked.Store(key, l)
	} else {
		p.asks.Store(maxAsked)
	}
	return l
}

// degrees of freedom of predictions on some support.
func (p *timePredictor) degrees(s Support) float64 {
	if s == Measured {
		return p.model.Degrees
	}
	return p.unmeasured
}

// run returns the distribution of the log of the mean seconds of some epochs of a run.
func (p *timePredictor) run(e *estimate, s Support, epochs float64) Distribution {
	scale := math.Sqrt(e.variance + e.run + p.model.EpochVariance/max(epochs, 1))
	return Distribution{e.mean, scale, p.degrees(s)}
}
