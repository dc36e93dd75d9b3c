package gateway

import (
	"maps"
	"slices"

	"courier/schemas"
)

// maxTargetEvents is the maximum number of stored events of one kind per target.
const maxTargetEvents = 200

// targetHistory holds the events of the regressors of a target, oldest first.
type targetHistory struct {
	promotions []*schemas.Promoted
	rejections []*schemas.Rejected
	drifts     []*schemas.Drift
}

// regressorHistory maps targets to their events. It is immutable.
type regressorHistory map[string]targetHistory

// apply returns the history with another event. Duplicates and events of unknown targets change
// nothing, so that the history is bounded.
func (h regressorHistory) apply(e schemas.Event) regressorHistory {
	var target string
	var t targetHistory
	switch e := e.(type) {
	case *schemas.Promoted:
		target, t = e.Target, h[e.Target]
		t.promotions = appendEvent(t.promotions, e)
	case *schemas.Rejected:
		target, t = e.Target, h[e.Target]
		t.rejections = appendEvent(t.rejections, e)
	case *schemas.Drift:
		target, t = e.Target, h[e.Target]
		t.drifts = appendEvent(t.drifts, e)
	}
	if !slices.Contains(schemas.Targets(), target) {
		return h
	}
	next := regressorHistory{}
	maps.Copy(next, h)
	next[target] = t
	return next
}

// appendEvent appends an event unless it is a duplicate, and drops the oldest beyond
// maxTargetEvents.
func appendEvent[E schemas.Event](events []E, e E) []E {
	if slices.ContainsFunc(events, func(x E) bool { return x.ID() == e.ID() }) {
		return events
	}
	events = append(slices.Clip(events), e)
	return events[max(0, len(events)-maxTargetEvents):]
}
