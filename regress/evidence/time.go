package evidence

import (
	"math"
	"slices"
)

// Time is the predicted duration of a training: a distribution of the seconds of all epochs, plus the
// start-up if that is known.
type Time struct {
	Distribution // unknown with scale 0
	Support      Support
	Counts       RunCounts
}

// estimate is the mean and the variance of a log pace, or of a log ratio over configurations.
type estimate struct{ mean, variance float64 }

// timePredictor is the compiled form of a TimeModel.
type timePredictor struct {
	model    *TimeModel
	process  *timeProcess
	reaches  map[string]*measuredRange // by node type
	measured map[Configuration]*compiledCurve
	typical  *compiledCurve // relative to the pace of a configuration
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
		p.measured[c.Configuration] = c
		if p.reaches[c.NodeType] == nil {
			p.reaches[c.NodeType] = &measuredRange{low: o.points[i].x, high: o.points[i].x}
		}
		p.reaches[c.NodeType].include(&o.points[i], c.Runs)
	}
	for _, r := range p.reaches {
		slices.Sort(r.batches)
	}
	p.typical = newTypicalCurve(curves, t.PaceVariance)
	return p, true
}

// curves returns the curves of the configurations. One whose runs are all shorter than others of the model, such
// as a load under which a job runs for the first time, continues in the usual way.
func (t *TimeModel) curves() []*compiledCurve {
	all := make([]*compiledCurve, len(t.Configurations))
	for i := range all {
		all[i] = newCompiledCurve(&t.Configurations[i], t.PaceVariance)
	}
	usual := newUsualCurve(all, t.PaceVariance)
	for _, c := range all {
		if c.longest() < usual.longest() {
			c.follow(usual)
		}
	}
	return all
}

// newUsualCurve returns how runs of a model go on from each point to the next: the median of the
// configurations that ran so far, relative to the pace.
func newUsualCurve(curves []*compiledCurve, paceVariance float64) *compiledCurve {
	var points []int
	for _, c := range curves {
		points = append(points, c.Points...)
	}
	slices.Sort(points)
	t := &ConfigurationTimes{}
	location, before := 0., 1
	for _, n := range slices.Compact(points) {
		var growth []float64
		for _, c := range curves {
			if c.longest() >= n {
				growth = append(growth, math.Log(c.total(n)/c.total(before)))
			}
		}
		location += Median(growth)
		t.addPoint(n, posterior{location: location})
		before = n
	}
	pace := newCompiledCurve(t, paceVariance).pace()
	for k := range t.Location {
		t.Location[k] -= pace
	}
	return newCompiledCurve(t, paceVariance)
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

// measurePaces sets the paces of the configurations by their curves.
func (t *TimeModel) measurePaces() {
	for i, c := range t.curves() {
		m := &t.Configurations[i]
		m.Pace, m.PaceVariance = c.pace(), c.LocationVariance[len(c.Points)-1]
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

// newTypicalCurve returns the usual curve of the runs of a model, relative to their pace, with how much the
// configurations differ from it. A configuration that never ran is predicted by it.
func newTypicalCurve(curves []*compiledCurve, paceVariance float64) *compiledCurve {
	t := newUsualCurve(curves, paceVariance).ConfigurationTimes
	var variances, degrees []float64
	for _, c := range curves {
		last := len(c.Points) - 1
		t.Runs += c.Runs
		variances = append(variances, c.RunVariance[last])
		degrees = append(degrees, c.Degrees[last])
	}
	run, free := Median(variances), min(Median(degrees), 4+float64(len(curves)))
	for k, n := range t.Points {
		t.RunVariance[k], t.Degrees[k] = run, free
		t.LocationVariance[k] = shapeVariance(curves, n, t.Location[k])
	}
	return newCompiledCurve(t, paceVariance)
}

// shapeVariance returns the variance of the log seconds of n epochs, relative to the pace, about the usual ones.
func shapeVariance(curves []*compiledCurve, n int, usual float64) float64 {
	const alone, deviation, weight = 0.01, 0.02, 2
	squares, number := weight*deviation*deviation, 0.0
	for _, c := range curves {
		if c.longest() > 1 {
			x := math.Log(c.total(n)) - c.pace() - usual
			squares, number = squares+x*x, number+1
		}
	}
	switch number {
	case 0:
		return 0
	case 1:
		return alone
	}
	return squares / (weight + number - 1)
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
	curve    *compiledCurve // its own or, relative to its pace, the typical one; nil without support
	estimate estimate       // of the pace, if it never ran
	support  Support
	missing  Missing // why the support does not suffice to promise an SLO
	counts   RunCounts
}

// times returns what is known about a banded configuration.
func (p *timePredictor) times(c *Configuration) times {
	r, ran := p.reaches[c.NodeType]
	if !ran {
		return times{of: p, missing: Missing{Lacks: LacksNodeType}, counts: RunCounts{Model: p.typical.Runs}}
	}
	t := times{of: p, counts: RunCounts{NodeType: r.runs, Model: p.typical.Runs}}
	if m, ok := p.measured[*c]; ok {
		t.counts.Configuration, t.curve, t.support = m.Runs, m, Measured
		return t
	}
	at := pointOf(c)
	t.curve = p.typical
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
	p := t.curve.at(n, t.of.model.PaceVariance)
	// A few runs may agree by chance. They vary at least as much as their epochs make them.
	white, correlated := t.of.model.epochNoise(t.curve.ConfigurationTimes)
	p.run = max(p.run, (white+t.curve.OddVariance)/float64(n)+meanCorrelated(correlated, n))
	p.location += t.estimate.mean
	p.shared += t.estimate.variance
	return p
}

// seconds returns the median seconds of the first n epochs.
func (t *times) seconds(n int) float64 { return t.curve.total(n) * math.Exp(t.estimate.mean) }
