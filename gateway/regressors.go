package gateway

import (
	"context"
	"errors"
	"net/http"

	"courier/schemas"
)

// ChampionList is the response of GET /api/v1/regressors.
type ChampionList struct {
	Regressors []ChampionStatus `json:"regressors"` // of the targets with a champion
}

// ChampionStatus describes the champion of a target.
type ChampionStatus struct {
	Target         string            `json:"target"`
	ModelDigest    string            `json:"model_digest"`       // sha256, in hex
	ManifestDigest string            `json:"manifest_digest"`    // sha256, in hex
	Revision       uint64            `json:"revision"`           // revision of the champion's key
	Promoted       *schemas.Promoted `json:"promoted,omitempty"` // absent until the event was read
}

// listRegressors is GET /api/v1/regressors.
func (g *Gateway) listRegressors(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	list := ChampionList{Regressors: []ChampionStatus{}}
	history := *g.history.Load()
	for _, target := range schemas.Targets() {
		champion, revision, err := g.bus.Champion(ctx, target)
		if errors.Is(err, schemas.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}

		s := ChampionStatus{
			Target:         target,
			ModelDigest:    champion.ModelDigest,
			ManifestDigest: champion.ManifestDigest,
			Revision:       revision,
		}
		promotions := history[target].promotions
		if n := len(promotions); n > 0 && promotions[n-1].Revision == revision {
			s.Promoted = promotions[n-1]
		}
		list.Regressors = append(list.Regressors, s)
	}
	return writeJSON(w, http.StatusOK, list)
}
