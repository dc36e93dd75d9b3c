package advisor

import (
	"math"

	"courier/schemas"
)

// Why an alternative was chosen or lost. Constants, so that an answer allocates
// nothing per alternative; the figures stand beside them.
const (
	reasonMostAccurate = "the most accurate of those likely enough to keep the SLO"
	reasonFastest      = "none keeps the SLO likely enough: this is the most likely"
	reasonSurest       = "the most likely to keep the SLO, and likely enough to be promised"
	reasonScore        = "highest weighted score"
	reasonLearn        = "run it to learn from it"
	reasonKeep         = "runs already, and keeps the SLO likely enough"
	reasonChange       = "likely enough to keep the SLO, but so is what runs already"
	reasonTooUnlikely  = "keeps the SLO too rarely"
	reasonBeyond       = "beyond what was measured: nothing can be promised"
	reasonLessAccurate = "likely enough to keep the SLO, but less accurate"
	reasonTieDearer    = "as accurate as its validation can tell, but costs more CPU time"
	reasonCheapest     = "likely enough to keep the SLO, and the cheapest of those that are as accurate as its validation can tell"
	reasonLessLikely   = "less likely to keep the SLO"
	reasonLowerScore   = "lower weighted score"
	reasonUnknown      = "not known yet"
	reasonShort        = "does not reach the accuracy"
)

// choose sets the decision and the chosen alternative, and why the others lost.
func (d *decision) choose() {
	q, a := d.q, d.a
	var best int
	switch {
	case !d.knows.time || !d.knows.accuracy && q.Request.SLO == 0:
		best = d.exploreFirst(q, a)
	case q.Request.SLO == 0:
		best = d.chooseScore(q, a)
	case d.knows.accuracy && d.r.Accuracy.evidence != nil:
		best = d.chooseByEvidence(q, a)
	default:
		best = chooseWithin(q, a)
	}
	if d.knows.time && !d.knows.accuracy && d.byEvidence() {
		a.Alternatives[best].Reason = reasonAccuracyUnseen
	}
	chosen := a.Alternatives[best]
	a.Chosen = &chosen
	if d.knows.time && !d.knows.accuracy || chosen.Extrapolated || d.blind(best) {
		a.Decision = schemas.Exploring
	}
}

// blind reports whether nothing is known of the accuracy of an alternative after its epochs.
func (d *decision) blind(i int) bool { return i < len(d.merits) && !d.merits[i].known }

// seconds, accuracy and probability of an alternative whose time is known.
func seconds(alt *schemas.Alternative) float64 { return *alt.PredictedSeconds }

func accuracy(alt *schemas.Alternative) float64 {
	if alt.PredictedAccuracy == nil {
		return 0
	}
	return *alt.PredictedAccuracy
}

func probability(alt *schemas.Alternative) float64 {
	if alt.Probability == nil {
		return 0
	}
	return *alt.Probability
}

// worth is the accuracy that counts: more than the target is no better.
func (q *Question) worth(alt *schemas.Alternative) float64 {
	if t := q.Request.TargetAccuracy; t > 0 {
		return min(t, accuracy(alt))
	}
	return accuracy(alt)
}

// likely reports whether an alternative keeps the SLO so surely that accuracy
// decides.
func (q *Question) likely(alt *schemas.Alternative) bool {
	return probability(alt) >= q.sure() && !alt.Extrapolated
}

// promised reports whether an alternative keeps the SLO so surely that it may be
// promised where none is likely.
func (q *Question) promised(alt *schemas.Alternative) bool {
	return probability(alt) >= q.least() && !alt.Extrapolated
}

// chooseWithin takes the most accurate alternative that keeps the SLO with the
// confidence asked for, ties by the CPU time that they cost; if there is none,
// the one that keeps it most likely. An alternative beyond the examples wins
// only where nothing else is known.
func chooseWithin(q *Question, a *schemas.Advice) int {
	best, hope, most := -1, 0, 0.0
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if q.hopes(alt, &a.Alternatives[hope]) {
			hope = i
		}
		if q.likely(alt) {
			most = max(most, q.worth(alt))
		}
	}
	tie := most - q.standardError(most)
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		if q.likely(alt) && (best < 0 || q.better(alt, &a.Alternatives[best], tie)) {
			best = i
		}
	}
	if best < 0 {
		a.Decision = schemas.BestEffort
		chosen := reasonFastest
		if q.promised(&a.Alternatives[hope]) {
			a.Decision, chosen = q.reaching(&a.Alternatives[hope], reasonSurest)
		}
		explain(a, hope, chosen, func(alt *schemas.Alternative) string {
			if alt.Extrapolated {
				return reasonBeyond
			}
			return reasonLessLikely
		})
		return hope
	}
	chosen := reasonMostAccurate
	if q.worth(&a.Alternatives[best]) < most {
		chosen = reasonCheapest
	}
	if q.runs(&a.Alternatives[best]) {
		chosen = reasonKeep
	}
	a.Decision, chosen = q.reaching(&a.Alternatives[best], chosen)
	explain(a, best, chosen, func(alt *schemas.Alternative) string {
		switch {
		case alt.Extrapolated:
			return reasonBeyond
		case !q.likely(alt):
			return reasonTooUnlikely
		case q.runs(&a.Alternatives[best]):
			return reasonChange
		case q.worth(alt) >= tie:
			return reasonTieDearer
		}
		return reasonLessAccurate
	})
	return best
}

// reaching is the decision for an alternative that keeps the SLO, and the reason
// for it: it is promised if it is as accurate as was asked for, too.
func (q *Question) reaching(alt *schemas.Alternative, why string) (schemas.Decision, string) {
	if t := q.Request.TargetAccuracy; t > 0 && q.worth(alt) < t {
		return schemas.BestEffort, reasonShort
	}
	return schemas.MeetsSLO, why
}

// hopes compares two alternatives where none is likely enough.
func (q *Question) hopes(alt, best *schemas.Alternative) bool {
	if alt.Extrapolated != best.Extrapolated {
		return best.Extrapolated
	}
	if probability(alt) != probability(best) {
		return probability(alt) > probability(best)
	}
	return seconds(alt) < seconds(best)
}

// better compares two alternatives that keep the SLO; those of at least some
// accuracy are a tie, which the CPU time decides. A job that runs keeps its batch
// size while that does: a change costs what no regressor knows.
func (q *Question) better(alt, best *schemas.Alternative, least float64) bool {
	if q.runs(alt) != q.runs(best) {
		return q.runs(alt)
	}
	a, b := min(least, q.worth(alt)), min(least, q.worth(best))
	switch {
	case a != b:
		return a > b
	case *alt.CPUSeconds != *best.CPUSeconds:
		return *alt.CPUSeconds < *best.CPUSeconds
	}
	return q.worth(alt) > q.worth(best)
}

// standardError is that of an accuracy on the model's validation set, sqrt(p (1 -
// p) / n): what differs by less is a tie. 0 where the set's size is not known, and
// where the request says which accuracy is enough.
func (q *Question) standardError(accuracy float64) float64 {
	n := q.Described.ValidationSamples
	if n == 0 || q.Request.TargetAccuracy > 0 {
		return 0
	}
	return math.Sqrt(accuracy * (1 - accuracy) / float64(n))
}

// chooseScore chooses by weight of accuracy · accuracy / largest + weight of
// time · (1 − time / longest), among those that reach the target if any does.
func (d *decision) chooseScore(q *Question, a *schemas.Advice) int {
	a.Decision = schemas.Weighted
	w := q.Request.Weights
	var largest, longest float64
	for i := range a.Alternatives {
		largest = max(largest, accuracy(&a.Alternatives[i]))
		longest = max(longest, seconds(&a.Alternatives[i]))
	}
	reaches := d.reaching(largest)
	best := -1
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
		if reaches(i) && (best < 0 || scores[i] > scores[best]) {
			best = i
		}
	}
	explain(a, best, reasonScore, func(alt *schemas.Alternative) string {
		for i := range a.Alternatives {
			if &a.Alternatives[i] == alt && !reaches(i) {
				return reasonShort
			}
		}
		return reasonLowerScore
	})
	return best
}

// reaching returns whether each alternative reaches the target accuracy as surely as asked for; if
// none does, whether it is the likeliest, or the most accurate, of all.
func (d *decision) reaching(largest float64) func(i int) bool {
	if len(d.merits) == 0 {
		target := min(d.q.Request.TargetAccuracy, largest)
		return func(i int) bool { return accuracy(&d.a.Alternatives[i]) >= target }
	}
	most := 0.0
	for i := range d.merits {
		most = max(most, d.merits[i].reaches)
	}
	least := min(most, d.q.least())
	return func(i int) bool { return d.merits[i].reaches >= least }
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
