package advisor

import (
	"fmt"
	"time"

	"courier/regress"
	"courier/schemas"
)

// Question is what Decide answers: a request, or the rest of a job that runs.
type Question struct {
	Request    schemas.JobRequest // with its defaults filled in
	JobID      string
	Run        uint32          // 0 before the first start
	Nodes      []string        // where it runs, or would
	Cores      uint32          // logical processors there; 0 if unknown
	EpochsDone uint32          // so far
	Elapsed    time.Duration   // of the SLO, since submission
	Running    schemas.Setting // what it runs with; zero before the start
	Spans      []schemas.Span  // jobs that run beside it; itself may be among them
	Others     []Neighbour     // what is known of them, for the effect on them
	Tried      []Configuration // what the log has epochs of, of this model
}

// Neighbour is a running job that shares a node.
type Neighbour struct {
	JobID      string
	Setting    schemas.Setting
	Cores      uint32
	EpochsLeft uint32
	Left       time.Duration // until its deadline; 0: it has none
}

// Why an alternative was chosen or lost. Constants, so that an answer allocates
// nothing per alternative; the figures stand beside them.
const (
	reasonMostAccurate = "most accurate within the SLO"
	reasonFastest      = "none meets the SLO: this is the fastest"
	reasonScore        = "highest weighted score"
	reasonLearn        = "run it to learn from it"
	reasonKeep         = "runs already and meets the SLO"
	reasonTooSlow      = "predicted to miss the SLO"
	reasonLessAccurate = "less accurate within the SLO"
	reasonTieSlower    = "as accurate, but slower"
	reasonSlower       = "slower, and none meets the SLO"
	reasonLowerScore   = "lower weighted score"
	reasonUnknown      = "not known yet"
)

// figures per alternative that a slab of numbers holds.
const figures = 5

// Decide answers a question. It is pure: the same question and regressors give
// the same advice, but for the time at.
func Decide(q *Question, r Regressors, at time.Time) *schemas.Advice {
	a := &schemas.Advice{
		JobStamp: schemas.JobStamp{Stamp: schemas.Stamp{At: at}, JobID: q.JobID, Run: q.Run}, Action: schemas.ActionStart, Model: q.Request.Model, Nodes: q.Nodes,
		SLOSeconds: q.Request.SLO.Seconds(), ElapsedSeconds: q.Elapsed.Seconds(), Confidence: q.Request.Confidence, EpochsDone: q.EpochsDone, Regressors: r.digests(),
	}
	p := predictAll(q, r, a)
	choose(q, p, a)
	a.Load = loadOf(q, a.Chosen.CPUs)
	if q.running() {
		a.Action = action(q, a.Chosen)
	} else if r.EpochTime != nil && len(q.Others) > 0 {
		a.Effects = effects(q, r, a.Chosen.CPUs)
	}
	a.Message = message(a)
	return a
}

func (q *Question) running() bool { return q.Running.BatchSize > 0 }

// left returns the seconds that the SLO leaves; only where there is one.
func (q *Question) left() float64 { return q.Request.SLO.Seconds() - q.Elapsed.Seconds() }

func loadOf(q *Question, cpus uint32) schemas.Load {
	return schemas.LoadNow(schemas.Span{JobID: q.JobID, Nodes: nodesOrAny(q.Nodes), CPUs: cpus}, q.Spans, q.Cores)
}

// nodesOrAny lets a job without a node have the load of being alone.
func nodesOrAny(nodes []string) []string {
	if len(nodes) == 0 {
		return []string{""}
	}
	return nodes
}

// known tells what was predicted at all.
type known struct{ time, accuracy bool }

// predictAll fills the alternatives: each batch size with each number of CPUs.
// A job that runs keeps its CPUs (changing them is a move, not advice yet).
func predictAll(q *Question, r Regressors, a *schemas.Advice) known {
	cpus := []int(q.Request.CPUs)
	if q.running() {
		cpus = []int{int(q.Running.CPUs)}
	}
	n := len(q.Request.BatchSizes) * len(cpus)
	a.Alternatives = make([]schemas.Alternative, 0, n)
	slab, row := make([]float64, 0, figures*n), make([]float64, maxColumns)
	figure := func(v float64) *float64 {
		slab = append(slab, v)
		return &slab[len(slab)-1]
	}
	timeCode, knowsTime := r.EpochTime.knows(a.Model)
	accuracyCode, knowsAccuracy := r.Accuracy.knows(a.Model)
	epochs := uint32(q.Request.Epochs)
	left := epochs - min(epochs, q.EpochsDone)
	for _, c := range cpus {
		load := loadOf(q, uint32(c))
		for _, batch := range q.Request.BatchSizes {
			alt := schemas.Alternative{BatchSize: uint32(batch), CPUs: uint32(c), Epochs: left}
			f := schemas.Features{BatchSize: alt.BatchSize, CPUs: alt.CPUs, Load: load, ModelCode: timeCode, EpochsDone: epochs}
			if knowsTime {
				p, ok := r.EpochTime.predict(&f, row)
				if knowsTime = ok; ok {
					predictTime(&alt, q, r.EpochTime.predictor, p, figure)
				}
			}
			if f.ModelCode = accuracyCode; knowsAccuracy {
				if p, ok := r.Accuracy.predict(&f, row); ok {
					alt.PredictedAccuracy = figure(min(1, max(0, p.Value)))
					alt.Extrapolated = alt.Extrapolated || p.Extrapolated
				}
			}
			a.Alternatives = append(a.Alternatives, alt)
		}
	}
	return known{time: knowsTime, accuracy: knowsAccuracy}
}

// predictTime fills the time of the epochs that are left: epochs times epoch
// time, and the bound and the probability from the same table of residuals.
func predictTime(alt *schemas.Alternative, q *Question, p *regress.Predictor, epoch regress.Prediction, figure func(float64) *float64) {
	epochs := float64(alt.Epochs)
	alt.PredictedSeconds = figure(epochs * epoch.Value)
	alt.Extrapolated = epoch.Extrapolated
	if bound, ok := p.UpperBound(epoch, q.Request.Confidence); ok {
		alt.UpperBoundSeconds = figure(epochs * bound)
	}
	if q.Request.SLO == 0 || epochs == 0 {
		return
	}
	if chance, ok := p.Probability(epoch, q.left()/epochs); ok {
		alt.Probability = figure(chance)
	}
}

// choose sets the decision and the chosen alternative, and why the others lost.
// It chooses as the paper does: the most accurate of those whose predicted time
// is within the SLO, else the fastest (Courier, ICPE 2021, section 4.4).
func choose(q *Question, p known, a *schemas.Advice) {
	var best int
	switch {
	case !p.time || !p.accuracy && q.Request.SLO == 0:
		best = exploreFirst(q, a)
	case q.Request.SLO == 0:
		best = chooseScore(q.Request.Weights, a)
	default:
		best = chooseWithin(q, a)
	}
	chosen := a.Alternatives[best]
	a.Chosen = &chosen
	if p.time && !p.accuracy || chosen.Extrapolated {
		a.Decision = schemas.Exploring
	}
}

// seconds and accuracy of an alternative whose time is known.
func seconds(alt *schemas.Alternative) float64 { return *alt.PredictedSeconds }

func accuracy(alt *schemas.Alternative) float64 {
	if alt.PredictedAccuracy == nil {
		return 0
	}
	return *alt.PredictedAccuracy
}

// chooseWithin chooses by the SLO.
func chooseWithin(q *Question, a *schemas.Advice) int {
	best, fastest := -1, 0
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if seconds(alt) < seconds(&a.Alternatives[fastest]) {
			fastest = i
		}
		if seconds(alt) > q.left() {
			continue
		}
		if best < 0 || better(q, alt, &a.Alternatives[best]) {
			best = i
		}
	}
	if best < 0 {
		a.Decision = schemas.BestEffort
		explain(a, fastest, reasonFastest, func(*schemas.Alternative) string { return reasonSlower })
		return fastest
	}
	a.Decision = schemas.MeetsSLO
	chosen := reasonMostAccurate
	if q.running() && a.Alternatives[best].BatchSize == q.Running.BatchSize {
		chosen = reasonKeep
	}
	top := accuracy(&a.Alternatives[best])
	explain(a, best, chosen, func(alt *schemas.Alternative) string {
		switch {
		case seconds(alt) > q.left():
			return reasonTooSlow
		case accuracy(alt) == top:
			return reasonTieSlower
		}
		return reasonLessAccurate
	})
	return best
}

// better compares two alternatives within the SLO. A job that runs keeps its
// batch size while that meets the SLO: a change costs what no regressor knows.
func better(q *Question, alt, best *schemas.Alternative) bool {
	if q.running() {
		if best.BatchSize == q.Running.BatchSize || alt.BatchSize == q.Running.BatchSize {
			return alt.BatchSize == q.Running.BatchSize
		}
	}
	if accuracy(alt) != accuracy(best) {
		return accuracy(alt) > accuracy(best)
	}
	return seconds(alt) < seconds(best)
}

// chooseScore chooses by weight of accuracy · accuracy / largest + weight of
// time · (1 − time / longest).
func chooseScore(w *schemas.Weights, a *schemas.Advice) int {
	a.Decision = schemas.Weighted
	var largest, longest float64
	for i := range a.Alternatives {
		largest = max(largest, accuracy(&a.Alternatives[i]))
		longest = max(longest, seconds(&a.Alternatives[i]))
	}
	best := 0
	scores := make([]float64, len(a.Alternatives))
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if largest > 0 {
			scores[i] += w.Accuracy * accuracy(alt) / largest
		}
		if longest > 0 {
			scores[i] += w.Time * (1 - seconds(alt)/longest)
		}
		alt.Score = &scores[i]
		if scores[i] > scores[best] {
			best = i
		}
	}
	explain(a, best, reasonScore, func(*schemas.Alternative) string { return reasonLowerScore })
	return best
}

func explain(a *schemas.Advice, best int, chosen string, lost func(*schemas.Alternative) string) {
	for i := range a.Alternatives {
		if i == best {
			a.Alternatives[i].Reason = chosen
		} else {
			a.Alternatives[i].Reason = lost(&a.Alternatives[i])
		}
	}
}

// action says what a running job should do.
func action(q *Question, chosen *schemas.Alternative) schemas.Action {
	if chosen.PredictedSeconds == nil || chosen.BatchSize == q.Running.BatchSize || q.Request.SLO == 0 {
		return schemas.ActionKeep
	}
	return schemas.ActionBatch
}

// effects predicts what the job does to those that run beside it.
func effects(q *Question, r Regressors, cpus uint32) []schemas.Effect {
	var all []schemas.Effect
	row := make([]float64, maxColumns)
	with := append(append(make([]schemas.Span, 0, len(q.Spans)+1), q.Spans...), schemas.Span{JobID: q.JobID, Nodes: q.Nodes, CPUs: cpus})
	for i := range q.Others {
		o := &q.Others[i]
		code, ok := r.EpochTime.knows(o.Setting.Model)
		if !ok {
			continue
		}
		rest := func(spans []schemas.Span) (float64, bool) {
			self := schemas.Span{JobID: o.JobID, Nodes: o.Setting.Nodes, CPUs: o.Setting.CPUs}
			f := schemas.Features{BatchSize: o.Setting.BatchSize, CPUs: o.Setting.CPUs, ModelCode: code, Load: schemas.LoadNow(self, spans, o.Cores)}
			p, ok := r.EpochTime.predict(&f, row)
			return p.Value * float64(o.EpochsLeft), ok
		}
		before, ok1 := rest(q.Spans)
		after, ok2 := rest(with)
		if ok1 && ok2 {
			limit := o.Left.Seconds()
			all = append(all, schemas.Effect{JobID: o.JobID, BeforeSeconds: before, AfterSeconds: after, BreaksSLO: limit > 0 && before <= limit && after > limit})
		}
	}
	return all
}

// message says the advice in a sentence.
func message(a *schemas.Advice) string {
	c := a.Chosen
	what := fmt.Sprintf("batch size %d on %d CPUs", c.BatchSize, c.CPUs)
	if c.PredictedSeconds == nil {
		return fmt.Sprintf("nothing is known yet of model %s: run it with %s to learn from it", a.Model, what)
	}
	figures := fmt.Sprintf("%d epochs in %.3g s", c.Epochs, *c.PredictedSeconds)
	if c.PredictedAccuracy != nil {
		figures += fmt.Sprintf(", accuracy %.4f", *c.PredictedAccuracy)
	}
	left := ""
	if a.SLOSeconds > 0 {
		left = fmt.Sprintf(" of the %.3g s that the SLO leaves", a.SLOSeconds-a.ElapsedSeconds)
	}
	switch {
	case a.Decision == schemas.Exploring:
		return fmt.Sprintf("%s: perhaps %s%s, but that is beyond what was measured", what, figures, left)
	case a.Decision == schemas.BestEffort:
		return fmt.Sprintf("no alternative meets the SLO; %s is the fastest: %s%s", what, figures, left)
	}
	return fmt.Sprintf("%s: %s%s", what, figures, left)
}
