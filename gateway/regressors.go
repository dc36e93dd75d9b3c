package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

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

func (g *Gateway) listRegressors(w http.ResponseWriter, r *http.Request) error {
	if err := readQuery(r).err; err != nil {
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
			Target: target, ModelDigest: champion.ModelDigest, ManifestDigest: champion.ManifestDigest,
			Revision: revision,
		}
		promotions := history[target].promotions
		if n := len(promotions); n > 0 && promotions[n-1].Revision == revision {
			s.Promoted = promotions[n-1]
		}
		list.Regressors = append(list.Regressors, s)
	}
	return respond(w, r, list)
}

// RegressorLife is the response of GET /api/v1/regressors/life: every regressor that the trainer
// knows, and the events, oldest first. It contains at most 200 events of each kind per target.
type RegressorLife struct {
	// Regressors by target, newest first.
	Regressors []schemas.RegressorVersion `json:"regressors"`
	Promotions []*schemas.Promoted        `json:"promotions"`
	Rejections []*schemas.Rejected        `json:"rejections"`
	Drifts     []*schemas.Drift           `json:"drifts"`
}

func (g *Gateway) regressorLife(w http.ResponseWriter, r *http.Request) error {
	query := readQuery(r, "target")
	if query.err != nil {
		return query.err
	}
	request := schemas.RegressorListRequest{Target: query.Get("target")}
	var list schemas.RegressorList
	if err := g.request(r.Context(), request.Subject(), &request, &list); err != nil {
		return err
	}

	response := RegressorLife{
		Regressors: list.Regressors, Promotions: []*schemas.Promoted{}, Rejections: []*schemas.Rejected{},
		Drifts: []*schemas.Drift{},
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
	return respond(w, r, response)
}

// changeTimeout is the timeout for a change of the champion, which may wait for a running fit.
const changeTimeout = time.Minute

// changeChampion returns the handler of a change, which forwards a body with the target of the path. The
// response is the promotion.
func (g *Gateway) changeChampion(subject string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		body, err := readBody(w, r, g.options.BodyTimeout)
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
}
