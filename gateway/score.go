package gateway

import (
	"net/http"

	"courier/schemas"
)

// score asks how promises came out.
func (g *Gateway) score(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	request := schemas.ScoreRequest{}
	return g.relay(w, r, request.Subject(), &request)
}
