package gateway

import (
	"context"
	"errors"
	"net/http"

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

// listRegressors answers with the champions as the bus holds them now.
func (g *Gateway) listRegressors(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	list := RegressorList{Regressors: []RegressorStatus{}}
	lives := *g.lives.Load()
	for _, target := range schemas.Targets() {
		champion, revision, err := g.bus.Champion(ctx, target)
		if errors.Is(err, schemas.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		s := RegressorStatus{Target: target, ModelDigest: champion.ModelDigest, ManifestDigest: champion.ManifestDigest, Revision: revision}
		if all := lives[target].promotions; len(all) > 0 && all[len(all)-1].Revision == revision {
			s.Promoted = all[len(all)-1]
		}
		list.Regressors = append(list.Regressors, s)
	}
	return writeJSON(w, http.StatusOK, list)
}
