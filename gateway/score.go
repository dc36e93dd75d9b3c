package gateway

import (
	"net/http"

	"courier/schemas"
)

// score is GET /api/v1/score.
func (g *Gateway) score(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	request := schemas.ScoreRequest{}
	return g.forward(w, r, request.Subject(), &request)
}
