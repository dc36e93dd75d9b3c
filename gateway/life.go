package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// RegressorLife is the response of GET /api/v1/regressors/life: every regressor that the trainer
// knows, and the events, oldest first. It contains at most 200 events of each kind per target.
type RegressorLife struct {
	// Regressors by target, newest first; challengers with their current judgement.
	Regressors []schemas.RegressorVersion `json:"regressors"`
	Promotions []*schemas.Promoted        `json:"promotions"`
	Rejections []*schemas.Rejected        `json:"rejections"`
	Drifts     []*schemas.Drift           `json:"drifts"`
}

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
	next := maps.Clone(h)
	if next == nil {
		next = regressorHistory{}
	}
	switch e := e.(type) {
	case *schemas.Promoted:
		t := next[e.Target]
		t.promotions = appendEvent(t.promotions, e)
		next[e.Target] = t
	case *schemas.Rejected:
		t := next[e.Target]
		t.rejections = appendEvent(t.rejections, e)
		next[e.Target] = t
	case *schemas.Drift:
		t := next[e.Target]
		t.drifts = appendEvent(t.drifts, e)
		next[e.Target] = t
	}
	maps.DeleteFunc(next, func(target string, _ targetHistory) bool {
		return !slices.Contains(schemas.Targets(), target)
	})
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

// applyRegressor adds a record to the history. Only the follower of REGRESSOR calls it.
func (g *Gateway) applyRegressor(r bus.Record) {
	next := g.history.Load().apply(r.Event)
	g.history.Store(&next)
}

// regressorLife is GET /api/v1/regressors/life.
func (g *Gateway) regressorLife(w http.ResponseWriter, r *http.Request) error {
	query, err := readQuery(r, "target")
	if err != nil {
		return err
	}
	request := schemas.RegressorListRequest{Target: query.Get("target")}
	var list schemas.RegressorList
	if err := g.request(r.Context(), request.Subject(), &request, &list); err != nil {
		return err
	}

	response := RegressorLife{
		Regressors: list.Regressors,
		Promotions: []*schemas.Promoted{},
		Rejections: []*schemas.Rejected{},
		Drifts:     []*schemas.Drift{},
	}
	history := *g.history.Load()
	for _, target := range schemas.Targets() {
		if request.Target != "" && request.Target != target {
			continue
		}
		t := history[target]
		response.Promotions = append(response.Promotions, t.promotions...)
		response.Rejections = append(response.Rejections, t.rejections...)
		response.Drifts = append(response.Drifts, t.drifts...)
	}
	return writeJSON(w, http.StatusOK, response)
}

// promote is POST /api/v1/regressors/{target}/promote.
func (g *Gateway) promote(w http.ResponseWriter, r *http.Request) error {
	return g.changeChampion(w, r, schemas.SubjectRegressorPromote)
}

// rollback is POST /api/v1/regressors/{target}/rollback.
func (g *Gateway) rollback(w http.ResponseWriter, r *http.Request) error {
	return g.changeChampion(w, r, schemas.SubjectRegressorRollback)
}

// changeTimeout is the timeout for a change of the champion, which may wait for a running fit.
const changeTimeout = time.Minute

// changeChampion forwards a body with the target of the path. The response is the promotion.
func (g *Gateway) changeChampion(w http.ResponseWriter, r *http.Request, subject string) error {
	body, err := g.readBody(w, r)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return schemas.Invalid("", "want a JSON object, for example {}")
	}
	if _, found := fields["target"]; found {
		return schemas.Invalid("target", "must be only in the path, not in the body")
	}
	if fields["target"], err = json.Marshal(r.PathValue("target")); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	var promoted json.RawMessage
	if err := g.bus.Request(ctx, subject, fields, &promoted); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, promoted)
}
