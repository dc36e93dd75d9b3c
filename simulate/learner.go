package simulate

import (
	"context"

	"courier/schemas"
	"courier/trainer"
)

// learner keeps the past of a log, on which a rule fits.
type learner struct {
	ctx      context.Context // of the simulation; the calls of a rule carry none
	seed     uint64
	refit    int // finished jobs between two fits; 0: one fit, at the first submission
	past     *trainer.Past
	isFitted bool
	finished int // number of finished jobs since the last fit
}

func (l *learner) add(e schemas.Event, sequence uint64) {
	if l.isFitted && l.refit == 0 {
		return // There will be no further fit.
	}
	l.past.Add(e, sequence)
	if ended, ok := e.(*schemas.Ended); ok && ended.Outcome == schemas.EventFinished {
		l.finished++
	}
}

// isDue reports whether a submission needs a new fit.
func (l *learner) isDue() bool {
	return !l.isFitted || l.refit > 0 && l.finished >= l.refit
}

func (l *learner) fitted() { l.isFitted, l.finished = true, 0 }
