package evidence

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

// Passage is the distribution of the first epoch that reaches a target accuracy.
type Passage struct {
	Distribution // of the logarithm of the epoch
	// Reach is the probability that it is ever reached.
	Reach   float64
	Support Support
	// Promisable reports whether enough runs reached the target to promise it.
	Promisable bool
	after      int // epochs that have not reached it
}

// By returns the probability that the target is reached in at most some epochs.
func (a *Passage) By(epochs int) float64 {
	if !a.Known() || epochs <= a.after {
		return 0
	}
	p := a.Reach * a.Probability(float64(epochs))
	if a.after == 0 {
		return p
	}
	missed := a.Reach * a.Probability(float64(a.after))
	return (p - missed) / max(1-missed, 1e-9)
}

// After returns the passage of a run that has not reached the target in a number of epochs.
func (a Passage) After(epochs int) Passage {
	a.after = epochs
	return a
}

// Epochs returns the number of epochs by which a share of the runs that reach the target has reached
// it, at most a number.
func (a *Passage) Epochs(share float64, most int) int {
	missed := 0.0
	if a.after > 0 {
		missed = a.Probability(float64(a.after))
	}
	level := missed + share*(1-missed)
	if level >= 1-1e-9 {
		return most
	}
	n := math.Ceil(a.Quantile(level) - 1e-9)
	return int(max(float64(a.after+1), min(n, float64(most))))
}

// stopDeviations are the epochs at which the probability of ending in time is computed, in scales about
// the median; between them it is taken as linear. Runs beyond the last one hardly ever reach the target.
var stopDeviations = [...]float64{-.7, 0, .5, .8, 1.1, 1.4, 1.7, 2, 2.3, 2.7, 3.2, 4, 5, 7}

// Stop is a number of epochs for a run that stops at its target.
type Stop struct {
	Epochs      int
	Reached     float64 // probability that it reaches the target by then
	Probability float64 // that it does so in time
}

// Stop chooses a number of epochs for a run that stops at the target. inTime returns the probability
// that a number of epochs ends in time, and most bounds the epochs. It chooses the fewest after which
// the probability is as wanted, or as high as it can be; all of them probably end in time. No epochs
// mean that none do.
func (a *Passage) Stop(inTime func(epochs int) float64, most int, wanted float64) (s Stop) {
	if !a.Known() {
		return s
	}
	missed := 0.0
	if a.after > 0 {
		missed = a.Reach * a.Probability(float64(a.after))
	}
	low, before, last := missed, -1.0, a.after
	for _, z := range stopDeviations {
		n := int(math.Ceil(math.Exp(a.Location+z*a.Scale) - 1e-9))
		if n = max(n, 1); n <= last {
			continue
		}
		if n > most {
			break
		}
		p := inTime(n)
		if p < 0.5 {
			break
		}
		if before < 0 {
			before = p
		}
		reached := a.Reach * a.Probability(float64(n))
		share := (reached - low) / max(1-missed, 1e-9)
		s.Epochs = n
		s.Reached += share
		s.Probability += share * (before + p) / 2
		if low, before, last = reached, p, n; s.Probability >= wanted {
			break
		}
	}
	return s
}

// passageEstimate is the log passage of runs: location, its variance, variance of a run and degrees.
type passageEstimate struct {
	location, shared, run, degrees float64
	reached, tried                 int // runs that reached the target, and runs that count
}

// accuracyPredictor is the compiled form of an AccuracyModel.
type accuracyPredictor struct {
	model   *AccuracyModel
	pooled  []float64 // variance of passages that the other groups lend to each, and its weight
	weights []float64
	batches []int // measured, rising
	levels  []float64
	longest int
	runs    int
	octaves []float64
	byLevel func() []levelRow // of each batch size; computed on first use
}

// levelRow has the passages of a batch size at each of some levels; unknown with scale 0.
type levelRow [maxLevels]levelPassage

type levelPassage struct {
	location float64
	isUsual  bool // more than half of the runs that count reached it
}

// maxLevels is the number of accuracies between measured batch sizes.
const maxLevels = 64

// rows computes the passages of all batch sizes.
func (p *accuracyPredictor) rows() []levelRow {
	rows := make([]levelRow, len(p.batches))
	for i, batch := range p.batches {
		for k, level := range p.levels {
			e, ok := p.atBatch(batch, "", level)
			rows[i][k] = levelPassage{e.location, ok && 2*e.reached > e.tried}
		}
	}
	return rows
}

func newAccuracyPredictor(m *AccuracyModel) *accuracyPredictor {
	p := &accuracyPredictor{model: m}
	spreads := make([]spread, len(m.Groups))
	for i := range m.Groups {
		g := &m.Groups[i]
		spreads[i] = g.passageSpread()
		p.batches = append(p.batches, g.BatchSize)
		for k := range g.Runs {
			p.longest = max(p.longest, g.Runs[k].Length)
			p.levels = append(p.levels, g.Runs[k].Accuracy...)
		}
		p.runs += len(g.Runs)
	}
	p.batches = slices.Compact(p.batches)
	for _, b := range p.batches {
		p.octaves = append(p.octaves, math.Log2(float64(b)))
	}
	slices.Sort(p.levels)
	if p.levels = slices.Compact(p.levels); len(p.levels) > maxLevels {
		for k := range maxLevels {
			p.levels[k] = p.levels[k*(len(p.levels)-1)/(maxLevels-1)]
		}
		p.levels = p.levels[:maxLevels]
	}
	p.byLevel = sync.OnceValue(p.rows)
	for i := range spreads {
		others, used := slices.Concat(spreads[:i], spreads[i+1:]), 0.0
		for _, s := range others {
			used += min(s.freedom, mostLent)
		}
		p.pooled = append(p.pooled, pool(others, modelWeight, m.Prior, passagePoolWeight, mostLent))
		p.weights = append(p.weights, 1/(1/modelWeight+1/(passagePoolWeight+used)))
	}
	return p
}

// estimate returns the passage of a group, from the runs that reached the target and, as censored,
// from those that ended before.
func (p *accuracyPredictor) estimate(i int, target float64) passageEstimate {
	g, pooled, weight := &p.model.Groups[i], p.pooled[i], p.weights[i]
	var y, censored []float64
	var stalled []bool
	for k := range g.Runs {
		r := &g.Runs[k]
		if n := r.first(target); n > 0 {
			y = append(y, logPassage(n))
		} else {
			censored = append(censored, math.Log(float64(r.Length)))
			stalled = append(stalled, r.stalled())
		}
	}
	e := passageEstimate{run: pooled, degrees: weight, reached: len(y)}
	if len(y) == 0 {
		for _, s := range stalled {
			if s {
				e.tried++
			}
		}
		return e
	}
	rounding := make([]float64, len(y))
	for k, v := range y {
		rounding[k] = roundingVariance(v)
	}
	m := robustMeanOf(y, pooled, weight, passageTails, rounding)
	free := float64(len(y) - 1)
	const least = minPassageDeviation * minPassageDeviation
	e.location = m.location
	e.run = max((weight*pooled+m.squares)/(weight+free), least)
	e.degrees = weight + free
	late := e.location + lateDeviations*math.Sqrt(e.run)
	kept := censored[:0]
	for k, x := range censored {
		if stalled[k] && x > late {
			e.tried++
		} else {
			kept = append(kept, x)
		}
	}
	e.tried += len(y)
	number := m.number
	if len(kept) > 0 {
		e.addCensored(y, kept, pooled, weight)
		number = float64(len(y)) + censoredShare*float64(len(kept))
	}
	e.shared = e.run / max(number, 1)
	return e
}

// censoredShare is what a censored run counts for the variance of the location.
const censoredShare = 0.3

// addCensored estimates location and variance again with runs that would have reached the target
// later than they ended (expectation maximization of the normal distribution).
func (e *passageEstimate) addCensored(y, censored []float64, pooled, weight float64) {
	const rounds = 20
	const least = minPassageDeviation * minPassageDeviation
	all := slices.Concat(y, censored)
	d := float64(len(all) - 1)
	normal := distuv.UnitNormal
	for range rounds {
		s, extra, sum := math.Sqrt(e.run), 0.0, 0.0
		for i, x := range censored {
			z := (x - e.location) / s
			hazard := z + 1/max(z, 1) // its limit
			if below := normal.Survival(z); below > 1e-300 {
				hazard = normal.Prob(z) / below
			}
			all[len(y)+i] = e.location + s*hazard
			extra += e.run * max(0, 1-hazard*(hazard-z))
		}
		for _, v := range all {
			sum += v
		}
		e.location = sum / float64(len(all))
		squares := extra
		for _, v := range all {
			squares += (v - e.location) * (v - e.location)
		}
		e.run = max((weight*pooled+squares)/(weight+d), least)
	}
	e.degrees = weight + min(d, float64(len(y)))
}

// atBatch returns the passage of a measured batch size: its runs on the node type, and those on
// other node types with the variance between node types. ok is false if no run reached the target.
func (p *accuracyPredictor) atBatch(batch int, node string, target float64) (e passageEstimate, ok bool) {
	var own *passageEstimate
	var others []passageEstimate
	tried, reached := 0, 0
	for i := range p.model.Groups {
		g := &p.model.Groups[i]
		if g.BatchSize != batch {
			continue
		}
		x := p.estimate(i, target)
		tried, reached = tried+x.tried, reached+x.reached
		switch {
		case x.reached == 0:
		case g.NodeType == node:
			own = &x
		default:
			others = append(others, x)
		}
	}
	e = passageEstimate{tried: tried, reached: reached}
	if reached == 0 {
		return e, false
	}
	location, variance := combined(own, others)
	of := own
	if of == nil {
		most := slices.MaxFunc(others, func(a, b passageEstimate) int { return a.reached - b.reached })
		of = &most
	}
	e.location, e.shared, e.run, e.degrees = location, variance, of.run, of.degrees
	return e, true
}

// combined weights node types by their precision. Node types that disagree, for example because of
// other hyperparameters, each rely on their own runs.
func combined(own *passageEstimate, others []passageEstimate) (location, variance float64) {
	if len(others) == 0 {
		return own.location, own.shared
	}
	var locations []float64
	for i := range others {
		locations = append(locations, others[i].location)
	}
	if own != nil {
		locations = append(locations, own.location)
	}
	between := nodePassageDeviation * nodePassageDeviation
	if n := float64(len(locations)); n > 1 {
		between = (2*between + sumOfSquares(centered(locations))) / (1 + n)
	}
	sum, precision := 0.0, 0.0
	for i := range others {
		w := 1 / (others[i].shared + between)
		sum, precision = sum+w*others[i].location, precision+w
	}
	location, variance = sum/precision, 1/precision+between
	if own == nil {
		return location, variance
	}
	a, b := 1/own.shared, 1/variance
	return (a*own.location + b*location) / (a + b), 1 / (a + b)
}

// line is the line through the passages of the nearest measured batch sizes around one.
type line struct {
	location, shared, run, degrees float64
	low, high                      passageEstimate
	octaves                        float64 // between them
}

// lineAt returns the line at a batch size, which does not count itself; false if no smaller or no
// larger batch size reached the target. Epochs grow linearly with the batch size (the rule of
// MLCommons' reference convergence points); the distance to a line in the logarithm is uncertain.
func (p *accuracyPredictor) lineAt(batch int, node string, target float64) (l line, ok bool) {
	at, found := slices.BinarySearch(p.batches, batch)
	after := at
	if found {
		after++
	}
	var lowSize, highSize int
	for k := at - 1; k >= 0 && lowSize == 0; k-- {
		if l.low, ok = p.atBatch(p.batches[k], node, target); ok {
			lowSize = p.batches[k]
		}
	}
	for k := after; k < len(p.batches) && highSize == 0 && lowSize > 0; k++ {
		if l.high, ok = p.atBatch(p.batches[k], node, target); ok {
			highSize = p.batches[k]
		}
	}
	if lowSize == 0 || highSize == 0 {
		return l, false
	}
	l.octaves = math.Log2(float64(highSize) / float64(lowSize))
	x := math.Log2(float64(batch)/float64(lowSize)) / l.octaves
	share := float64(batch-lowSize) / float64(highSize-lowSize)
	a, b := l.low.location, l.high.location
	l.location = math.Log(math.Exp(a) + share*(math.Exp(b)-math.Exp(a)))
	apart := a + x*(b-a) - l.location
	l.shared = (1-x)*(1-x)*l.low.shared + x*x*l.high.shared + apart*apart
	l.run, l.degrees = max(l.low.run, l.high.run), min(l.low.degrees, l.high.degrees)
	return l, true
}

// reachOf is the probability of ever reaching a target, by runs that did and runs that count.
func reachOf(reached, tried int) float64 {
	return (float64(reached) + reachWeight*reachMean) / (float64(tried) + reachWeight)
}

// passage predicts when a batch size reaches a target on a node type; unknown if no run did.
func (p *accuracyPredictor) passage(batch int, node string, target float64) Passage {
	support, _ := p.support(batch)
	if support != Measured {
		return p.between(batch, node, target, support)
	}
	e, ok := p.atBatch(batch, node, target)
	if !ok {
		return Passage{Support: support}
	}
	return Passage{
		Distribution: Distribution{e.location, math.Sqrt(e.run + e.shared), e.degrees},
		Reach:        reachOf(e.reached, e.tried), Support: support,
		Promisable: e.reached >= promisedRuns,
	}
}

// between predicts the passage of a batch size without runs.
func (p *accuracyPredictor) between(batch int, node string, target float64, support Support) Passage {
	l, ok := p.lineAt(batch, node, target)
	if !ok {
		return Passage{Support: support}
	}
	var errors []spread
	for _, b := range p.batches {
		left, ok := p.lineAt(b, node, target)
		own, measured := p.atBatch(b, node, target)
		if ok && measured {
			d := own.location - left.location
			errors = append(errors, spread{max(d*d-own.shared-left.shared, 1e-8), 1})
		}
	}
	law := pool(errors, 2, linePassageDeviation*linePassageDeviation, 3, 1)
	variance := l.run + l.shared + law*min(1, l.octaves/2)
	return Passage{
		Distribution: Distribution{l.location, math.Sqrt(variance), min(l.degrees, 3+float64(len(errors)))},
		Reach: reachOf(min(l.low.reached, 2)+min(l.high.reached, 2),
			min(l.low.tried, 2)+min(l.high.tried, 2)),
		Support:    support,
		Promisable: support.Promisable() && l.low.reached+l.high.reached >= 2*promisedRuns,
	}
}

// support returns the support of a batch size and its number of runs.
func (p *accuracyPredictor) support(batch int) (Support, int) {
	runs := 0
	for i := range p.model.Groups {
		if g := &p.model.Groups[i]; g.BatchSize == batch {
			runs += len(g.Runs)
		}
	}
	if runs > 0 {
		return Measured, runs
	}
	r := measuredRange{batches: p.octaves}
	at := point{x: [inputs]float64{math.Log2(float64(batch))}}
	if len(p.octaves) >= minConfigurations && r.interpolates(&at) {
		return Interpolated, 0
	}
	return Extrapolated, 0
}
