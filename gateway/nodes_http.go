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
	q, err := readNodeQuery(r)
	if err != nil {
		return err
	}
	return respond(w, r, g.nodes.list(q, time.Now()))
}

func readNodeQuery(r *http.Request) (*nodeQuery, error) {
	query, err := readQuery(r, "recent_seconds", "limit", "after", "node", "search", "live")
	if err != nil {
		return nil, err
	}
	q := &nodeQuery{search: strings.ToLower(query.Get("search")), after: query.Get("after")}
	seconds, err := readCount(query, "recent_seconds", 0, 3600, 0)
	if err != nil {
		return nil, err
	}
	q.recent = time.Duration(seconds) * time.Second
	page := nodePage
	if seconds > 0 {
		page = nodePageRecent
	}
	if q.limit, err = readCount(query, "limit", 1, schemas.MaxPage, page); err != nil {
		return nil, err
	}
	if q.names, err = readNames(query, "node"); err != nil {
		return nil, err
	}

	q.live, err = readBool(query, "live")
	return q, err
}
