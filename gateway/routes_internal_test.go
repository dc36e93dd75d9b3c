package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"courier/receipt"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// document contains the fields of openapi.yaml that the tests use.
type document struct {
	Paths      map[string]map[string]yaml.Node
	Components struct {
		Schemas map[string]struct {
			Properties map[string]yaml.Node
			Required   []string
			Enum       []string
		}
	}
}

func readDocument(t *testing.T) document {
	t.Helper()
	data, err := files.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := yaml.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// apiRoutes returns the routes of the API and, of the addresses of the page, the first.
func apiRoutes() []apiRoute {
	return slices.DeleteFunc((&Gateway{}).routes(), func(rt apiRoute) bool {
		return rt.page && rt.path != "/{$}"
	})
}

func TestRoutes_AreThoseOfOpenAPI(t *testing.T) {
	var served, described []string
	for _, rt := range apiRoutes() {
		served = append(served, rt.method+" "+strings.ReplaceAll(rt.path, "{$}", ""))
	}
	for path, item := range readDocument(t).Paths {
		for method, operation := range item {
			if method == "parameters" {
				continue
			}
			described = append(described, strings.ToUpper(method)+" "+path)
			var o struct {
				Summary     string
				OperationID string `yaml:"operationId"`
				Responses   map[string]yaml.Node
			}
			if err := operation.Decode(&o); err != nil {
				t.Fatal(err)
			}
			if _, errors := o.Responses["default"]; o.Summary == "" || o.OperationID == "" ||
				len(o.Responses) < 2 || !errors {
				t.Errorf("%s %s: want a summary, an operationId, a response and a default error",
					method, path)
			}
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if d := cmp.Diff(described, served); d != "" {
		t.Errorf("routes (-openapi.yaml +routes()):\n%s", d)
	}
}

// Only these routes need no token, and openapi.yaml describes them so.
func TestRoutes_RequireATokenExceptForThese(t *testing.T) {
	open := []string{
		"GET /api/v1/session", "DELETE /api/v1/session", "GET /api/v1/openapi.yaml",
		"GET /healthz", "GET /readyz", "GET /web/{file}", "GET /{$}",
	}
	d := readDocument(t)
	for _, rt := range apiRoutes() {
		name := rt.method + " " + rt.path
		if want := slices.Contains(open, name); want != (rt.role == Anybody) {
			t.Errorf("%s requires the role %s, want anybody: %t", name, rt.role, want)
		}
		var o struct{ Security []map[string][]string }
		operation := d.Paths[strings.ReplaceAll(rt.path, "{$}", "")][strings.ToLower(rt.method)]
		if err := operation.Decode(&o); err != nil {
			t.Fatal(err)
		}
		if described := o.Security != nil &&
			len(o.Security) == 0; described != (rt.role == Anybody) {
			t.Errorf("openapi.yaml: %s needs no token = %t, want the opposite as in routes",
				name, described)
		}
	}
}

func TestOpenAPI_HasTheFieldsOfTheGoTypes(t *testing.T) {
	d := readDocument(t)
	for _, v := range []any{
		schemas.Error{}, SubmitError{}, schemas.JobRequest{}, schemas.Alternative{},
		schemas.Evidence{}, schemas.TimeEvidence{}, schemas.StartupEvidence{},
		schemas.AccuracyEvidence{}, schemas.DriftFactor{}, schemas.Load{}, schemas.Effect{},
		schemas.Choice{}, schemas.Admission{}, schemas.Advice{},
		schemas.JobStatus{}, schemas.JobList{}, schemas.Score{}, schemas.ScoreLine{},
		schemas.CalibrationBin{}, schemas.Sample{}, receipt.JobHistory{},
		receipt.HistoryEpoch{}, receipt.PredictionPoint{}, receipt.Change{},
		ReadableReceipt{}, receipt.PredictedOutcome{}, receipt.JobResult{}, receipt.Loss{},
		receipt.Better{}, receipt.Learned{}, receipt.Line{}, schemas.Promoted{}, Point{}, NodeStatus{},
		NodeList{}, ChampionStatus{},
		ChampionList{}, schemas.RegressorVersion{},
		schemas.Rejected{}, schemas.Drift{}, RegressorLife{}, schemas.PromoteRequest{},
		schemas.RollbackRequest{}, LiveEvent{}, About{}, Session{},
	} {
		typ := reflect.TypeOf(v)
		s, ok := d.Components.Schemas[typ.Name()]
		if !ok {
			t.Errorf("openapi.yaml lacks the schema %s", typ.Name())
			continue
		}
		var described []string
		for name := range s.Properties {
			described = append(described, name)
		}
		fields := jsonNames(typ)
		slices.Sort(described)
		slices.Sort(fields)
		if diff := cmp.Diff(fields, described); diff != "" {
			t.Errorf("schema %s (-Go +openapi.yaml):\n%s", typ.Name(), diff)
		}
		for _, name := range s.Required {
			if !slices.Contains(fields, name) {
				t.Errorf("schema %s requires %s, which it does not have", typ.Name(), name)
			}
		}
	}
	var states []string
	for _, s := range schemas.States() {
		states = append(states, string(s))
	}
	if diff := cmp.Diff(states, d.Components.Schemas["State"].Enum); diff != "" {
		t.Errorf("schema State (-Go +openapi.yaml):\n%s", diff)
	}
}

// jsonNames returns the names of a struct's fields in JSON, embedded ones included.
func jsonNames(t reflect.Type) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			names = append(names, jsonNames(f.Type)...)
		default:
			names = append(names, name)
		}
	}
	return names
}

func TestOpenAPI_RefersOnlyToWhatItHas(t *testing.T) {
	data, err := files.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := root.Decode(&whole); err != nil {
		t.Fatal(err)
	}
	references := 0
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value == "$ref" {
				references++
				at := whole
				for _, step := range strings.Split(strings.TrimPrefix(n.Content[i+1].Value, "#/"),
					"/") {
					m, _ := at.(map[string]any)
					at = m[step]
				}
				if at == nil {
					t.Errorf("line %d: %s has no target", c.Line, n.Content[i+1].Value)
				}
			}
			walk(c)
		}
	}
	walk(&root)
	if references == 0 {
		t.Error("found no reference")
	}
}

func TestWriteError_AnswersAnUnknownCodeAsInternal(t *testing.T) {
	g := &Gateway{log: slog.New(slog.DiscardHandler)}
	w := httptest.NewRecorder()
	g.writeError(&responseWriter{ResponseWriter: w}, httptest.NewRequest("GET", "/", nil), &schemas.Error{
		Code:    "exhausted",
		Message: "m",
	})
	if want := `{"code":"exhausted","message":"m"}` +
		"\n"; w.Code != http.StatusInternalServerError || w.Body.String() != want {
		t.Errorf("writeError = %d %s, want 500 %s", w.Code, w.Body, want)
	}
}

func TestStatusOf_KnowsEveryCode(t *testing.T) {
	for _, e := range []*schemas.Error{
		schemas.ErrInvalid, schemas.ErrNotFound, schemas.ErrConflict, schemas.ErrUnavailable,
		schemas.ErrForbidden, schemas.ErrInternal,
	} {
		if statusOf[e.Code] == 0 {
			t.Errorf("statusOf lacks %q", e.Code)
		}
	}
}

// An interrupted request needs an explicit status: an empty response would have status 200.
func TestWrap_AnswersAnInterruptedRequest(t *testing.T) {
	g := &Gateway{
		log:     slog.New(slog.DiscardHandler),
		metrics: newMetrics(nil, newNodeTable()),
		limiter: newLimiter(0),
		hosts:   hostNames{any: true},
	}
	ctx, cut := context.WithCancel(t.Context())
	w := httptest.NewRecorder()
	g.wrap(apiRoute{path: "/", handle: func(http.ResponseWriter, *http.Request) error {
		cut()
		return ctx.Err()
	}}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/", nil))
	if w.Code != http.StatusServiceUnavailable ||
		!strings.Contains(w.Body.String(), "unavailable") {
		t.Errorf("interrupted request: %d %s, want 503 unavailable", w.Code, w.Body)
	}
}
