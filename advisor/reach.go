package advisor

import (
	"cmp"
	"math"

	"courier/regress/evidence"
	"courier/schemas"
)

// merit is what an alternative is ranked by, beside its figures.
type merit struct {
	mean    float64 // expected accuracy, 0 where it is not known
	onTime  float64 // probability of the SLO alone
	reaches float64 // probability of the target accuracy; 1 without a target
	highest float64 // accuracy that any run of the model reached
	known   bool    // its accuracy is known after so many epochs
}

// reach fills the accuracy of an alternative, and turns the probability of the SLO into that of
// the SLO and the target accuracy together. The errors of time and accuracy are taken as
// independent (product of both).
func (d *decision) reach(alt *schemas.Alternative, a *evidence.Accuracy) {
	m := merit{mean: a.Mean, onTime: probability(alt), reaches: 1, highest: a.Highest(), known: a.Known}
	if t := d.q.Request.TargetAccuracy; t > 0 {
		m.reaches = promisedReach(a, t)
		alt.AccuracyProbability = d.figure(m.reaches)
		if alt.Probability != nil {
			alt.SLOProbability = d.figure(m.onTime)
			*alt.Probability = math.Round(m.onTime*m.reaches*1e6) / 1e6
		}
	}
	if a.Known {
		alt.PredictedAccuracy, alt.MeanAccuracy = d.figure(a.Median), d.figure(a.Mean)
		low, high := a.Interval(d.q.Request.Confidence)
		if alt.AccuracyUpper = d.figure(high); low > 0 {
			alt.AccuracyLower = d.figure(low)
		}
	}
	d.merits = append(d.merits, m)
}

// promisedReach is the probability of a target accuracy that may be promised: 0 for a batch size
// that no run supports.
func promisedReach(a *evidence.Accuracy, target float64) float64 {
	if !a.Support.Promisable() {
		return 0
	}
	return a.Reaches(target)
}

// surely is the probability from which on the fastest way to a target accuracy is taken and not
// the most likely one.
const surely = 0.99

// hopelessTarget is the probability of SLO and target accuracy under which the epochs are chosen as
// if there were no target: what may come of a job then is better than nothing.
const hopelessTarget = 0.001

// freeEpochs chooses how many of the epochs that are left to run where the request leaves them
// open: with a target the fewest that reach it, within the SLO, as good as surely; else as many as
// make probability times expected accuracy largest.
func (d *decision) freeEpochs(alt *schemas.Alternative, fate *ahead, o *outlook) uint32 {
	all, done := alt.Epochs, d.q.epochsDone()
	target, slo := d.q.Request.TargetAccuracy, d.q.Request.SLO > 0
	startup := d.startupOf(d.codes.startup, d.hardware())
	first := min(1, all)
	best, most, accurate, accuracy := first, -1.0, first, -1.0
	for _, n := range epochGrid(all) {
		a := d.r.Accuracy.accuracyAt(d.codes.accuracy, alt.BatchSize, done+n)
		in := *o
		in.uncertainty, in.seconds = fate.spread(startup, float64(n)), d.f.after(float64(d.all()), float64(n))
		p := 1.0
		if slo {
			p, _ = in.probability(d.q.left(), d.q.Request.Confidence)
		}
		if worth := p * a.Mean; worth > accuracy {
			accurate, accuracy = n, worth
		}
		if target == 0 {
			continue
		}
		if worth := p * promisedReach(&a, target); worth > most {
			best, most = n, worth
		}
		if most >= surely {
			break
		}
	}
	if most < hopelessTarget {
		return accurate
	}
	return best
}

// chooseByEvidence takes, of the alternatives that may be promised, the one with the largest
// probability times expected accuracy, ties by time; with a target accuracy the fastest that keeps
// SLO and target as good as surely, else the most likely. Where none may be promised it takes the
// one with the largest probability times accuracy.
func (d *decision) chooseByEvidence(q *Question, a *schemas.Advice) int {
	best, hope := -1, 0
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if q.expects(alt, &d.merits[i], &a.Alternatives[hope], &d.merits[hope]) {
			hope = i
		}
		if q.promised(alt) && d.merits[i].known &&
			(best < 0 || q.beats(alt, &d.merits[i], &a.Alternatives[best], &d.merits[best])) {
			best = i
		}
	}
	a.Decision = schemas.MeetsSLO
	if best < 0 {
		a.Decision, best = schemas.BestEffort, hope
	}
	for i := range a.Alternatives {
		if i == best {
			a.Alternatives[i].Reason = d.whyChosen(i)
		} else {
			a.Alternatives[i].Reason = d.whyLost(i, best)
		}
	}
	return best
}

// beats compares two alternatives that may both be promised. A job that runs keeps its batch size.
// Where the confidence is the mean of all promises, the threshold already spends what other promises
// have to spare, so that accuracy alone decides among the likely: probability times accuracy would
// give 0.15 points of accuracy away and keep more promises than were asked for (BENCHMARKS.md).
func (q *Question) beats(alt *schemas.Alternative, m *merit, best *schemas.Alternative, than *merit) bool {
	if q.runs(alt) != q.runs(best) {
		return q.runs(alt)
	}
	if q.Request.TargetAccuracy > 0 {
		x, y := min(surely, probability(alt)), min(surely, probability(best))
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(seconds(alt), seconds(best))) < 0
	}
	if q.Threshold > 0 && q.likely(alt) != q.likely(best) {
		return q.likely(alt)
	}

	x, y := probability(alt)*m.mean, probability(best)*than.mean
	if q.Threshold > 0 && q.likely(alt) {
		x, y = m.mean, than.mean
	}
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(seconds(alt), seconds(best))) < 0
}

// expects compares two alternatives where none may be promised. Where a target accuracy is out of
// reach the accuracy that may be expected in time decides.
func (q *Question) expects(alt *schemas.Alternative, m *merit, best *schemas.Alternative, than *merit) bool {
	if alt.Extrapolated != best.Extrapolated {
		return best.Extrapolated
	}
	p, r := probability(alt), probability(best)
	if q.Request.TargetAccuracy > 0 && max(p, r) < hopelessTarget {
		p, r = m.onTime, than.onTime
	}
	x, y := p*max(m.mean, tinyAccuracy), r*max(than.mean, tinyAccuracy)
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(seconds(alt), seconds(best))) < 0
}

// tinyAccuracy stands for an accuracy that is not known: time alone decides.
const tinyAccuracy = 1e-6
