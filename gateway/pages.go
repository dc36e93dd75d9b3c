package gateway

import (
	"bytes"
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serveFile responds with an embedded file. Its name ends with that in the path, if the path has one.
func (g *Gateway) serveFile(name string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		a, ok := g.assets[name+r.PathValue("file")]
		if !ok {
			return schemas.Errorf(schemas.CodeNotFound, "", "no such file")
		}
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("ETag", a.tag)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
		return nil
	}
}

// About is the response of GET /api/v1/about.
type About struct {
	// Version of the program.
	Version string `json:"version"`
	// ClickHouseURL is the address for SQL over HTTP, without user and password; absent if none.
	ClickHouseURL string `json:"clickhouse_url,omitempty"`
	// JobLinks lists the links on the page of a job, by name.
	JobLinks []JobLink `json:"job_links,omitempty"`
}

// JobLink is a link from the page of a job to another system. {id}, {user}, {model}, {dataset} and {node}
// in its URL stand for those of the job.
type JobLink struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

func (g *Gateway) about(w http.ResponseWriter, _ *http.Request) error {
	a := About{Version: cmp.Or(g.options.Version, "unknown")}
	if g.options.ClickHouseURL != nil {
		a.ClickHouseURL = withoutSecrets(g.options.ClickHouseURL())
	}
	for _, name := range slices.Sorted(maps.Keys(g.options.JobLinks)) {
		a.JobLinks = append(a.JobLinks, JobLink{name, g.options.JobLinks[name]})
	}
	return writeJSON(w, http.StatusOK, a)
}

// withoutSecrets returns an HTTP address without user, password and query, or "" for any other
// address.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (g *Gateway) showMetrics(w http.ResponseWriter, r *http.Request) error {
	if g.options.Gatherer == nil {
		return schemas.Errorf(schemas.CodeNotFound, "", "this gateway has no metrics")
	}
	promhttp.HandlerFor(g.options.Gatherer, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

func (g *Gateway) health(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}

func (g *Gateway) ready(w http.ResponseWriter, _ *http.Request) error {
	if !g.bus.Connected() {
		return unavailable("NATS is not connected")
	}
	if g.options.Ready != nil {
		if err := g.options.Ready(); err != nil {
			return unavailable(err.Error())
		}
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
