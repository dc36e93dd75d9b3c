package trainer

import (
	"math"
	"slices"
	"time"
)

// driftLambda is the Page-Hinkley threshold, in standard deviations: the sum of shifts beyond the
// tolerated one. It gives 0.37 false alarms in 10^5 stationary jobs (courier simulate drift).
const driftLambda = 14

// Lambda is the threshold of each of several detectors that run in parallel, in standard
// deviations. The false alarms of one fall with exp(-2 delta lambda) (Siegmund 1985, chapter II),
// so all together have as many as one detector at driftLambda.
func Lambda(detectors int) float64 {
	return driftLambda + math.Log(float64(max(detectors, 1)))/(2*driftDelta)
}

const (
	recentOutcomes = 1024 // jobs in which a cause is searched
	maxScopes      = 1024 // nodes, and models, with detectors; the least recently used are evicted
	maxWait        = 8    // jobs for which an ambiguous alarm is delayed
	settlingJobs   = 50   // jobs after an alarm from which the new shift is estimated
	alarmJobsLimit = 4    // weight of the jobs of the alarm in that estimate, which they bias
)

// JobResidual compares one job with its prediction.
type JobResidual struct {
	At          time.Time // begin of the job
	Model       string    // model level: the model and its dataset
	Nodes       []string
	Residual    float64 // mean of log(measured / predicted)
	WithinBound float64 // share of its epochs within the bound at the default confidence
	HasBound    bool    // the regressor has such a bound
}

// Kinds of drift scopes.
const (
	ScopeAll   = "all"
	ScopeNode  = "node"
	ScopeModel = "model"
)

// DriftScope is the set of jobs that a detector watches, or that drifted: all jobs, the jobs
// of a model, or the jobs on a node.
type DriftScope struct {
	Kind string // ScopeAll, ScopeNode or ScopeModel
	Name string // of the node or model; empty for ScopeAll
}

// Watch detects when the times of jobs drift from the predictions of one regressor: for all jobs,
// for each model and for each node. It is deterministic: equal residuals in equal order give equal
// findings.
type Watch struct {
	deviation     float64 // of log residuals
	all           PageHinkley
	nodes, models *lru[string, *PageHinkley]
	adwin         Adwin
	noise         noiseMeter
	level         *lru[DriftScope, float64] // known shifts, in standard deviations
	settling      DriftScope
	settled       float64          // jobs in the estimate of the last shift; 0: no estimate is in progress
	recent        []judgedResidual // ring of the last recentOutcomes
	count         int              // of outcomes
	jobsWaited    int              // jobs for which the current alarm has been delayed
}

// judgedResidual is a residual and its expected value, in standard deviations.
type judgedResidual struct {
	JobResidual
	expected, surprise float64
}

// minDeviation is the smallest standard deviation that a watch assumes. Times on an idle machine
// vary by some percent over hours, which is not worth a fit; consecutive runs do not show it.
const minDeviation = 0.03

// NewWatch returns a watch for a regressor with a standard deviation of its log residuals; it
// assumes at least minDeviation.
func NewWatch(deviation float64) *Watch {
	return &Watch{
		deviation: max(deviation, minDeviation),
		nodes:     newLRU[string, *PageHinkley](maxScopes),
		models:    newLRU[string, *PageHinkley](maxScopes),
		level:     newLRU[DriftScope, float64](maxScopes),
		noise:     noiseMeter{last: newLRU[noiseKey, float64](maxScopes)},
	}
}

// Add adds the residual of the next job. found reports whether it reveals a drift. A residual that
// is not finite is ignored.
func (w *Watch) Add(o JobResidual) (f Finding, found bool) {
	z := o.Residual / w.deviation
	if math.IsNaN(z) || math.IsInf(z, 0) {
		return f, false
	}
	expected := w.expected(&o)
	w.remember(judgedResidual{o, expected, z - expected})
	w.settle(&o, z-expected)
	w.adwin.Add(z, o.At)
	w.noise.add(&o, z)
	step := (z - expected) / w.noise.factor()
	w.all.Add(step, w.count)
	// detector, d and lambda belong to the detector with the largest excess.
	detector, d, lambda := DriftScope{Kind: ScopeAll}, &w.all, Lambda(1)
	// The detector that exceeds its threshold by most raises the alarm.
	consider := func(p *PageHinkley, s DriftScope, detectors int) {
		p.Add(step, w.count)
		_, sum, _ := p.Alarm(0)
		if _, most, _ := d.Alarm(0); sum-Lambda(detectors) > most-lambda {
			detector, d, lambda = s, p, Lambda(detectors)
		}
	}
	consider(detectorOf(w.models, o.Model), DriftScope{ScopeModel, o.Model}, w.models.len())
	for _, name := range o.Nodes {
		consider(detectorOf(w.nodes, name), DriftScope{ScopeNode, name}, w.nodes.len())
	}
	w.count++
	first, sum, alarm := d.Alarm(lambda)
	if !alarm {
		w.jobsWaited = 0
		return f, false
	}
	return w.resolveAlarm(detector, first, sum, lambda)
}

// Window returns the number of recent jobs without a change, the begin of the first, and whether
// ADWIN dropped older jobs.
func (w *Watch) Window() (count int, since time.Time, cut bool) { return w.adwin.Window() }

func detectorOf(all *lru[string, *PageHinkley], name string) *PageHinkley {
	p, found := all.get(name)
	if !found {
		p = new(PageHinkley)
		all.put(name, p)
	}
	return p
}

// expected returns the known shift of a job. Of several slow nodes, the slowest determines it.
func (w *Watch) expected(o *JobResidual) float64 {
	if w.level.len() == 0 {
		return 0
	}
	most := 0.0
	for _, name := range o.Nodes {
		if l, _ := w.level.get(DriftScope{ScopeNode, name}); math.Abs(l) > math.Abs(most) {
			most = l
		}
	}
	all, _ := w.level.get(DriftScope{Kind: ScopeAll})
	model, _ := w.level.get(DriftScope{ScopeModel, o.Model})
	return all + model + most
}

func (w *Watch) remember(j judgedResidual) {
	if len(w.recent) < recentOutcomes {
		w.recent = append(w.recent, j)
		return
	}
	w.recent[w.count%recentOutcomes] = j
}

// since returns the recent outcomes from a number on, oldest first.
func (w *Watch) since(first int) []judgedResidual {
	first = max(first, w.count-len(w.recent))
	all := make([]judgedResidual, 0, w.count-first)
	for i := first; i < w.count; i++ {
		all = append(all, w.recent[i%recentOutcomes])
	}
	return all
}

// settle estimates the shift of the last drift from the jobs after it.
func (w *Watch) settle(o *JobResidual, surprise float64) {
	if w.settled == 0 || !w.settling.covers(o) {
		return
	}
	w.settled++
	w.raiseLevel(w.settling, surprise/w.settled)
	if w.settled >= settlingJobs {
		w.settled = 0
	}
}

// raiseLevel adds to the known shift of a scope.
func (w *Watch) raiseLevel(s DriftScope, by float64) {
	level, _ := w.level.get(s)
	w.level.put(s, level+by)
}

// covers reports whether a scope contains a job.
func (s DriftScope) covers(o *JobResidual) bool {
	switch s.Kind {
	case ScopeNode:
		return slices.Contains(o.Nodes, s.Name)
	case ScopeModel:
		return o.Model == s.Name
	}
	return true
}

// resolveAlarm turns an alarm into a finding, or waits until the cause is clear.
func (w *Watch) resolveAlarm(
	detector DriftScope, first int, sum, lambda float64,
) (f Finding, found bool) {
	outcomes := w.since(first)
	cause, begin, sure := explain(outcomes, w.nodes.len(), w.models.len(), w.noise.factor())
	first, outcomes = w.count-len(outcomes)+begin, outcomes[begin:]
	name, only := onlyNode(outcomes)
	if only = only && w.nodes.len() > 1 && cause.Kind != ScopeModel; only {
		cause, sure = DriftScope{ScopeNode, name}, false // no job on another node
	}
	if !sure && w.jobsWaited < maxWait {
		w.jobsWaited++
		return f, false
	}
	f = w.describe(cause, outcomes)
	f.Detector, f.Statistic, f.Threshold = detector, sum, lambda
	f.WindowJobs, f.WindowSince, f.WindowCut = w.adwin.Window()
	before := max(0, w.count-len(w.recent), first-knownSlack)
	f.LooseSince = w.recent[before%recentOutcomes].At
	w.raiseLevel(cause, f.shift)
	w.settling, w.settled, w.jobsWaited = cause, float64(min(f.Jobs, alarmJobsLimit)), 0
	w.all = PageHinkley{}
	reset(w.nodes)
	reset(w.models)
	return f, true
}

// reset restarts every detector after a finding has explained their alarms.
func reset(all *lru[string, *PageHinkley]) {
	all.each(func(_ string, p *PageHinkley) { *p = PageHinkley{} })
}
