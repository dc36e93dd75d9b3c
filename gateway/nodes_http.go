package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"courier/schemas"
)

// Default page sizes of nodes.
const (
	nodePage       = schemas.MaxPage
	nodePageRecent = 100 // with recent points, of which a node has up to 300
)

// listNodes is GET /api/v1/nodes.
func (g *Gateway) listNodes(w http.ResponseWriter, r *http.Request) error {
	q, err := readNodeQuery(r)
	if err != nil {
		return err
	}
	list, err := g.nodes.list(q, time.Now())
	if err != nil {
		return err
	}
	return respond(w, r, list)
}

func readNodeQuery(r *http.Request) (*nodeQuery, error) {
	query, err := readQuery(r,
		"recent_seconds", "limit", "after", "node", "search", "live", "sort")
	if err != nil {
		return nil, err
	}
	q := &nodeQuery{search: strings.ToLower(query.Get("search")), after: query.Get("after")}
	if q.recent, err = readRecent(query); err != nil {
		return nil, err
	}
	if q.limit, err = readNodeLimit(query, q.recent > 0); err != nil {
		return nil, err
	}
	if q.names, err = readNames(query, "node"); err != nil {
		return nil, err
	}

	switch live := query.Get("live"); live {
	case "", "false":
	case "true":
		q.live = true
	default:
		return nil, schemas.Invalid("live", "want true or false")
	}
	switch sort := query.Get("sort"); sort {
	case "", "name":
	case "load":
		q.byLoad = true
	default:
		return nil, schemas.Invalid("sort", "want name or load")
	}
	return q, nil
}

func readRecent(query url.Values) (time.Duration, error) {
	seconds, err := readCount(query, "recent_seconds")
	if err != nil {
		return 0, err
	}
	if seconds < 0 || seconds > 3600 {
		return 0, schemas.Invalid("recent_seconds", "%d is not between 0 and 3600", seconds)
	}
	return time.Duration(seconds) * time.Second, nil
}

func readNodeLimit(query url.Values, recent bool) (int, error) {
	limit, err := readCount(query, "limit")
	switch {
	case err != nil:
		return 0, err
	case !query.Has("limit") && recent:
		return nodePageRecent, nil
	case !query.Has("limit"):
		return nodePage, nil
	case limit < 1 || limit > schemas.MaxPage:
		return 0, schemas.Invalid("limit", "%d is not between 1 and %d", limit, schemas.MaxPage)
	}
	return limit, nil
}
