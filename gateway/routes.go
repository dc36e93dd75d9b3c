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

// handler responds to a request, or returns an error before it has written anything. The wrapper
// converts the error to a response.
type handler func(w http.ResponseWriter, r *http.Request) error

// apiRoute is a route of the gateway.
type apiRoute struct {
	method    string
	path      string
	handle    handler
	role      Role // required role if the gateway has tokens
	live      bool // long-lived: its duration is not a response time
	unlimited bool // exempt from the rate limit, for probes
	page      bool // an address of the page, not part of the API
	anyHost   bool // allowed under any host name, for probes and scrapers that use a pod's name
}

// routes returns all routes. openapi.yaml describes them.
func (g *Gateway) routes() []apiRoute {
	return []apiRoute{
		{method: "POST", path: "/api/v1/jobs", handle: g.submit, role: Submitter},
		{method: "GET", path: "/api/v1/jobs", handle: g.listJobs, role: Reader},
		{method: "GET", path: "/api/v1/jobs/{id}", handle: g.job, role: Reader},
		{method: "DELETE", path: "/api/v1/jobs/{id}", handle: g.cancelJob, role: Submitter},
		{method: "GET", path: "/api/v1/jobs/{id}/advice", handle: g.advice, role: Reader},
		{method: "GET", path: "/api/v1/jobs/{id}/history", handle: g.jobHistory, role: Reader},
		{method: "GET", path: "/api/v1/jobs/{id}/receipt", handle: g.jobReceipt, role: Reader},
		{method: "POST", path: "/api/v1/predict", handle: g.predict, role: Reader},
		{method: "GET", path: "/api/v1/score", handle: g.score, role: Reader},
		{method: "GET", path: "/api/v1/nodes", handle: g.listNodes, role: Reader},
		{method: "GET", path: "/api/v1/regressors", handle: g.listRegressors, role: Reader},
		{method: "GET", path: "/api/v1/regressors/life", handle: g.regressorLife, role: Reader},
		{
			method: "POST",
			path:   "/api/v1/regressors/{target}/promote",
			handle: g.promote,
			role:   Admin,
		},
		{
			method: "POST",
			path:   "/api/v1/regressors/{target}/rollback",
			handle: g.rollback,
			role:   Admin,
		},
		{method: "GET", path: "/api/v1/events", handle: g.events, role: Reader, live: true},
		{method: "GET", path: "/api/v1/session", handle: g.session},
		{method: "POST", path: "/api/v1/session", handle: g.openSession, role: Reader},
		{method: "DELETE", path: "/api/v1/session", handle: g.endSession},
		{method: "GET", path: "/api/v1/about", handle: g.about, role: Reader},
		{method: "GET", path: "/api/v1/openapi.yaml", handle: g.openAPI},
		{method: "GET", path: "/metrics", handle: g.showMetrics, role: Reader, anyHost: true},
		{method: "GET", path: "/healthz", handle: g.health, unlimited: true, anyHost: true},
		{method: "GET", path: "/readyz", handle: g.ready, unlimited: true, anyHost: true},
		{method: "GET", path: "/web/{file}", handle: g.asset},
		{method: "GET", path: "/{$}", handle: g.page, page: true},
		{method: "GET", path: "/jobs", handle: g.page, page: true},
		{method: "GET", path: "/jobs/{id}", handle: g.page, page: true},
		{method: "GET", path: "/nodes", handle: g.page, page: true},
		{method: "GET", path: "/attainment", handle: g.page, page: true},
		{method: "GET", path: "/advice", handle: g.page, page: true},
		{method: "GET", path: "/what-if", handle: g.page, page: true},
		{method: "GET", path: "/regressors", handle: g.page, page: true},
	}
}

// statusOf maps error codes to HTTP status codes.
var statusOf = map[schemas.Code]int{
	schemas.CodeInvalid:     http.StatusBadRequest,
	schemas.CodeNotFound:    http.StatusNotFound,
	schemas.CodeConflict:    http.StatusConflict,
	schemas.CodeUnavailable: http.StatusServiceUnavailable,
	schemas.CodeForbidden:   http.StatusForbidden,
	schemas.CodeInternal:    http.StatusInternalServerError,
}

// statusError is an error with an HTTP status that is more specific than the status of its code.
type statusError struct {
	status int
	err    *schemas.Error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// unavailable returns an error with CodeUnavailable.
func unavailable(message string) *schemas.Error {
	return &schemas.Error{Code: schemas.CodeUnavailable, Message: message}
}

// contentPolicy is the Content-Security-Policy of every response.
const contentPolicy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// mux returns the handler of all routes, which sets the security headers and responds to unknown
// routes.
func (g *Gateway) mux() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range g.routes() {
		mux.Handle(rt.method+" "+rt.path, g.wrap(rt))
	}
	mux.Handle("/", g.wrap(apiRoute{path: "unknown", handle: unknownRoute(mux)}))

	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(g.wrap(apiRoute{path: "unknown", handle: denyCrossOrigin}))
	protected := crossOrigin.Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		protected.ServeHTTP(w, r)
	})
}

// denyCrossOrigin rejects a request that a page of another origin sent.
func denyCrossOrigin(http.ResponseWriter, *http.Request) error {
	return &schemas.Error{
		Code:    schemas.CodeForbidden,
		Message: "cross-origin requests are not allowed",
	}
}

// unknownRoute rejects an unknown route: 405 if the path exists for another method, else 404.
func unknownRoute(mux *http.ServeMux) handler {
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
			return &schemas.Error{
				Code:    schemas.CodeNotFound,
				Message: "no such route; see /api/v1/openapi.yaml",
			}
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		err := schemas.Invalid("", "this route allows only %s", strings.Join(allowed, " and "))
		return &statusError{http.StatusMethodNotAllowed, err}
	}
}

// responseWriter records the status of a response.
type responseWriter struct {
	http.ResponseWriter
	status int // 0: nothing was written
}

func (a *responseWriter) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *responseWriter) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController access to flushing and deadlines.
func (a *responseWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// serve checks host name, rate and role of a request, then calls its route.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, rt apiRoute) error {
	if !rt.anyHost {
		if err := g.checkHost(r); err != nil {
			return err
		}
	}
	who, unknownToken := g.identify(r)
	if !rt.unlimited {
		if err := g.limit(w, clientKey(r, who)); err != nil {
			return err
		}
	}
	if err := g.authorize(w, rt, who, unknownToken); err != nil {
		return err
	}
	return rt.handle(w, withIdentity(r, who))
}

// wrap returns the handler of a route, which converts errors to responses and counts requests.
func (g *Gateway) wrap(rt apiRoute) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		a := &responseWriter{ResponseWriter: w}
		if err := g.serve(a, r, rt); err != nil {
			g.writeError(a, r, err)
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

// writeError responds with err as a schemas.Error.
func (g *Gateway) writeError(a *responseWriter, r *http.Request, err error) {
	response := schemas.AsError(err)
	status, known := statusOf[response.Code]
	if !known {
		status = http.StatusInternalServerError
	}
	var special *statusError
	if errors.As(err, &special) {
		status = special.status
	}
	if a.status != 0 {
		g.log.Debug("response interrupted", "path", r.URL.Path, "error", err)
		return
	}
	// The client disconnected, or the gateway is stopping. An empty response would have status 200.
	if r.Context().Err() != nil && status != http.StatusRequestTimeout {
		status = http.StatusServiceUnavailable
		response = unavailable("the gateway is stopping; retry")
	}
	if status == http.StatusInternalServerError {
		g.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}

	var body any = response
	var submission *failedSubmission
	if errors.As(err, &submission) {
		body = &SubmitError{Error: response, JobID: submission.jobID}
	}
	if err := writeJSON(a, status, body); err != nil {
		g.log.Debug("response not sent", "path", r.URL.Path, "error", err)
	}
}

// writeJSON responds with v. Responses of the API must not be cached.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := schemas.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client is disconnected
	return nil
}

// readBody returns the body of a request if it is JSON.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		err := schemas.Invalid("", "want a body with content type application/json")
		return nil, &statusError{http.StatusUnsupportedMediaType, err}
	}

	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(g.options.BodyTimeout)) // not supported in tests
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, schemas.MaxMessageBytes))
	if err == nil { // otherwise the connection is closed without reading the rest of the body
		_ = rc.SetReadDeadline(time.Time{})
	}

	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		err := schemas.Invalid("", "body has more than %d bytes", tooLarge.Limit)
		return nil, &statusError{http.StatusRequestEntityTooLarge, err}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err := schemas.Invalid("", "body was not received within %s", g.options.BodyTimeout)
		return nil, &statusError{http.StatusRequestTimeout, err}
	}
	if err != nil {
		return nil, schemas.Invalid("", "body is incomplete")
	}

	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, schemas.Invalid("", "not JSON: %s", err)
	}
	return raw, nil
}

// readQuery returns the query of a request. Each of the names may occur at most once.
func readQuery(r *http.Request, names ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, schemas.Invalid("", "invalid query: want name=value&…")
	}
	for name, values := range query {
		if !slices.Contains(names, name) {
			return nil, schemas.Invalid(name, "is not a parameter of this route; want one of %v",
				names)
		}
		if len(values) > 1 {
			return nil, schemas.Invalid(name, "is repeated %d times", len(values))
		}
	}
	return query, nil
}

// readCount returns a whole number of the query, or 0 if it is absent. The caller checks the range.
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
