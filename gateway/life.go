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

// RegressorLife answers GET /api/v1/regressors/life: every regressor as the
// trainer knows it, and what happened, oldest first. Of each kind of event the
// last 200 of a target are told.
type RegressorLife struct {
	Regressors []schemas.RegressorVersion `json:"regressors"` // by target, the newest first; a challenger as it stands now
	Promotions []*schemas.Promoted        `json:"promotions"`
	Rejections []*schemas.Rejected        `json:"rejections"`
	Drifts     []*schemas.Drift           `json:"drifts"`
}

// longLife is how many events of a kind are remembered of a target.
const longLife = 200

// life is what happened to the regressors of a target, oldest first.
type life struct {
	promotions []*schemas.Promoted
	rejections []*schemas.Rejected
	drifts     []*schemas.Drift
}

// lives is the life of each target. It is never changed: a reader keeps what it got.
type lives map[string]life

// apply returns the lives after one more event. A copy of an event changes
// nothing, nor does a target that no regressor has, so that it stays small.
func (l lives) apply(e schemas.Event) lives {
	next := maps.Clone(l)
	if next == nil {
		next = lives{}
	}
	switch e := e.(type) {
	case *schemas.Promoted:
		t := next[e.Target]
		t.promotions = remember(t.promotions, e)
		next[e.Target] = t
	case *schemas.Rejected:
		t := next[e.Target]
		t.rejections = remember(t.rejections, e)
		next[e.Target] = t
	case *schemas.Drift:
		t := next[e.Target]
		t.drifts = remember(t.drifts, e)
		next[e.Target] = t
	}
	maps.DeleteFunc(next, func(target string, _ life) bool { return !slices.Contains(schemas.Targets(), target) })
	return next
}

// remember appends an event that is not there yet, and forgets the oldest.
func remember[E schemas.Event](all []E, e E) []E {
	if slices.ContainsFunc(all, func(x E) bool { return x.ID() == e.ID() }) {
		return all
	}
	all = append(slices.Clip(all), e)
	return all[max(0, len(all)-longLife):]
}

// applyRegressor carries a record into the lives. Only the follower of REGRESSOR
// calls it.
func (g *Gateway) applyRegressor(r bus.Record) {
	next := g.lives.Load().apply(r.Event)
	g.lives.Store(&next)
}

// life answers with the list of the trainer and the events of the log.
func (g *Gateway) life(w http.ResponseWriter, r *http.Request) error {
	query, err := readQuery(r, "target")
	if err != nil {
		return err
	}
	request := schemas.RegressorListRequest{Target: query.Get("target")}
	var list schemas.RegressorList
	if err := g.request(r.Context(), request.Subject(), &request, &list); err != nil {
		return err
	}
	all := RegressorLife{Regressors: list.Regressors, Promotions: []*schemas.Promoted{}, Rejections: []*schemas.Rejected{}, Drifts: []*schemas.Drift{}}
	for _, target := range schemas.Targets() {
		if t := (*g.lives.Load())[target]; request.Target == "" || request.Target == target {
			all.Promotions, all.Rejections, all.Drifts = append(all.Promotions, t.promotions...), append(all.Rejections, t.rejections...), append(all.Drifts, t.drifts...)
		}
	}
	return writeJSON(w, http.StatusOK, all)
}

// promote puts a regressor in use that the trainer still keeps.
func (g *Gateway) promote(w http.ResponseWriter, r *http.Request) error {
	return g.change(w, r, schemas.SubjectRegressorPromote)
}

// rollback puts the champion before in use again.
func (g *Gateway) rollback(w http.ResponseWriter, r *http.Request) error {
	return g.change(w, r, schemas.SubjectRegressorRollback)
}

// changeTimeout is how long another regressor in use may take: the trainer does
// one thing at a time, and a fit of a million examples is a minute's work.
const changeTimeout = time.Minute

// change hands a body on with the target of the path; the answer is the promotion.
func (g *Gateway) change(w http.ResponseWriter, r *http.Request, subject string) error {
	body, err := g.readBody(w, r)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return schemas.Invalid("", "want a JSON object, {} at least")
	}
	if _, twice := fields["target"]; twice {
		return schemas.Invalid("target", "stands in the path already, not in the body")
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
