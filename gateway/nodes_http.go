package gateway

import (
	"net/http"
	"strings"
	"time"

	"courier/schemas"
)

// Default page sizes of nodes.
const (
	nodePage       = schemas.MaxPage
	nodePageRecent = 100 // with recent points, of which a node has up to 300
)

func (g *Gateway) listNodes(w http.ResponseWriter, r *http.Request) error {
	query := readQuery(r, "recent_seconds", "limit", "after", "node", "search", "live")
	seconds, page := query.count("recent_seconds", 0, 3600, 0), nodePage
	if seconds > 0 {
		page = nodePageRecent
	}
	q := &nodeQuery{
		search: strings.ToLower(query.Get("search")),
		after:  query.Get("after"),
		recent: time.Duration(seconds) * time.Second,
		limit:  query.count("limit", 1, schemas.MaxPage, page),
		names:  query.names("node"),
		live:   query.bool("live"),
	}
	if query.err != nil {
		return query.err
	}
	return respond(w, r, g.nodes.list(q, time.Now()))
}
