package evidence

import (
	"math"
	"slices"
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
}

// estimate is the mean and the variance of a log pace, or of a log ratio over configurations.
type estimate struct{ mean, variance float64 }

// timePredictor is the compiled form of a TimeModel.
type timePredictor struct {
	model    *TimeModel
	process  *timeProcess
	reaches  map[string]*measuredRange // by node type
	runs     int
	longest  int // epochs of a run
	measured map[Configuration]*compiledCurve
	shape    shape
}

func newTimePredictor(t *TimeModel) (*timePredictor, bool) {
	curves := t.curves()
	o := t.observations()
	g, ok := newGaussianProcess(t.Hyperparameters, o)
	if !ok {
		return nil, false
	}
	p := &timePredictor{model: t, process: g,
		measured: map[Configuration]*compiledCurve{}, reaches: map[string]*measuredRange{}}
	for i, c := range curves {
		p.runs += c.Runs
		p.longest = max(p.longest, c.longest())
		p.measured[c.Configuration] = c
		if p.reaches[c.NodeType] == nil {
			p.reaches[c.NodeType] = &measuredRange{low: o.points[i].x, high: o.points[i].x}
		}
		p.reaches[c.NodeType].include(&o.points[i], c.Runs)
	}
	for _, r := range p.reaches {
		slices.Sort(r.batches)
	}
	p.shape = newShape(curves, p.longest)
	return p, true
}

// curves returns the curves of the configurations.
func (t *TimeModel) curves() []*compiledCurve {
	all := make([]*compiledCurve, len(t.Configurations))
	for i := range all {
		all[i] = newCompiledCurve(&t.Configurations[i], t.PaceVariance)
	}
	return all
}

// observations returns the paces of the configurations, which are sorted by node type.
func (t *TimeModel) observations() (o observations) {
	for i := range t.Configurations {
		c := &t.Configurations[i]
		o.points = append(o.points, pointOf(&c.Configuration))
		o.y = append(o.y, c.Pace)
		o.noise = append(o.noise, c.PaceVariance)
	}
	o.several = o.points[0].node != o.points[len(o.points)-1].node
	return o
}

// measurePaces sets the paces of the configurations by their curves. Runs of one epoch have only
// their first epoch, which is compared by the usual shape.
func (t *TimeModel) measurePaces() {
	curves := t.curves()
	first := shapePointOf(curves, 1).mean
	for i, c := range curves {
		last := len(c.Points) - 1
		m := &t.Configurations[i]
		if m.Pace = c.pace(); c.Points[last] == 1 {
			m.Pace -= first
		}
		m.PaceVariance = c.LocationVariance[last]
	}
}

// smooth moves the curves of the configurations to the posterior of their paces: a configuration with
// few runs borrows from the law of its model.
func (t *TimeModel) smooth() {
	if len(t.Configurations) < minConfigurations {
		return
	}
	o := t.observations()
	g, ok := newGaussianProcess(t.Hyperparameters, o)
	if !ok {
		return
	}
	for i := range t.Configurations {
		c := &t.Configurations[i]
		mean, variance := g.posterior(i)
		for k := range c.Location {
			c.Location[k] += mean - c.Pace
			c.LocationVariance[k] = min(c.LocationVariance[k], variance)
		}
	}
}

// shape is how the time of some epochs differs from their number times the pace, over the
// configurations of a model: what first epochs and trends add.
type shape struct {
	epochs            []int      // those of shapeGrid, and the length of the longest run
	points            []estimate // at these epochs; the shape is constant after the last one
	variance, degrees float64    // of a run of a configuration without runs
}

// shapeGrid are epochs at which every shape has a point.
var shapeGrid = [...]int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536}

func newShape(curves []*compiledCurve, longest int) (s shape) {
	s.epochs = slices.Compact(slices.Sorted(slices.Values(append(shapeGrid[:], longest))))
	var variances, degrees []float64
	for _, c := range curves {
		last := len(c.Points) - 1
		variances = append(variances, c.RunVariance[last])
		degrees = append(degrees, c.Degrees[last])
	}
	s.variance = median(variances)
	s.degrees = min(median(degrees), 4+float64(len(curves)))
	for _, n := range s.epochs {
		s.points = append(s.points, shapePointOf(curves, n))
	}
	return s
}

func shapePointOf(curves []*compiledCurve, n int) estimate {
	const alone, deviation, weight = 0.01, 0.02, 2
	var ratios []float64
	for _, c := range curves {
		if c.longest() > 1 {
			ratios = append(ratios, math.Log(c.total(n)/float64(n))-c.pace())
		}
	}
	switch len(ratios) {
	case 0:
		return estimate{}
	case 1:
		return estimate{ratios[0], alone}
	}
	m, squares := median(ratios), weight*deviation*deviation
	for _, x := range ratios {
		squares += (x - m) * (x - m)
	}
	return estimate{m, squares / (weight + float64(len(ratios)) - 1)}
}

// at interpolates the shape in the log of the epochs.
func (s *shape) at(n int) estimate {
	k, found := slices.BinarySearch(s.epochs, n)
	if found || k == 0 || k == len(s.epochs) {
		return s.points[min(k, len(s.epochs)-1)]
	}
	low, high := math.Log(float64(s.epochs[k-1])), math.Log(float64(s.epochs[k]))
	x := (math.Log(float64(n)) - low) / (high - low)
	a, b := s.points[k-1], s.points[k]
	return estimate{a.mean + x*(b.mean-a.mean), a.variance + x*(b.variance-a.variance)}
}

// include extends the range by a point.
func (r *measuredRange) include(p *point, runs int) {
	for f, x := range p.x {
		r.low[f], r.high[f] = min(r.low[f], x), max(r.high[f], x)
	}
	r.batches = append(r.batches, p.x[0])
	r.runs += runs
}

// times answers for one banded configuration.
type times struct {
	of       *timePredictor
	measured *compiledCurve // nil: never ran
	estimate estimate       // of the pace, if it never ran
	support  Support
	missing  Missing // why the support does not suffice to promise an SLO
	counts   RunCounts
}

// times returns what is known about a banded configuration.
func (p *timePredictor) times(c *Configuration) times {
	r, ran := p.reaches[c.NodeType]
	if !ran {
		return times{of: p, missing: Missing{Lacks: LacksNodeType}, counts: RunCounts{Model: p.runs}}
	}
	t := times{of: p, counts: RunCounts{NodeType: r.runs, Model: p.runs}}
	if m, ok := p.measured[*c]; ok {
		t.counts.Configuration, t.measured, t.support = m.Runs, m, Measured
		return t
	}
	at := pointOf(c)
	t.estimate.mean, t.estimate.variance = p.process.predict(&at)
	t.support, t.missing = Extrapolated, r.missing(&at)
	switch n := len(p.measured); {
	case t.missing.Lacks != "":
	case n < minConfigurations:
		t.missing = Missing{LacksConfigurations, n, n}
	case t.estimate.variance > maxInterpolatedDeviation*maxInterpolatedDeviation:
		t.missing = Missing{Lacks: LacksAgreement}
	default:
		t.support = Interpolated
	}
	return t
}

// total returns the log seconds of the first n epochs, 1 or more. The support must not be NeverRun.
func (t *times) total(n int) posterior {
	if m := t.measured; m != nil {
		return m.at(n, t.of.model.PaceVariance)
	}
	s, longest := &t.of.shape, t.of.longest
	h := s.at(n)
	of := posterior{t.estimate.mean + h.mean + math.Log(float64(n)),
		t.estimate.variance + h.variance, s.variance, s.degrees}
	if n > longest {
		share := 1 - t.seconds(longest)/t.seconds(n)
		of.addUnmeasured(share, longest, n, t.of.model.PaceVariance)
	}
	return of
}

// longest returns the epochs of the longest run.
func (t *times) longest() int {
	if t.measured != nil {
		return t.measured.longest()
	}
	return t.of.longest
}

// seconds returns the median seconds of the first n epochs.
func (t *times) seconds(n int) float64 {
	if n <= 0 {
		return 0
	}
	if m := t.measured; m != nil {
		return m.total(n)
	}
	return math.Exp(t.estimate.mean+t.of.shape.at(n).mean) * float64(n)
}
