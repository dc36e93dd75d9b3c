package gateway

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"time"

	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed web openapi.yaml
var files embed.FS

// asset is one embedded file.
type asset struct {
	data []byte
	kind string // content type
	tag  string // ETag: of its bytes, so that a browser asks again and loads only what changed
}

// contentTypes of the embedded files. The system's own table is not asked: it
// differs from machine to machine.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".yaml": "application/yaml",
}

// readAssets reads every embedded file, by its path.
func readAssets() (map[string]asset, error) {
	assets := map[string]asset{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		kind, known := contentTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("%s: no content type for this kind of file", name)
		}
		sum := sha256.Sum256(data)
		assets[name] = asset{data: data, kind: kind, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	return assets, err
}

// serveFile answers with an embedded file.
func (g *Gateway) serveFile(w http.ResponseWriter, r *http.Request, name string) error {
	a, ok := g.assets[name]
	if !ok {
		return &schemas.Error{Code: schemas.CodeNotFound, Message: "no such file"}
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("ETag", a.tag)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
	return nil
}

// page is GET /.
func (g *Gateway) page(w http.ResponseWriter, r *http.Request) error {
	return g.serveFile(w, r, "web/index.html")
}

// asset is GET /web/{file}.
func (g *Gateway) asset(w http.ResponseWriter, r *http.Request) error {
	return g.serveFile(w, r, "web/"+r.PathValue("file"))
}

// openAPI is GET /api/v1/openapi.yaml.
func (g *Gateway) openAPI(w http.ResponseWriter, r *http.Request) error {
	return g.serveFile(w, r, "openapi.yaml")
}

// About answers GET /api/v1/about.
type About struct {
	Version       string `json:"version"`                  // of the program
	ClickHouseURL string `json:"clickhouse_url,omitempty"` // where SQL is answered over HTTP, without user and password; absent: nowhere
}

// about says what this Courier is and where its SQL is.
func (g *Gateway) about(w http.ResponseWriter, _ *http.Request) error {
	a := About{Version: g.options.Version}
	if a.Version == "" {
		a.Version = "unknown"
	}
	if g.options.ClickHouseURL != nil {
		a.ClickHouseURL = withoutSecrets(g.options.ClickHouseURL())
	}
	return writeJSON(w, http.StatusOK, a)
}

// withoutSecrets returns an http address without user, password and query, and
// "" for anything else.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// showMetrics is GET /metrics, in the Prometheus text format.
func (g *Gateway) showMetrics(w http.ResponseWriter, r *http.Request) error {
	if g.options.Gatherer == nil {
		return &schemas.Error{Code: schemas.CodeNotFound, Message: "this gateway shows no metrics"}
	}
	promhttp.HandlerFor(g.options.Gatherer, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

// health is GET /healthz: the process answers.
func (g *Gateway) health(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}

// ready is GET /readyz: the process can do its work now.
func (g *Gateway) ready(w http.ResponseWriter, _ *http.Request) error {
	if !g.bus.Connected() {
		return &schemas.Error{Code: schemas.CodeUnavailable, Message: "nats is not connected"}
	}
	if g.options.Ready != nil {
		if err := g.options.Ready(); err != nil {
			return &schemas.Error{Code: schemas.CodeUnavailable, Message: err.Error()}
		}
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
