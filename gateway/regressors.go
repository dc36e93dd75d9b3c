package gateway

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"courier/bus"
	"courier/schemas"
)

// RegressorList answers GET /api/v1/regressors.
type RegressorList struct {
	Regressors []RegressorStatus `json:"regressors"` // targets that have a champion
}

// RegressorStatus is the champion of a target.
type RegressorStatus struct {
	Target         string            `json:"target"`
	ModelDigest    string            `json:"model_digest"`       // sha256, in hex
	ManifestDigest string            `json:"manifest_digest"`    // sha256, in hex
	Revision       uint64            `json:"revision"`           // of the champion's key
	Promoted       *schemas.Promoted `json:"promoted,omitempty"` // its figures; absent until its event is seen
}

// promoted is the last promotion of each target. It is never changed.
type promoted map[string]*schemas.Promoted

// apply returns the promotions after one more. Targets that no regressor has are
// ignored, so that it stays small.
func (p promoted) apply(e *schemas.Promoted) promoted {
	if !slices.Contains(schemas.Targets(), e.Target) {
		return p
	}
	next := maps.Clone(p)
	if next == nil {
		next = promoted{}
	}
	next[e.Target] = e
	return next
}

// applyPromoted carries a record into the promotions. Only the follower of
// REGRESSOR calls it.
func (g *Gateway) applyPromoted(r bus.Record) {
	if e, ok := r.Event.(*schemas.Promoted); ok {
		next := g.promoted.Load().apply(e)
		g.promoted.Store(&next)
	}
}

// listRegressors answers with the champions as the bus holds them now.
func (g *Gateway) listRegressors(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	list := RegressorList{Regressors: []RegressorStatus{}}
	events := *g.promoted.Load()
	for _, target := range schemas.Targets() {
		champion, revision, err := g.bus.Champion(ctx, target)
		if errors.Is(err, schemas.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		s := RegressorStatus{Target: target, ModelDigest: champion.ModelDigest, ManifestDigest: champion.ManifestDigest, Revision: revision}
		if e := events[target]; e != nil && e.Revision == revision {
			s.Promoted = e
		}
		list.Regressors = append(list.Regressors, s)
	}
	return writeJSON(w, http.StatusOK, list)
}
