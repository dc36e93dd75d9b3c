package gateway_test

import (
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"
)

func TestRoutes_RefuseWhatIsNone(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{})
	for _, c := range []struct {
		method, path string
		status       int
		code         schemas.Code
		allow        string
	}{
		{"GET", "/api/v1/nothing", 404, schemas.CodeNotFound, ""},
		{"GET", "/advice", 404, schemas.CodeNotFound, ""},
		{"GET", "/api", 404, schemas.CodeNotFound, ""},
		{"GET", "/favicon.ico", 404, schemas.CodeNotFound, ""},
		{"GET", "/web/", 404, schemas.CodeNotFound, ""},
		{"GET", "/web/absent.js", 404, schemas.CodeNotFound, ""},
		{"GET", "/web/..%2Fopenapi.yaml", 404, schemas.CodeNotFound, ""},
		{"POST", "/", 405, schemas.CodeInvalid, "GET"},
		{"PUT", "/api/v1/jobs", 405, schemas.CodeInvalid, "GET, POST"},
		{"DELETE", "/api/v1/jobs", 405, schemas.CodeInvalid, "GET, POST"},
		{"PATCH", "/api/v1/jobs/a", 405, schemas.CodeInvalid, "DELETE, GET"},
		{"GET", "/api/v1/predict", 405, schemas.CodeInvalid, "POST"},
	} {
		a := h.do(t, c.method, c.path, "")
		checkError(t, c.method+" "+c.path, a, c.status, c.code, "")
		if got := a.header.Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got, c.allow)
		}
	}
}

func TestRoutes_CarrySecurityHeaders(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{})
	for _, path := range []string{
		"/", "/web/app.js", "/api/v1/nodes", "/api/v1/nothing", "/metrics",
	} {
		a := h.send(t, "GET", path, http.Header{"Origin": {"https://elsewhere.example"}}, nil)
		if got := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(got,
			"default-src 'self';") {
			t.Errorf("GET %s: policy %q, want only this origin", path, got)
		}
		if got := a.header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("GET %s: X-Content-Type-Options %q, want nosniff", path, got)
		}
		if got := a.header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("GET %s allows the origin %q, want none", path, got)
		}
	}
}

// references matches the paths on this server that a file of the page loads or links to.
var references = regexp.MustCompile(`(?:src="|href="|from '\.|url\()(/[^"')#]*)`)

func TestPage_HasEveryFileThatItRefersTo(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{})
	kinds := map[string]string{
		"js":  "text/javascript; charset=utf-8",
		"css": "text/css; charset=utf-8",
		"svg": "image/svg+xml",
	}
	seen, todo := map[string]bool{}, []string{"/"}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		a := h.do(t, "GET", path, "")
		if a.status == http.StatusServiceUnavailable && strings.HasPrefix(path, "/api/v1/jobs") {
			continue // a link to the jobs: this test has no service
		}
		if a.status != http.StatusOK {
			t.Errorf("GET %s = %d, but the page refers to it", path, a.status)
		}
		kind := a.header.Get("Content-Type")
		if want, file := kinds[path[strings.LastIndex(path, ".")+1:]]; file && kind != want {
			t.Errorf("GET %s: content type %q, want %q", path, kind, want)
		}
		if path != "/" && !strings.HasPrefix(path, "/web/") {
			continue
		}
		for _, m := range references.FindAllStringSubmatch(a.body, -1) {
			to := m[1]
			if strings.HasSuffix(path, ".js") && !strings.HasPrefix(to, "/web/") &&
				strings.HasSuffix(to, ".js") {
				to = "/web" + to // from './dom.js'
			}
			todo = append(todo, to)
		}
	}
	for _, want := range []string{
		"/web/app.js", "/web/api.js", "/web/whatif.js", "/web/style.css", "/web/icon.svg",
		"/api/v1/openapi.yaml",
	} {
		if !seen[want] {
			t.Errorf("the page does not refer to %s", want)
		}
	}
}

func TestPage_HoldsNothingThatItsPolicyForbids(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{})
	page := h.do(t, "GET", "/", "").body
	for _, forbidden := range []string{
		`(?i)<style`, `(?i)\sstyle=`, `(?i)\son[a-z]+=`, `(?i)<script(?:[^>]*)>[^<]`,
		`(?i)(?:src|href)="https?:`,
	} {
		if m := regexp.MustCompile(forbidden).FindString(page); m != "" {
			t.Errorf("the page contains %q", m)
		}
	}
	for _, name := range []string{
		"address", "api", "app", "chart", "command", "compare", "dom", "format", "job", "jobs", "life",
		"node", "nodes", "now", "plot", "regressors", "score", "session", "table", "whatif",
	} {
		script := h.do(t, "GET", "/web/"+name+".js", "").body
		if m := regexp.MustCompile(
			`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(`,
		).FindString(
			script,
		); m != "" {
			t.Errorf("%s.js uses %s, which would interpret text from the log as markup", name, m)
		}
	}
}

func TestAbout_ShowsTheAddressWithoutSecrets(t *testing.T) {
	address := ""
	h := open(t, bustest.New(t), gateway.Options{Version: "1.2.3", ClickHouseURL: func() string {
		return address
	}})
	for _, c := range []struct{ address, want string }{
		{"", ""},
		{"http://127.0.0.1:8123/", "http://127.0.0.1:8123/"},
		{
			"https://courier:secret@db.example:8443/?password=secret&database=courier",
			"https://db.example:8443/",
		},
		{"clickhouse://db.example:9000", ""},
		{"javascript:alert(1)", ""},
		{"http://%zz", ""},
	} {
		address = c.address
		got := read[gateway.About](t, h.do(t, "GET", "/api/v1/about", ""))
		want := gateway.About{Version: "1.2.3", ClickHouseURL: c.want}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("about with ClickHouse at %q = %+v, want %+v", c.address, got, want)
		}
	}
}
