package evidence

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// passageEstimate is the posterior of the log passage of runs. Those that ended long before count only if
// they had stalled.
type passageEstimate struct {
	posterior
	reached, tried int // runs that reached the target, and runs that count
}

// accuracyPredictor is the compiled form of an AccuracyModel.
type accuracyPredictor struct {
	batches []batchRecords // measured, rising
	highest float64        // accuracy of any run
	longest int
	runs    int

	courses     sync.Map // of courseKey
	courseCount atomic.Int64
}

// batchRecords are the runs of a batch size.
type batchRecords struct {
	size    int
	groups  []passageGroup
	runs    []*Records
	longest int // epochs of the longest run
}

// passageGroup are the runs on one node type, with the variance of passages that other groups lend and its
// weight.
type passageGroup struct {
	*RecordGroup
	pooled, weight float64
}

// maxLevels is the maximum number of accuracies at which passages are estimated; a target between two of
// them counts as the higher one.
const maxLevels = 256

func newAccuracyPredictor(m *AccuracyModel) *accuracyPredictor {
	p := &accuracyPredictor{}
	spreads := make([]spread, len(m.Groups))
	for i := range m.Groups {
		spreads[i] = m.Groups[i].passageSpread()
	}
	for i := range m.Groups {
		g := passageGroup{RecordGroup: &m.Groups[i]}
		g.pooled, g.weight = passageVariance.ofOthers(spreads, i, m.Prior)
		if n := len(p.batches); n == 0 || p.batches[n-1].size != g.BatchSize {
			p.batches = append(p.batches, batchRecords{size: g.BatchSize})
		}
		b := &p.batches[len(p.batches)-1]
		b.groups = append(b.groups, g)
		for k := range g.Runs {
			r := &g.Runs[k]
			b.runs = append(b.runs, r)
			b.longest = max(b.longest, r.Length)
			p.highest = max(p.highest, r.Accuracy[len(r.Accuracy)-1])
		}
		p.longest, p.runs = max(p.longest, b.longest), p.runs+len(g.Runs)
	}
	return p
}

// find returns the index of a batch size, or of the next larger one, and whether it is measured.
func (p *accuracyPredictor) find(batch int) (i int, isMeasured bool) {
	return slices.BinarySearchFunc(p.batches, batch, func(b batchRecords, size int) int {
		return cmp.Compare(b.size, size)
	})
}

// support returns the support of a batch size.
func (p *accuracyPredictor) support(batch int) Support {
	i, isMeasured := p.find(batch)
	switch {
	case isMeasured:
		return Measured
	case i > 0 && i < len(p.batches) && len(p.batches) >= minConfigurations &&
		p.batches[i].size <= p.batches[i-1].size<<maxOctaves:
		return Interpolated
	}
	return Extrapolated
}

// estimate returns the passage of the runs that reached the target and, as censored, of those that ended
// before.
func (g *passageGroup) estimate(target float64) passageEstimate {
	var y, rounding, censored []float64
	var stalled []bool
	for k := range g.Runs {
		r := &g.Runs[k]
		if n := r.first(target); n > 0 {
			y = append(y, logPassage(n))
			rounding = append(rounding, roundingVariance(logPassage(n)))
		} else {
			censored = append(censored, math.Log(float64(r.Length)))
			stalled = append(stalled, r.stalled())
		}
	}
	e := passageEstimate{reached: len(y), tried: len(y)}
	late := math.Inf(-1)
	var number float64
	if len(y) > 0 {
		m := robustMeanOf(y, g.pooled, g.weight, passageTails, rounding)
		e.posterior = posterior{location: m.location, degrees: g.weight + float64(len(y)-1)}
		e.run = g.variance(m.squares, e.degrees)
		number, late = m.number, e.location+lateDeviations*math.Sqrt(e.run)
	}
	kept := censored[:0]
	for k, x := range censored {
		if stalled[k] && x > late {
			e.tried++
		} else {
			kept = append(kept, x)
		}
	}
	if len(y) == 0 {
		return e
	}
	if len(kept) > 0 {
		g.addCensored(&e, y, kept)
		number = float64(len(y)) + censoredShare*float64(len(kept))
	}
	e.shared = e.run / max(number, 1)
	return e
}

// variance returns the variance of a passage by squares and degrees of freedom.
func (g *passageGroup) variance(squares, degrees float64) float64 {
	return max((g.weight*g.pooled+squares)/degrees, minPassageDeviation*minPassageDeviation)
}

// censoredShare is what a censored run counts for the variance of the location.
const censoredShare = 0.3

// addCensored estimates location and variance again with runs that would have reached the target
// later than they ended (expectation maximization of the normal distribution).
func (g *passageGroup) addCensored(e *passageEstimate, y, censored []float64) {
	const rounds = 20
	all := slices.Concat(y, censored)
	degrees := g.weight + float64(len(all)-1)
	normal := distuv.UnitNormal
	for range rounds {
		s, extra := math.Sqrt(e.run), 0.0
		for i, x := range censored {
			z := (x - e.location) / s
			hazard := z + 1/max(z, 1) // its limit
			if below := normal.Survival(z); below > 1e-300 {
				hazard = normal.Prob(z) / below
			}
			all[len(y)+i] = e.location + s*hazard
			extra += e.run * max(0, 1-hazard*(hazard-z))
		}
		e.location = stat.Mean(all, nil)
		e.run = g.variance(extra+sumOfSquares(centered(all)), degrees)
	}
	e.degrees = min(degrees, g.weight+float64(len(y)))
}

// estimate returns the passage of a batch size: of its runs on the node type, and of those on other node
// types with the variance between node types.
func (b *batchRecords) estimate(node string, target float64) passageEstimate {
	var all, own passageEstimate
	var others []passageEstimate
	for i := range b.groups {
		x := b.groups[i].estimate(target)
		all.tried, all.reached = all.tried+x.tried, all.reached+x.reached
		switch {
		case x.reached == 0:
		case b.groups[i].NodeType == node:
			own = x
		default:
			others = append(others, x)
		}
	}
	if all.reached == 0 {
		return all
	}
	if all.posterior = own.posterior; own.reached == 0 {
		more := func(a, b passageEstimate) int { return a.reached - b.reached }
		all.posterior = slices.MaxFunc(others, more).posterior
	}
	if len(others) > 0 {
		all.location, all.shared = combined(own, others)
	}
	return all
}

// combined weights node types by their precision. Node types that disagree, for example because of
// other hyperparameters, each rely on their own runs.
func combined(own passageEstimate, others []passageEstimate) (location, variance float64) {
	var locations []float64
	for i := range others {
		locations = append(locations, others[i].location)
	}
	if own.reached > 0 {
		locations = append(locations, own.location)
	}
	n, between := float64(len(locations)), nodePassageDeviation*nodePassageDeviation
	between = (2*between + sumOfSquares(centered(locations))) / (1 + n)
	sum, precision := 0.0, 0.0
	for i := range others {
		w := 1 / (others[i].shared + between)
		sum, precision = sum+w*others[i].location, precision+w
	}
	location, variance = sum/precision, 1/precision+between
	if own.reached > 0 {
		a, b := 1/own.shared, 1/variance
		location, variance = (a*own.location+b*location)/(a+b), 1/(a+b)
	}
	return location, variance
}

// course has the passages of a batch size on a node type, at accuracies of its runs, or of all runs if the
// batch size has none.
type course struct {
	levels    []float64 // rising, at most maxLevels
	passages  []Passage
	estimates []passageEstimate // of a measured batch size
}

type courseKey struct {
	batch int
	node  string
}

// maxCourses is the maximum number of courses that a predictor keeps, because each decision requests the
// same ones. Others are computed for each request.
const maxCourses = 1024

// passage predicts when a batch size reaches a target on a node type; unknown if no run did.
func (p *accuracyPredictor) passage(batch int, node string, target float64) Passage {
	c := p.course(batch, node)
	k := sort.SearchFloat64s(c.levels, target-tolerance)
	if k == len(c.levels) {
		return Passage{Support: p.support(batch), target: target}
	}
	a := c.passages[k]
	a.target, a.others, a.at = target, c.passages, k
	return a
}

func (p *accuracyPredictor) course(batch int, node string) *course {
	if c, isKnown := p.courses.Load(courseKey{batch, node}); isKnown {
		return c.(*course)
	}
	c := p.newCourse(batch, node)
	if p.courseCount.Add(1) <= maxCourses {
		p.courses.Store(courseKey{batch, node}, c)
	}
	return c
}

func (p *accuracyPredictor) newCourse(batch int, node string) *course {
	i, isMeasured := p.find(batch)
	var runs []*Records
	if isMeasured {
		runs = p.batches[i].runs
	} else {
		for k := range p.batches { // the nearest neighbours may not have reached a level
			runs = append(runs, p.batches[k].runs...)
		}
	}
	c := &course{levels: levelsOf(runs)}
	latest := math.Inf(-1)
	for _, level := range c.levels {
		var a Passage
		if isMeasured {
			e := p.batches[i].estimate(node, level)
			c.estimates = append(c.estimates, e)
			a = e.passage()
		} else {
			a = p.between(i, batch, node, level)
		}
		if a.Known() { // a robust location may fall although no run is earlier
			latest = max(latest, a.Location)
			a.Location = latest
		}
		a.target = level
		c.passages = append(c.passages, a)
	}
	return c
}

// levelsOf returns accuracies that runs had, rising.
func levelsOf(runs []*Records) (levels []float64) {
	for _, r := range runs {
		levels = append(levels, r.Accuracy...)
	}
	slices.Sort(levels)
	return evenly(slices.Compact(levels), maxLevels)
}

// estimate returns the estimate for the measured batch size i from its course.
func (p *accuracyPredictor) estimate(i int, node string, target float64) (e passageEstimate) {
	c := p.course(p.batches[i].size, node)
	k := sort.SearchFloat64s(c.levels, target-tolerance)
	if k == len(c.levels) {
		return e
	}
	return c.estimates[k]
}

// passage returns the passage by the estimate for a measured batch size.
func (e *passageEstimate) passage() Passage {
	if e.reached == 0 {
		return Passage{Support: Measured}
	}
	return Passage{Distribution: e.distribution(), Reach: reachOf(e.reached, e.tried), Support: Measured,
		Promisable: e.reached >= promisedRuns}
}

// reachOf is the probability of ever reaching a target, by runs that did and runs that count.
func reachOf(reached, tried int) float64 {
	return (float64(reached) + reachWeight*reachMean) / (float64(tried) + reachWeight)
}

// between predicts the passage of a batch size without runs, by the line through the passages of the
// nearest batch sizes around it that reached the target; above is the index of the next larger one. Epochs
// grow linearly with the batch size (the rule of MLCommons' reference convergence points); the distance to
// a line in the logarithm is uncertain.
func (p *accuracyPredictor) between(above, batch int, node string, target float64) Passage {
	unknown := Passage{Support: p.support(batch)}
	below := above - 1
	nearest := func(i *int, step int) (e passageEstimate) {
		for ; *i >= 0 && *i < len(p.batches) && e.reached == 0; *i += step {
			e = p.estimate(*i, node, target)
		}
		*i -= step
		return e
	}
	low, high := nearest(&below, -1), nearest(&above, 1)
	if low.reached == 0 || high.reached == 0 {
		return unknown
	}
	from, to := float64(p.batches[below].size), float64(p.batches[above].size)
	octaves := math.Log2(to / from)
	x := math.Log2(float64(batch)/from) / octaves
	share := (float64(batch) - from) / (to - from)
	a, b := low.location, high.location
	location := math.Log(math.Exp(a) + share*(math.Exp(b)-math.Exp(a)))
	apart := a + x*(b-a) - location
	const line = linePassageDeviation * linePassageDeviation
	e := posterior{
		location: location,
		run:      max(low.run, high.run),
		shared:   (1-x)*(1-x)*low.shared + x*x*high.shared + apart*apart + line*min(1, octaves/2),
		degrees:  min(low.degrees, high.degrees, float64(3+len(p.batches))),
	}
	return Passage{
		Distribution: e.distribution(),
		Reach:        reachOf(min(low.reached, 2)+min(high.reached, 2), min(low.tried, 2)+min(high.tried, 2)),
		Support:      unknown.Support,
		Promisable:   unknown.Support.Promisable() && low.reached+high.reached >= 2*promisedRuns,
	}
}
