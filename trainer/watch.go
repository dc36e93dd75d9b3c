package trainer

import (
	"math"
	"slices"
	"time"
)

// driftLambda is the sum of shifts beyond the tolerated one at which
// Page-Hinkley alarms, in standard deviations: 0.37 false alarms in 10^5
// stationary jobs (models: drift).
const driftLambda = 14

// Lambda is the threshold of each of some detectors that look for the same at
// once, in standard deviations. The alarms of one fall with exp(-2 delta lambda)
// (Siegmund 1985, chapter II), so that those of all together stay where those of
// one were.
func Lambda(detectors int) float64 {
	return driftLambda + math.Log(float64(max(detectors, 1)))/(2*driftDelta)
}

const (
	recentOutcomes = 1024 // jobs that a cause is looked for in
	mostScopes     = 1024 // nodes, and models, that have detectors: those that had jobs last
	patience       = 8    // jobs that an alarm waits for, while what drifted is not clear
	settlingJobs   = 50   // jobs after an alarm by which the new level is learnt
	settlingShare  = 4    // the jobs that alarmed count like so many of them: they were chosen by the alarm
)

// Outcome is what came of one job, beside its prediction.
type Outcome struct {
	At       time.Time // when it began
	Model    string    // its level: the model and its dataset
	Nodes    []string
	Residual float64 // mean of log(measured / predicted)
	Held     float64 // share of its epochs that took no longer than the bound at the usual confidence
	Bounded  bool    // there is such a bound
}

// Kinds of what drifts.
const (
	ScopeAll   = "all"
	ScopeNode  = "node"
	ScopeModel = "model"
)

// Scope is what a detector watches, and what drifts: all jobs, those of a model,
// or those on a node.
type Scope struct {
	Kind string // ScopeAll, ScopeNode or ScopeModel
	Name string // of the node or model; empty for all
}

// Watch watches whether the jobs of a target take as long as one regressor
// predicts: all of them, each model's and each node's. It is pure: the same
// outcomes in the same order give the same findings.
type Watch struct {
	deviation     float64 // of log residuals
	all           PageHinkley
	nodes, models *lru[string, *PageHinkley]
	adwin         Adwin
	rough         roughness
	level         *lru[Scope, float64] // what is known to differ already, in standard deviations
	settling      Scope
	settled       float64  // jobs behind the level that settles; 0: none settles
	recent        []judged // ring of the last recentOutcomes
	count         int      // of outcomes
	waited        int      // jobs that an alarm waits already
}

// judged is an outcome beside what was expected of it, in standard deviations.
type judged struct {
	Outcome
	expected, surprise float64
}

// leastDeviation is the smallest standard deviation that a watch believes: machines
// that are left alone wander by some percent over the hours, which is not worth a
// fit, and runs that follow each other tell little of that.
const leastDeviation = 0.03

// NewWatch returns a watch for a regressor whose log residuals have a standard
// deviation; less than leastDeviation counts as that.
func NewWatch(deviation float64) *Watch {
	return &Watch{
		deviation: max(deviation, leastDeviation),
		nodes:     newLRU[string, *PageHinkley](mostScopes),
		models:    newLRU[string, *PageHinkley](mostScopes),
		level:     newLRU[Scope, float64](mostScopes),
		rough:     roughness{last: newLRU[roughKey, float64](mostScopes)},
	}
}

// Add takes the next outcome; found is true if it shows that something drifted.
// A residual that is not finite changes nothing.
func (w *Watch) Add(o Outcome) (f Finding, found bool) {
	z := o.Residual / w.deviation
	if math.IsNaN(z) || math.IsInf(z, 0) {
		return f, false
	}
	expected := w.expected(&o)
	w.remember(judged{o, expected, z - expected})
	w.settle(&o, z-expected)
	w.adwin.Add(z, o.At)
	w.rough.add(&o, z)
	step := (z - expected) / w.rough.factor()
	w.all.Add(step, w.count)
	detector, d, lambda := Scope{Kind: ScopeAll}, &w.all, Lambda(1)
	// Whoever exceeds its threshold by most is the one that alarms.
	consider := func(p *PageHinkley, s Scope, detectors int) {
		p.Add(step, w.count)
		_, sum, _ := p.Alarm(0)
		if _, most, _ := d.Alarm(0); sum-Lambda(detectors) > most-lambda {
			detector, d, lambda = s, p, Lambda(detectors)
		}
	}
	consider(detectorOf(w.models, o.Model), Scope{ScopeModel, o.Model}, w.models.len())
	for _, name := range o.Nodes {
		consider(detectorOf(w.nodes, name), Scope{ScopeNode, name}, w.nodes.len())
	}
	w.count++
	first, sum, alarm := d.Alarm(lambda)
	if !alarm {
		w.waited = 0
		return f, false
	}
	return w.find(detector, first, sum, lambda)
}

// Window returns how many of the last jobs are still alike, when the first of
// them began, and whether older ones are not.
func (w *Watch) Window() (count int, since time.Time, cut bool) { return w.adwin.Window() }

func detectorOf(all *lru[string, *PageHinkley], name string) *PageHinkley {
	p, found := all.get(name)
	if !found {
		p = new(PageHinkley)
		all.put(name, p)
	}
	return p
}

// expected is how far off an outcome is known to be: one slow node slows a job on
// several, but does so once.
func (w *Watch) expected(o *Outcome) float64 {
	if w.level.len() == 0 {
		return 0
	}
	most := 0.0
	for _, name := range o.Nodes {
		if l, _ := w.level.get(Scope{ScopeNode, name}); math.Abs(l) > math.Abs(most) {
			most = l
		}
	}
	all, _ := w.level.get(Scope{Kind: ScopeAll})
	model, _ := w.level.get(Scope{ScopeModel, o.Model})
	return all + model + most
}

func (w *Watch) remember(j judged) {
	if len(w.recent) < recentOutcomes {
		w.recent = append(w.recent, j)
		return
	}
	w.recent[w.count%recentOutcomes] = j
}

// since returns the remembered outcomes from a number on, oldest first.
func (w *Watch) since(first int) []judged {
	first = max(first, w.count-len(w.recent))
	all := make([]judged, 0, w.count-first)
	for i := first; i < w.count; i++ {
		all = append(all, w.recent[i%recentOutcomes])
	}
	return all
}

// settle learns the level of what drifted last from the jobs that follow.
func (w *Watch) settle(o *Outcome, surprise float64) {
	if w.settled == 0 || !w.settling.touches(o) {
		return
	}
	w.settled++
	w.raise(w.settling, surprise/w.settled)
	if w.settled >= settlingJobs {
		w.settled = 0
	}
}

// raise adds to the level of a scope.
func (w *Watch) raise(s Scope, by float64) {
	level, _ := w.level.get(s)
	w.level.put(s, level+by)
}

// touches reports whether an outcome is one of a scope.
func (s Scope) touches(o *Outcome) bool {
	switch s.Kind {
	case ScopeNode:
		return slices.Contains(o.Nodes, s.Name)
	case ScopeModel:
		return o.Model == s.Name
	}
	return true
}

// find turns an alarm into a finding, or waits until it is clear what drifted.
func (w *Watch) find(detector Scope, first int, sum, lambda float64) (f Finding, found bool) {
	outcomes := w.since(first)
	cause, begin, sure := explain(outcomes, w.nodes.len(), w.models.len(), w.rough.factor())
	first, outcomes = w.count-len(outcomes)+begin, outcomes[begin:]
	name, only := onlyNode(outcomes)
	if only = only && w.nodes.len() > 1 && cause.Kind != ScopeModel; only {
		cause, sure = Scope{ScopeNode, name}, false // more was not seen
	}
	if !sure && w.waited < patience {
		w.waited++
		return f, false
	}
	f = w.describe(cause, outcomes)
	f.Detector, f.Statistic, f.Threshold = detector, sum, lambda
	f.WindowJobs, f.WindowSince, f.WindowCut = w.adwin.Window()
	before := max(0, w.count-len(w.recent), first-knownSlack)
	f.LooseSince = w.recent[before%recentOutcomes].At
	w.raise(cause, f.shift)
	w.settling, w.settled, w.waited = cause, float64(min(f.Jobs, settlingShare)), 0
	w.all = PageHinkley{}
	reset(w.nodes)
	reset(w.models)
	return f, true
}

// reset starts every detector again: what they saw is explained.
func reset(all *lru[string, *PageHinkley]) {
	all.each(func(_ string, p *PageHinkley) { *p = PageHinkley{} })
}
