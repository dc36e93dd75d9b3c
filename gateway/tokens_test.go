package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"
)

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// tokens reads a token file with the lines.
func tokens(t *testing.T, lines ...string) (*gateway.Tokens, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return gateway.ReadTokens(file)
}

// Tokens of three users.
const (
	readerToken, submitterToken, adminToken = "token-of-rita", "token-of-ada", "token-of-otto"
)

func openWithTokens(t *testing.T, b *bus.Bus, o gateway.Options) *testGateway {
	t.Helper()
	var err error
	if o.Tokens, err = tokens(t, "# who may ask", "", hashOf(readerToken)+" rita reader",
		hashOf(submitterToken)+"  ada submitter # she trains", hashOf(adminToken)+
			" otto admin"); err != nil {
		t.Fatal(err)
	}
	return open(t, b, o)
}

func bearer(token string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}

// userRecorder is a service that records the users of its requests.
type userRecorder struct {
	mu    sync.Mutex
	names []string
}

func (a *userRecorder) note(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.names = append(a.names, name)
}

func (a *userRecorder) drain() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := strings.Join(a.names, " ")
	a.names = nil
	return all
}

func (a *userRecorder) endpoints() []bus.Endpoint {
	return []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, func(context.Context, *schemas.JobRequest) (any, error) {
			a.note("submit")
			return map[string]string{"job_id": "j1"}, nil
		}),
		bus.HandlePerson(schemas.SubjectJobSubmit, func(
			_ context.Context, person string, _ *schemas.JobRequest,
		) (any, error) {
			a.note("submit:" + person)
			return map[string]string{"job_id": "j1"}, nil
		}),
		bus.Handle(schemas.SubjectJobCancel, func(context.Context, *schemas.JobCancelRequest) (any, error) {
			a.note("cancel")
			return struct{}{}, nil
		}),
		bus.HandlePerson(schemas.SubjectJobCancel, func(
			_ context.Context, person string, _ *schemas.JobCancelRequest,
		) (any, error) {
			a.note("cancel:" + person)
			return struct{}{}, nil
		}),
		bus.Handle(schemas.SubjectJobList, func(context.Context, *schemas.JobListRequest) (any, error) {
			return schemas.JobList{}, nil
		}),
		bus.Handle(schemas.SubjectRegressorPromote, func(context.Context, *schemas.PromoteRequest) (any, error) {
			a.note("promote")
			return struct{}{}, nil
		}),
	}
}

func TestTokens_GiveRolesAndNames(t *testing.T) {
	b, a := bustest.New(t), &userRecorder{}
	serve(t, b, a.endpoints()...)
	h := openWithTokens(t, b, gateway.Options{})
	const job = `{"model":"m","cpus":2,"epochs":3}`
	promotion := `{"model_digest":"` + strings.Repeat("a", 64) + `"}`
	for _, c := range []struct {
		method, path, body string
		nobody             int // without a valid token
		reader             int
		submitter          int
		admin              int
		as                 [2]string // user of the forwarded request: from the submitter, from the admin
	}{
		{"GET", "/api/v1/jobs", "", 401, 200, 200, 200, [2]string{}},
		{"GET", "/api/v1/nodes", "", 401, 200, 200, 200, [2]string{}},
		{"GET", "/api/v1/about", "", 401, 200, 200, 200, [2]string{}},
		{"GET", "/metrics", "", 401, 200, 200, 200, [2]string{}},
		{"POST", "/api/v1/jobs", job, 401, 403, 201, 201, [2]string{"submit:ada", "submit:otto"}},
		{"DELETE", "/api/v1/jobs/j1", "", 401, 403, 200, 200, [2]string{"cancel:ada", "cancel"}},
		{
			"POST", "/api/v1/regressors/epoch_time/promote", promotion, 401, 403, 403, 200,
			[2]string{"", "promote"},
		},
		{"GET", "/", "", 200, 200, 200, 200, [2]string{}},
		{"GET", "/web/app.js", "", 200, 200, 200, 200, [2]string{}},
		{"GET", "/healthz", "", 200, 200, 200, 200, [2]string{}},
		{"GET", "/readyz", "", 200, 200, 200, 200, [2]string{}},
		{"GET", "/api/v1/openapi.yaml", "", 200, 200, 200, 200, [2]string{}},
	} {
		for _, who := range []struct {
			name, token string
			want        int
			as          string
		}{{"nobody", "", c.nobody, ""}, {
			"an unknown token", "token-of-nobody", c.nobody, "",
		}, {"a reader", readerToken, c.reader, ""},
			{
				"a submitter", submitterToken, c.submitter, c.as[0],
			}, {"an admin", adminToken, c.admin, c.as[1]}} {
			got := h.send(t, c.method, c.path, bearer(who.token), strings.NewReader(c.body))
			if got.status != who.want {
				t.Errorf("%s: %s %s = %d %s, want %d", who.name, c.method, c.path, got.status,
					got.body, who.want)
			}
			if as := a.drain(); as != who.as {
				t.Errorf("%s: %s %s reached a service as %q, want %q", who.name, c.method, c.path,
					as, who.as)
			}
			if asksFor := got.header.Get("WWW-Authenticate"); (got.status == 401) != strings.HasPrefix(
				asksFor, "Bearer",
			) {
				t.Errorf("%s: %s %s = %d with WWW-Authenticate %q, want Bearer with 401 only",
					who.name, c.method, c.path,
					got.status, asksFor)
			}
		}
	}
	checkError(t, "no token", h.do(t, "GET", "/api/v1/jobs", ""), http.StatusUnauthorized,
		schemas.CodeForbidden, "")
}

// A gateway without tokens allows every request, and forwards it without a user.
func TestTokens_AreOptional(t *testing.T) {
	b, a := bustest.New(t), &userRecorder{}
	serve(t, b, a.endpoints()...)
	h := open(t, b, gateway.Options{})
	h.do(t, "POST", "/api/v1/jobs", `{"model":"m","cpus":2,"epochs":3}`)
	h.do(t, "DELETE", "/api/v1/jobs/j1", "")
	if as := a.drain(); as != "submit cancel" {
		t.Errorf("users of the forwarded requests = %q, want none", as)
	}
	if s := read[gateway.Session](t, h.do(t, "GET", "/api/v1/session", "")); s != (gateway.Session{Role: "admin"}) {
		t.Errorf("session = %+v, want an admin without a user", s)
	}
}

// The page gets a cookie for its token, which authorizes all its requests.
func TestSession_AuthorizesThePage(t *testing.T) {
	b, a := bustest.New(t), &userRecorder{}
	serve(t, b, a.endpoints()...)
	h := openWithTokens(t, b, gateway.Options{})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	ask := func(method, path, token string) *http.Response {
		r, err := http.NewRequestWithContext(within(t), method, h.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = bearer(token)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	if got := ask("POST", "/api/v1/session", "token-of-nobody"); got.StatusCode != 401 ||
		len(got.Cookies()) != 0 {
		t.Errorf("session with a wrong token = %d with cookies %v, want 401 without",
			got.StatusCode, got.Cookies())
	}
	opened := ask("POST", "/api/v1/session", submitterToken)
	if cookies := opened.Cookies(); opened.StatusCode != 200 || len(cookies) != 1 ||
		!cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("session = %d, cookies %v, want one with HttpOnly and SameSite=Strict",
			opened.StatusCode, cookies)
	}
	for _, path := range []string{"/api/v1/jobs", "/api/v1/events", "/api/v1/about"} {
		if got := ask("GET", path, ""); got.StatusCode != 200 {
			t.Errorf("GET %s with the cookie = %d, want 200", path, got.StatusCode)
		}
	}
	if got := ask("DELETE", "/api/v1/jobs/j1", ""); got.StatusCode != 200 ||
		a.drain() != "cancel:ada" {
		t.Errorf("cancellation with the cookie = %d, want one by ada", got.StatusCode)
	}
	ask("DELETE", "/api/v1/session", "")
	if got := ask("GET", "/api/v1/jobs", ""); got.StatusCode != 401 {
		t.Errorf("after the end of the session GET /api/v1/jobs = %d, want 401", got.StatusCode)
	}
}

// A page of another origin can change nothing, regardless of cookies. It can read nothing, because
// no response has a CORS header.
func TestRoutes_RejectOtherOrigins(t *testing.T) {
	b, a := bustest.New(t), &userRecorder{}
	serve(t, b, a.endpoints()...)
	h := openWithTokens(t, b, gateway.Options{})
	for _, c := range []struct {
		method string
		header http.Header
		want   int
	}{
		{"DELETE", http.Header{"Origin": {"https://elsewhere.example"}}, 403},
		{"DELETE", http.Header{"Origin": {"null"}}, 403},
		{"DELETE", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"DELETE", http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		{
			"OPTIONS",
			http.Header{
				"Origin":                        {"https://elsewhere.example"},
				"Access-Control-Request-Method": {"DELETE"},
			},
			405,
		},
		{"DELETE", http.Header{"Origin": {h.url}}, 200},
		{"DELETE", http.Header{}, 200}, // not sent by a browser
	} {
		c.header.Set("Cookie", "courier_token="+submitterToken)
		got := h.send(t, c.method, "/api/v1/jobs/j1", c.header, nil)
		if as := a.drain(); got.status != c.want || (as == "cancel:ada") != (c.want == 200) {
			t.Errorf("%s with %v = %d %s and reached a service as %q, want %d", c.method, c.header,
				got.status, got.body, as, c.want)
		}
		for name := range got.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s with %v: the header %s is sent", c.method, c.header, name)
			}
		}
	}
}

func TestReadTokens_SaysWhichLineIsWrong(t *testing.T) {
	const secret = "a-token-in-the-clear"
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{[]string{"# nothing"}, "contains no token"},
		{[]string{"", secret + " ada reader"}, "line 2: the first field is not a sha256"},
		{[]string{hashOf(secret)[:40] + " ada reader"}, "line 1: the first field is not a sha256"},
		{[]string{hashOf(secret) + " ada"}, "have 2 fields"},
		{[]string{hashOf(secret) + " ada king"}, "the role is not"},
		{[]string{hashOf(secret) + " ada anybody"}, "the role is not"},
		{[]string{hashOf(secret) + " Ada reader"}, "the user is not a name"},
		{
			[]string{hashOf(secret) + " ada reader", hashOf(secret) + " bob admin"},
			"line 2: duplicate token",
		},
	} {
		_, err := tokens(t, c.lines...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(),
			secret) || strings.Contains(err.Error(), hashOf(secret)) {
			t.Errorf("ReadTokens(%q) = %v, want %q and no token", c.lines, err, c.want)
		}
	}
	if _, err := gateway.ReadTokens(filepath.Join(t.TempDir(), "absent")); err == nil ||
		!strings.Contains(err.Error(), "absent") {
		t.Errorf("ReadTokens of a missing file = %v, want an error with its name", err)
	}
}

// Each user and each address has its own limit. Probes have none.
func TestRate_AppliesToEachClient(t *testing.T) {
	b, a := bustest.New(t), &userRecorder{}
	serve(t, b, a.endpoints()...)
	h := openWithTokens(t, b, gateway.Options{Rate: 1e-6}) // buckets do not refill during the test
	status := func(path, token string) httpResponse { return h.send(t, "GET", path, bearer(token), nil) }
	for _, token := range []string{submitterToken, adminToken, "", "token-of-nobody"} {
		left := 2
		if token == "token-of-nobody" {
			left = 0 // an earlier request of the address
		}
		for i := range 4 {
			got := status("/api/v1/session", token)
			if want := map[bool]int{true: 200, false: 429}[i < left]; got.status != want {
				t.Errorf("request %d with token %q = %d, want %d", i+1, token, got.status, want)
			}
			if got.status == 429 && got.header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
		}
	}
	for range 20 {
		if got := status("/healthz", ""); got.status != 200 {
			t.Fatalf("GET /healthz = %d, want 200", got.status)
		}
	}
	if after := status("/api/v1/session", readerToken); after.status != 200 {
		t.Errorf("first request of a user = %d, want 200", after.status)
	}
}

// The gateway ends a request whose body is incomplete after a timeout.
func TestBody_HasATimeout(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{BodyTimeout: 100 * time.Millisecond})
	c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c,
		"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
			"application/json\r\nContent-Length: 100\r\n\r\n{")
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 64)
	n, err := c.Read(reply)
	if err != nil || !strings.HasPrefix(string(reply[:n]), "HTTP/1.1 408") {
		t.Errorf("%q, %v, want 408", reply[:n], err)
	}
}

// The log contains no token, regardless of how a client sent it and of the error.
func TestTokens_AreNotLogged(t *testing.T) {
	b := bustest.New(t)
	known, err := tokens(t, hashOf(submitterToken)+" ada submitter")
	if err != nil {
		t.Fatal(err)
	}
	log := bustest.NewBuffer()
	g, err := gateway.New(b, gateway.Options{Tokens: known, Rate: 5},
		slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err != nil {
		t.Fatal(err)
	}
	bad := bus.Handle(schemas.SubjectJobList, func(context.Context, *schemas.JobListRequest) (any, error) {
		return nil, fmt.Errorf("broken")
	})
	serve(t, b, bad)
	s := httptest.NewServer(g.Handler())
	defer s.Close()
	h := &testGateway{url: s.URL}
	for range 12 { // exceeds the rate limit, too
		for _, header := range []http.Header{
			bearer(submitterToken),
			bearer("token-of-nobody"),
			{"Cookie": {"courier_token=" + submitterToken}},
		} {
			h.send(t, "GET", "/api/v1/jobs", header, nil)
			h.send(t, "GET", "/api/v1/jobs?token="+submitterToken, header, nil)
		}
	}
	if text := log.String(); !strings.Contains(text, "request failed") || strings.Contains(text,
		"token-of") || strings.Contains(text, hashOf(submitterToken)) {
		t.Errorf("the log contains a token or is empty:\n%s", text)
	}
}
