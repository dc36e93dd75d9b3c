package gateway

import (
	"testing"

	"courier/schemas"
)

func promotion(target string, revision uint64) *schemas.Promoted {
	return &schemas.Promoted{
		Stamp:    schemas.Stamp{EventID: schemas.PromotedID(target, revision)},
		Target:   target,
		Revision: revision,
	}
}

// The history ignores duplicates and unknown targets, and drops the oldest events. A value that a
// reader holds does not change.
func TestRegressorHistory_KeepsTheLastEventsOfEachKind(t *testing.T) {
	l := regressorHistory{}
	for revision := range uint64(maxTargetEvents + 10) {
		l = l.apply(promotion(schemas.TargetAccuracy, revision))
		l = l.apply(promotion(schemas.TargetAccuracy, revision))
		l = l.apply(promotion("weather", revision))
	}
	before := l
	l = l.apply(&schemas.Drift{Stamp: schemas.Stamp{EventID: "1"}, Target: schemas.TargetAccuracy})
	l = l.apply(&schemas.Rejected{
		Stamp:  schemas.Stamp{EventID: "1"},
		Target: schemas.TargetAccuracy,
	})
	l = l.apply(&schemas.Trained{
		Stamp:  schemas.Stamp{EventID: "1"},
		Target: schemas.TargetAccuracy,
	})
	l = l.apply(promotion(schemas.TargetAccuracy, 1000))
	got := l[schemas.TargetAccuracy]
	if len(l) != 1 || len(got.promotions) != maxTargetEvents || len(got.drifts) != 1 ||
		len(got.rejections) != 1 {
		t.Errorf("%d targets, %d promotions, %d drifts, %d rejections; want 1, %d, 1, 1", len(l),
			len(got.promotions), len(got.drifts), len(got.rejections), maxTargetEvents)
	}
	if first, last := got.promotions[0].Revision, got.promotions[maxTargetEvents-1].Revision; first != 11 ||
		last != 1000 {
		t.Errorf("revisions %d to %d, want 11 to 1000", first, last)
	}
	if old := before[schemas.TargetAccuracy]; len(old.drifts) != 0 ||
		old.promotions[maxTargetEvents-1].Revision != maxTargetEvents+9 {
		t.Errorf("the value that a reader holds changed to %d drifts and the last revision %d",
			len(old.drifts),
			old.promotions[maxTargetEvents-1].Revision)
	}
}
