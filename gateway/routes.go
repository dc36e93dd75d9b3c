package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"courier/schemas"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

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
	page := g.serveFile(indexFile)
	promote := g.changeChampion(schemas.SubjectRegressorPromote)
	rollback := g.changeChampion(schemas.SubjectRegressorRollback)
	return []apiRoute{
		{method: "POST", path: "/api/v1/jobs", handle: g.submit, role: Submitter},
		{method: "GET", path: "/api/v1/jobs", handle: g.listJobs, role: Reader},
		{method: "GET", path: "/api/v1/jobs/{id}", handle: g.jobStatus, role: Reader},
		{method: "DELETE", path: "/api/v1/jobs/{id}", handle: g.cancelJob, role: Submitter},
		{method: "GET", path: "/api/v1/jobs/{id}/advice", handle: ofJob(requestTimeout, g.advice), role: Reader},
		{method: "GET", path: "/api/v1/jobs/{id}/history", handle: ofJob(historyTimeout, g.jobHistory), role: Reader},
		{method: "GET", path: "/api/v1/jobs/{id}/receipt", handle: ofJob(historyTimeout, g.jobReceipt), role: Reader},
		{method: "POST", path: "/api/v1/predict", handle: g.predict, role: Reader},
		{method: "GET", path: "/api/v1/score", handle: g.score, role: Reader},
		{method: "GET", path: "/api/v1/nodes", handle: g.listNodes, role: Reader},
		{method: "GET", path: "/api/v1/regressors", handle: g.listRegressors, role: Reader},
		{method: "GET", path: "/api/v1/regressors/life", handle: g.regressorLife, role: Reader},
		{method: "POST", path: "/api/v1/regressors/{target}/promote", handle: promote, role: Admin},
		{method: "POST", path: "/api/v1/regressors/{target}/rollback", handle: rollback, role: Admin},
		{method: "GET", path: "/api/v1/events", handle: g.events, role: Reader, live: true},
		{method: "GET", path: "/api/v1/session", handle: g.session},
		{method: "POST", path: "/api/v1/session", handle: g.openSession, role: Reader},
		{method: "DELETE", path: "/api/v1/session", handle: g.endSession},
		{method: "GET", path: "/api/v1/about", handle: g.about, role: Reader},
		{method: "GET", path: "/api/v1/openapi.yaml", handle: g.serveFile("openapi.yaml")},
		{method: "GET", path: "/metrics", handle: g.showMetrics, role: Reader, anyHost: true},
		{method: "GET", path: "/healthz", handle: g.health, unlimited: true, anyHost: true},
		{method: "GET", path: "/readyz", handle: g.ready, unlimited: true, anyHost: true},
		{method: "GET", path: "/web/{file}", handle: g.serveFile("web/")},
		{method: "GET", path: "/{$}", handle: page, page: true},
		{method: "GET", path: "/jobs", handle: page, page: true},
		{method: "GET", path: "/jobs/{id}", handle: page, page: true},
		{method: "GET", path: "/compare", handle: page, page: true},
		{method: "GET", path: "/nodes", handle: page, page: true},
		{method: "GET", path: "/nodes/{node}", handle: page, page: true},
		{method: "GET", path: "/attainment", handle: page, page: true},
		{method: "GET", path: "/what-if", handle: page, page: true},
		{method: "GET", path: "/regressors", handle: page, page: true},
	}
}

// contentPolicy is the Content-Security-Policy of every response.
const contentPolicy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Handler returns the handler of all routes, which sets the security headers and responds to unknown
// routes.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range g.routes() {
		mux.Handle(rt.method+" "+rt.path, g.wrap(rt))
	}
	mux.Handle("/", g.wrap(apiRoute{path: "unknown", handle: g.unknownRoute(mux)}))

	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(g.wrap(apiRoute{path: "unknown", handle: denyCrossOrigin}))
	protected := compressed(crossOrigin.Handler(mux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		protected.ServeHTTP(w, r)
	})
}

// compressed compresses responses of at least 1 KiB and live events for clients that accept gzip. A
// live client needs 0.8 MB for it, at the fastest level; advice shrinks to a twentieth.
func compressed(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.CompressionLevel(gzip.BestSpeed))
	if err != nil {
		panic(err) // the options are constant
	}
	return wrap(h)
}

func denyCrossOrigin(http.ResponseWriter, *http.Request) error {
	return schemas.Errorf(schemas.CodeForbidden, "", "cross-origin requests are not allowed")
}

// unknownRoute rejects an unknown route: 405 if the path exists for another method, else 404. A browser
// gets the page, which says so.
func (g *Gateway) unknownRoute(mux *http.ServeMux) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range []string{"DELETE", "GET", "POST"} {
			other := *r
			other.Method = method
			if _, pattern := mux.Handler(&other); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
		isBrowser := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
		if len(allowed) == 0 && isBrowser {
			index := g.assets[indexFile]
			w.Header().Set("Content-Type", index.kind)
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write(index.data) // fails only if the client is disconnected
			return nil
		}
		if len(allowed) == 0 {
			return schemas.Errorf(schemas.CodeNotFound, "", "no such route; see /api/v1/openapi.yaml")
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		err := schemas.Invalid("", "this route allows only %s", strings.Join(allowed, " and "))
		return &httpError{status: http.StatusMethodNotAllowed, response: err}
	}
}

// responseWriter records the status of a response.
type responseWriter struct {
	http.ResponseWriter
	status int // 0: nothing was written
}

func (a *responseWriter) WriteHeader(status int) {
	a.status = cmp.Or(a.status, status)
	a.ResponseWriter.WriteHeader(status)
}

func (a *responseWriter) Write(b []byte) (int, error) {
	a.status = cmp.Or(a.status, http.StatusOK)
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
	if err := authorize(w, rt.role, who, unknownToken); err != nil {
		return err
	}
	return rt.handle(w, withIdentity(r, who))
}

// checkHost rejects a request for an unknown host name. Tokens make the check unnecessary, because
// a browser sends the cookie only to the gateway's own name. So does TLS, because the certificate
// is valid only for that name.
func (g *Gateway) checkHost(r *http.Request) error {
	if g.options.Tokens != nil || r.TLS != nil || g.hosts.allows(r.Host) {
		return nil
	}
	const maxNameBytes = 255 // of a DNS name
	err := schemas.Errorf(schemas.CodeForbidden, "", "%.*q is not a host name of this gateway; to allow it, "+
		"start the gateway with --allowed-host (COURIER_ALLOWED_HOST) or --tokens", maxNameBytes, plainHost(r.Host))
	return &httpError{status: http.StatusMisdirectedRequest, response: err}
}

func (g *Gateway) limit(w http.ResponseWriter, client string) error {
	wait, ok := g.limiter.allow(client, time.Now())
	if ok {
		return nil
	}
	w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds())+1))
	err := unavailable(fmt.Sprintf("%s exceeds the limit of %g requests per second; retry in %.1f s",
		client, g.limiter.rate, wait.Seconds()))
	return &httpError{status: http.StatusTooManyRequests, response: err}
}

// identify returns the identity of a request. Without Tokens every request has the role Admin.
func (g *Gateway) identify(r *http.Request) (who identity, unknownToken bool) {
	if g.options.Tokens == nil {
		return identity{"", Admin}, false
	}
	token := tokenOf(r)
	if token == "" {
		return identity{}, false
	}
	g.options.Tokens.refresh(time.Now(), g.log)
	who, found := g.options.Tokens.find(token)
	return who, !found
}

// authorize rejects a request whose role is below the needed one.
func authorize(w http.ResponseWriter, needed Role, who identity, unknownToken bool) error {
	if needed <= who.role {
		return nil
	}
	if who.user != "" {
		return schemas.Errorf(schemas.CodeForbidden, "",
			"user %s has the role %s, but this route needs the role %s", who.user, who.role, needed)
	}

	w.Header().Set("WWW-Authenticate", `Bearer realm="courier"`)
	message := "missing token; send the header Authorization: Bearer TOKEN"
	if unknownToken {
		message = "unknown token"
	}
	err := schemas.Errorf(schemas.CodeForbidden, "", "%s", message)
	return &httpError{status: http.StatusUnauthorized, response: err}
}

// wrap returns the handler of a route, which converts errors to responses and counts requests.
func (g *Gateway) wrap(rt apiRoute) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		a := &responseWriter{ResponseWriter: w}
		if err := g.serve(a, r, rt); err != nil {
			g.writeError(a, r, err)
		}
		a.status = cmp.Or(a.status, http.StatusOK)
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
	special := &httpError{}
	if errors.As(err, &special) {
		status = cmp.Or(special.status, status)
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
	if special.jobID != "" {
		body = &SubmitError{Error: response, JobID: special.jobID}
	}
	if err := writeJSON(a, status, body); err != nil {
		g.log.Debug("response not sent", "path", r.URL.Path, "error", err)
	}
}
