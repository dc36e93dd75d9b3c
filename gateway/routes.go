package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// handler answers a request, or returns an error before it wrote anything: the
// wrapper turns it into the answer.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one line of what the gateway serves.
type route struct {
	method string
	path   string
	handle handler
	role   Role // that it needs, where the gateway knows its users
	live   bool // stays open: its duration is no answer time
	free   bool // not limited in rate: asked by probes

	anyHost bool // answered under any host name: asked by probes and scrapers by the name of a pod
}

// routes lists everything that is served; openapi.yaml describes each.
func (g *Gateway) routes() []route {
	return []route{
		{method: "POST", path: "/api/v1/jobs", handle: g.submit, role: Submitter},
		{method: "GET", path: "/api/v1/jobs", handle: g.listJobs, role: Reader},
		{method: "GET", path: "/api/v1/jobs/{id}", handle: g.job, role: Reader},
		{method: "DELETE", path: "/api/v1/jobs/{id}", handle: g.cancelJob, role: Submitter},
		{method: "GET", path: "/api/v1/jobs/{id}/advice", handle: g.advice, role: Reader},
		{method: "POST", path: "/api/v1/predict", handle: g.predict, role: Reader},
		{method: "GET", path: "/api/v1/score", handle: g.score, role: Reader},
		{method: "GET", path: "/api/v1/nodes", handle: g.listNodes, role: Reader},
		{method: "GET", path: "/api/v1/regressors", handle: g.listRegressors, role: Reader},
		{method: "GET", path: "/api/v1/regressors/life", handle: g.life, role: Reader},
		{method: "POST", path: "/api/v1/regressors/{target}/promote", handle: g.promote, role: Admin},
		{method: "POST", path: "/api/v1/regressors/{target}/rollback", handle: g.rollback, role: Admin},
		{method: "GET", path: "/api/v1/events", handle: g.events, role: Reader, live: true},
		{method: "GET", path: "/api/v1/session", handle: g.session},
		{method: "POST", path: "/api/v1/session", handle: g.openSession, role: Reader},
		{method: "DELETE", path: "/api/v1/session", handle: g.endSession},
		{method: "GET", path: "/api/v1/about", handle: g.about, role: Reader},
		{method: "GET", path: "/api/v1/openapi.yaml", handle: g.openAPI},
		{method: "GET", path: "/metrics", handle: g.showMetrics, role: Reader, anyHost: true},
		{method: "GET", path: "/healthz", handle: g.health, free: true, anyHost: true},
		{method: "GET", path: "/readyz", handle: g.ready, free: true, anyHost: true},
		{method: "GET", path: "/web/{file}", handle: g.asset},
		{method: "GET", path: "/{$}", handle: g.page},
	}
}

// statusOf translates the codes of schemas to HTTP.
var statusOf = map[schemas.Code]int{
	schemas.CodeInvalid:     http.StatusBadRequest,
	schemas.CodeNotFound:    http.StatusNotFound,
	schemas.CodeConflict:    http.StatusConflict,
	schemas.CodeUnavailable: http.StatusServiceUnavailable,
	schemas.CodeForbidden:   http.StatusForbidden,
	schemas.CodeInternal:    http.StatusInternalServerError,
}

// statusError is a refusal whose HTTP status says more than its code.
type statusError struct {
	status int
	err    *schemas.Error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// mux returns the handler of all routes, with the security headers before and
// an answer for what is not a route.
func (g *Gateway) mux() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range g.routes() {
		mux.Handle(rt.method+" "+rt.path, g.wrap(rt))
	}
	mux.Handle("/", g.wrap(route{path: "unknown", handle: unknown(mux)}))
	foreign := http.NewCrossOriginProtection() // a page of another origin changes nothing, whoever looks at it
	foreign.SetDenyHandler(g.wrap(route{path: "unknown", handle: func(http.ResponseWriter, *http.Request) error {
		return &schemas.Error{Code: schemas.CodeForbidden, Message: "the request comes from a page of another origin"}
	}}))
	guarded := foreign.Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		guarded.ServeHTTP(w, r)
	})
}

// unknown refuses what is no route: 405 where the path exists for another
// method, else 404.
func unknown(mux *http.ServeMux) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range []string{"DELETE", "GET", "POST"} {
			other := *r
			other.Method = method
			if _, pattern := mux.Handler(&other); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			return &schemas.Error{Code: schemas.CodeNotFound, Message: "no such route; /api/v1/openapi.yaml lists them"}
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return &statusError{http.StatusMethodNotAllowed, schemas.Invalid("", "this route takes %s", strings.Join(allowed, " and "))}
	}
}

// answer remembers the status that was written.
type answer struct {
	http.ResponseWriter
	status int // 0: nothing was written yet
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach flushing and deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// answerTo checks host name, rate and role of a request, then calls its route.
func (g *Gateway) answerTo(w http.ResponseWriter, r *http.Request, rt route) error {
	if !rt.anyHost {
		if err := g.checkHost(r); err != nil {
			return err
		}
	}
	who, wrong := g.identify(r)
	if !rt.free {
		if err := g.slow(w, clientOf(r, who)); err != nil {
			return err
		}
	}
	if err := g.permit(w, rt, who, wrong); err != nil {
		return err
	}
	return rt.handle(w, withAsker(r, who))
}

// wrap is the one place that answers errors and counts requests.
func (g *Gateway) wrap(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		a := &answer{ResponseWriter: w}
		if err := g.answerTo(a, r, rt); err != nil {
			g.refuse(a, r, err)
		}
		if a.status == 0 {
			a.status = http.StatusOK
		}
		g.metrics.requests.WithLabelValues(rt.path, strconv.Itoa(a.status)).Inc()
		if !rt.live {
			g.metrics.seconds.WithLabelValues(rt.path).Observe(time.Since(begin).Seconds())
		}
	})
}

// refuse answers err as a schemas.Error.
func (g *Gateway) refuse(a *answer, r *http.Request, err error) {
	refusal := schemas.AsError(err)
	status, known := statusOf[refusal.Code]
	if !known {
		status = http.StatusInternalServerError
	}
	var special *statusError
	if errors.As(err, &special) {
		status = special.status
	}
	if a.status != 0 {
		g.log.Debug("request not answered", "path", r.URL.Path, "error", err) // it has a part of an answer
		return
	}
	if r.Context().Err() != nil && status != http.StatusRequestTimeout { // the client is gone, or is cut off by the gateway's end: then silence would read as 200
		status, refusal = http.StatusServiceUnavailable, &schemas.Error{Code: schemas.CodeUnavailable, Message: "the gateway stops; ask again"}
	}
	if status == http.StatusInternalServerError {
		g.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	var body any = refusal
	var submission *failedSubmission
	if errors.As(err, &submission) {
		body = &SubmitError{Error: refusal, JobID: submission.jobID}
	}
	if err := writeJSON(a, status, body); err != nil {
		g.log.Debug("answer not sent", "path", r.URL.Path, "error", err)
	}
}

// writeJSON answers with v. No answer of the API may be kept by a cache.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := schemas.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client is gone: nobody to tell
	return nil
}

// readBody returns the JSON of a request, not yet understood.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, &statusError{http.StatusUnsupportedMediaType, schemas.Invalid("", "want a body of content type application/json")}
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(g.options.BodyTimeout)) // not all have one, as in tests
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, schemas.MaxMessageBytes))
	if err == nil { // else the connection ends, and what is left of the body is not waited for
		_ = rc.SetReadDeadline(time.Time{})
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, &statusError{http.StatusRequestEntityTooLarge, schemas.Invalid("", "the body has more than %d bytes", large.Limit)}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &statusError{http.StatusRequestTimeout, schemas.Invalid("", "the body took longer than %s", g.options.BodyTimeout)}
	}
	if err != nil {
		return nil, schemas.Invalid("", "the body ends too early")
	}
	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, schemas.Invalid("", "not JSON: %s", err)
	}
	return raw, nil
}

// readQuery returns the query of a request, which may hold each of the names once.
func readQuery(r *http.Request, names ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, schemas.Invalid("", "the query is not name=value&…")
	}
	for name, values := range query {
		if !slices.Contains(names, name) {
			return nil, schemas.Invalid(name, "is not a parameter of this route; it takes %v", names)
		}
		if len(values) > 1 {
			return nil, schemas.Invalid(name, "is given %d times", len(values))
		}
	}
	return query, nil
}

// readCount returns a whole number of the query; 0 if it is absent. The range
// is checked by whoever uses it.
func readCount(query url.Values, name string) (int, error) {
	if !query.Has(name) {
		return 0, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil {
		return 0, schemas.Invalid(name, "want a whole number")
	}
	return n, nil
}
