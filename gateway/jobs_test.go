package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// receivedRequests records the requests that a service has received.
type receivedRequests struct {
	request *schemas.JobRequest
	list    *schemas.JobListRequest
	cancel  *schemas.JobCancelRequest
}

// advisor returns endpoints that answer job.* with the examples of package schemas. A job whose ID
// is an error code is rejected with that code.
func advisor(t *testing.T, saw *receivedRequests) []bus.Endpoint {
	advice := example[schemas.Advice](t, "advice")
	status := example[schemas.JobStatus](t, "job_status")
	answerJob := func(_ context.Context, q *schemas.JobRequest) (any, error) {
		saw.request = q
		return advice, nil
	}
	return []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, answerJob),
		bus.Handle(schemas.SubjectJobPredict, answerJob),
		bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
			if q.JobID == "broken" {
				return nil, io.ErrUnexpectedEOF
			}
			if q.JobID != status.JobID {
				return nil, &schemas.Error{
					Code:    schemas.Code(q.JobID),
					Field:   "id",
					Message: "as asked",
				}
			}
			return status, nil
		}),
		bus.Handle(schemas.SubjectJobList, func(_ context.Context, q *schemas.JobListRequest) (any, error) {
			saw.list = q
			return schemas.JobList{Jobs: []schemas.JobStatus{*status}, Next: "mlp-6"}, nil
		}),
		bus.Handle(schemas.SubjectJobCancel, func(_ context.Context, q *schemas.JobCancelRequest) (any, error) {
			saw.cancel = q
			return status, nil
		}),
	}
}

func TestJobs_TranslateToRequestsAndBack(t *testing.T) {
	b, saw := bustest.New(t), &receivedRequests{}
	serve(t, b, advisor(t, saw)...)
	h := open(t, b, gateway.Options{})
	advice := example[schemas.Advice](t, "advice")
	status := example[schemas.JobStatus](t, "job_status")
	body := `{"id":"mlp-7","model":"digits-mlp","cpus":2,"batch_sizes":[4,16],"epochs":10,"slo":"8s"}`

	a := h.do(t, "POST", "/api/v1/jobs", body)
	if a.status != http.StatusCreated || a.header.Get("Location") != "/api/v1/jobs/"+advice.JobID {
		t.Errorf("POST /api/v1/jobs = %d at %q, want 201 at /api/v1/jobs/%s", a.status,
			a.header.Get("Location"), advice.JobID)
	}
	if d := cmp.Diff(*advice, read[schemas.Advice](t, a)); d != "" {
		t.Errorf("POST /api/v1/jobs: advice (-want +got):\n%s", d)
	}
	want := &schemas.JobRequest{}
	if err := schemas.DecodeRequest([]byte(body), want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, saw.request); d != "" {
		t.Errorf("POST /api/v1/jobs: forwarded request (-want +got):\n%s", d)
	}

	saw.request = nil
	a = h.do(t, "POST", "/api/v1/predict", body)
	if d := cmp.Diff(*advice, read[schemas.Advice](t, a)); a.status != http.StatusOK || d != "" {
		t.Errorf("POST /api/v1/predict = %d (-want +got):\n%s", a.status, d)
	}
	if d := cmp.Diff(want, saw.request); d != "" {
		t.Errorf("POST /api/v1/predict: forwarded request (-want +got):\n%s", d)
	}

	a = h.do(t, "GET", "/api/v1/jobs?state=running,lost&user=ada&label=team%3Dvision&missed=true"+
		"&since=2026-11-28T08:00:00Z&sort=-ended&limit=7&after=mlp-9", "")
	if l := read[schemas.JobList](t, a); a.status != http.StatusOK || len(l.Jobs) != 1 ||
		l.Next != "mlp-6" {
		t.Errorf("GET /api/v1/jobs = %d %s, want the page of the service", a.status, a.body)
	}
	if d := cmp.Diff(&schemas.JobListRequest{
		State: "running,lost", User: "ada", Label: "team=vision",
		Since: time.Date(2026, time.November, 28, 8, 0, 0, 0, time.UTC), Missed: true, Sort: "-ended", Limit: 7,
		After: "mlp-9",
	}, saw.list); d != "" {
		t.Errorf("GET /api/v1/jobs: forwarded request (-want +got):\n%s", d)
	}

	a = h.do(t, "GET", "/api/v1/jobs/"+status.JobID, "")
	if d := cmp.Diff(*status, read[schemas.JobStatus](t, a)); a.status != http.StatusOK || d != "" {
		t.Errorf("GET /api/v1/jobs/%s = %d (-want +got):\n%s", status.JobID, a.status, d)
	}

	a = h.do(t, "DELETE", "/api/v1/jobs/mlp-7?reason=wrong%20data", "")
	if d := cmp.Diff(&schemas.JobCancelRequest{
		JobID:  "mlp-7",
		Reason: "wrong data",
	}, saw.cancel); a.status != http.StatusOK || d != "" {
		t.Errorf("DELETE /api/v1/jobs/mlp-7 = %d; forwarded request (-want +got):\n%s",
			a.status, d)
	}
}

// Answers are compressed, and an unchanged one is not sent twice.
func TestJobs_AreSentCompressedAndOnce(t *testing.T) {
	b := bustest.New(t)
	serve(t, b, advisor(t, &receivedRequests{})...)
	h := open(t, b, gateway.Options{})
	path := "/api/v1/jobs/" + example[schemas.JobStatus](t, "job_status").JobID
	for _, p := range []string{path, "/web/app.js"} {
		a := h.send(t, "GET", p, http.Header{"Accept-Encoding": {"gzip"}}, nil)
		plain := h.do(t, "GET", p, "")
		if len(plain.body) >= 1024 && a.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("GET %s is not compressed", p)
		}
		tag := a.header.Get("ETag")
		a = h.send(t, "GET", p, http.Header{"If-None-Match": {tag}}, nil)
		if tag == "" || a.status != http.StatusNotModified || a.body != "" {
			t.Errorf("GET %s with ETag %q = %d and %d bytes, want 304 and none", p, tag, a.status, len(a.body))
		}
		a = h.send(t, "GET", p, http.Header{"If-None-Match": {`"other"`}}, nil)
		if a.status != http.StatusOK || a.body != plain.body {
			t.Errorf("GET %s with another ETag = %d, want 200 and the whole answer", p, a.status)
		}
	}
}

func TestJobs_RefuseWithStatusCodeAndField(t *testing.T) {
	b := bustest.New(t)
	serve(t, b, advisor(t, &receivedRequests{})...)
	h := open(t, b, gateway.Options{})
	for _, c := range []struct {
		method, path, body string
		status             int
		code               schemas.Code
		field              string
	}{
		{
			"POST", "/api/v1/jobs", `{"model":"m","cpus":2,"epochs":10,"slo":"soon"}`, 400,
			schemas.CodeInvalid, "slo",
		},
		{
			"POST", "/api/v1/jobs", `{"model":"m","cpus":2,"epochs":10,"batchsize":4}`, 400,
			schemas.CodeInvalid, "batchsize",
		},
		{
			"POST", "/api/v1/predict", `{"model":"m","cpus":-2,"epochs":10}`, 400,
			schemas.CodeInvalid, "cpus",
		},
		{"POST", "/api/v1/predict", `{"model":`, 400, schemas.CodeInvalid, ""},
		{"POST", "/api/v1/predict", `{} {}`, 400, schemas.CodeInvalid, ""},
		{"GET", "/api/v1/jobs/not_found", "", 404, schemas.CodeNotFound, "id"},
		{"GET", "/api/v1/jobs/conflict", "", 409, schemas.CodeConflict, "id"},
		{"GET", "/api/v1/jobs/unavailable", "", 503, schemas.CodeUnavailable, "id"},
		{"GET", "/api/v1/jobs/internal", "", 500, schemas.CodeInternal, "id"},
		{"GET", "/api/v1/jobs/broken", "", 500, schemas.CodeInternal, ""},
		{"GET", "/api/v1/jobs/A%20b", "", 400, schemas.CodeInvalid, "id"},
		{"GET", "/api/v1/jobs/a%2Fb", "", 400, schemas.CodeInvalid, "id"},
		{"GET", "/api/v1/jobs/mlp-7?verbose=1", "", 400, schemas.CodeInvalid, "verbose"},
		{"GET", "/api/v1/jobs?limit=many", "", 400, schemas.CodeInvalid, "limit"},
		{"GET", "/api/v1/jobs?limit=0", "", 400, schemas.CodeInvalid, "limit"},
		{"GET", "/api/v1/jobs?limit=1001", "", 400, schemas.CodeInvalid, "limit"},
		{"GET", "/api/v1/jobs?state=odd", "", 400, schemas.CodeInvalid, "state"},
		{"GET", "/api/v1/jobs?state=running&state=lost", "", 400, schemas.CodeInvalid, "state"},
		{"GET", "/api/v1/jobs?%zz", "", 400, schemas.CodeInvalid, ""},
		{"GET", "/api/v1/jobs/*/advice", "", 400, schemas.CodeInvalid, "id"},
		{"GET", "/api/v1/jobs/%3E/advice", "", 400, schemas.CodeInvalid, "id"},
		{"GET", "/api/v1/jobs/never-heard-of/advice", "", 404, schemas.CodeNotFound, "id"},
	} {
		what := c.method + " " + c.path
		checkError(t, what, h.do(t, c.method, c.path, c.body), c.status, c.code, c.field)
	}
	if a := h.do(t, "GET", "/api/v1/jobs/broken", ""); strings.Contains(a.body,
		io.ErrUnexpectedEOF.Error()) {
		t.Errorf("GET /api/v1/jobs/broken = %s, want no details of the error", a.body)
	}
}

func TestBody_IsLimitedAndTyped(t *testing.T) {
	b := bustest.New(t)
	serve(t, b, advisor(t, &receivedRequests{})...)
	h := open(t, b, gateway.Options{})
	padded := func(n int) string {
		body := `{"model":"m","cpus":2,"epochs":10}`
		return body + strings.Repeat(" ", n-len(body))
	}
	for _, c := range []struct {
		name, kind, body string
		status           int
	}{
		{"the largest body", "application/json", padded(schemas.MaxMessageBytes), 201},
		{"one byte more", "application/json", padded(schemas.MaxMessageBytes + 1), 413},
		{"a form", "application/x-www-form-urlencoded", padded(100), 415},
		{"text/plain, which needs no CORS preflight", "text/plain", padded(100), 415},
		{"no content type", "", padded(100), 415},
		{"no body", "application/json", "", 400},
	} {
		header := http.Header{}
		if c.kind != "" {
			header.Set("Content-Type", c.kind)
		}
		a := h.send(t, "POST", "/api/v1/jobs", header, strings.NewReader(c.body))
		if a.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, a.status, a.body, c.status)
		}
		if c.status != 201 {
			checkError(t, c.name, a, c.status, schemas.CodeInvalid, "")
		}
	}
}

func TestJobs_AreUnavailableWithoutAService(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{})
	for _, path := range []string{"/api/v1/jobs", "/api/v1/regressors/life"} {
		checkError(t, path, h.do(t, "GET", path, ""), 503, schemas.CodeUnavailable, "")
	}
}

func TestJobs_AreUnavailableWhenTheServiceIsTooSlow(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	free := make(chan struct{})
	serve(t, b, bus.Handle(schemas.SubjectJobList, func(context.Context, *schemas.JobListRequest) (any, error) {
		<-free
		return schemas.JobList{}, nil
	}))
	t.Cleanup(func() { close(free) }) // before the cleanup of serve, which waits for the request
	h := open(t, b, gateway.Options{})
	checkError(t, "GET /api/v1/jobs", h.do(t, "GET", "/api/v1/jobs", ""), 503,
		schemas.CodeUnavailable, "")
}

func TestAdvice_IsTheLatestInTheLog(t *testing.T) {
	b := bustest.New(t)
	h := open(t, b, gateway.Options{})
	submitted := example[schemas.Submitted](t, "submitted")
	advice := example[schemas.Advice](t, "advice")
	other := *advice
	other.JobID, other.EventID = "other", "other/1/advice"
	later := *advice
	later.EventID, later.Message = advice.JobID+"/99/advice", "change"
	for _, c := range []struct {
		event schemas.Event
		want  *schemas.Advice
	}{
		{submitted, &submitted.Advice},
		{advice, advice},
		{&other, advice},
		{&later, &later},
	} {
		if _, err := b.Publish(within(t), c.event); err != nil {
			t.Fatal(err)
		}
		a := h.do(t, "GET", "/api/v1/jobs/"+submitted.JobID+"/advice", "")
		if d := cmp.Diff(*c.want, read[schemas.Advice](t, a)); a.status != http.StatusOK ||
			d != "" {
			t.Errorf("after %s: GET advice = %d (-want +got):\n%s", c.event.ID(), a.status, d)
		}
	}
}

func TestScore_IsAskedOfTheAdvisor(t *testing.T) {
	b := bustest.New(t)
	h := open(t, b, gateway.Options{})
	want := *example[schemas.Score](t, "score")
	var saw *schemas.ScoreRequest
	serve(t, b, bus.Handle(schemas.SubjectJobScore, func(_ context.Context, q *schemas.ScoreRequest) (any, error) {
		saw = q
		return want, nil
	}))
	if diff := cmp.Diff(want, read[schemas.Score](t, h.do(t, "GET", "/api/v1/score", ""))); diff != "" {
		t.Errorf("GET /api/v1/score: %s", diff)
	}
	since := time.Date(2026, time.November, 28, 8, 0, 0, 0, time.UTC)
	h.do(t, "GET", "/api/v1/score?user=ada&model=mlp&since=2026-11-28T08:00:00Z", "")
	if diff := cmp.Diff(&schemas.ScoreRequest{Since: since, User: "ada", Model: "mlp"}, saw); diff != "" {
		t.Errorf("score of a period: forwarded request (-want +got):\n%s", diff)
	}
	h.do(t, "GET", "/api/v1/score?since=7d&until=1d", "")
	if period := saw.Until.Sub(saw.Since); period != 6*24*time.Hour {
		t.Errorf("since=7d&until=1d is a period of %v, want 6 days", period)
	}
	for query, field := range map[string]string{"node=a": "node", "since=soon": "since", "until=1d&since=1h": "until"} {
		checkError(t, query, h.do(t, "GET", "/api/v1/score?"+query, ""), 400, schemas.CodeInvalid, field)
	}
}

// A warning on the bus reaches the webhook with the user of its job.
func TestNotify_SendsAWarning(t *testing.T) {
	b := bustest.New(t)
	serve(t, b, advisor(t, &receivedRequests{})...)
	got := make(chan gateway.Notification, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n gateway.Notification
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Errorf("the body is not JSON: %v", err)
		}
		got <- n
	}))
	t.Cleanup(receiver.Close)
	h := open(t, b, gateway.Options{Outward: gateway.Outward{Notify: receiver.URL}})
	listen(t, h) // waits until the gateway follows the log
	status := example[schemas.JobStatus](t, "job_status")
	risk := example[schemas.Risk](t, "risk")
	risk.JobID = status.JobID
	h.publish(t, risk)
	select {
	case n := <-got:
		if n.Kind != "risk" || n.JobID != risk.JobID || n.User != status.User ||
			!strings.Contains(n.Text, risk.Message) {
			t.Errorf("notification %+v, want the warning %q about %s", n, risk.Message, risk.JobID)
		}
	case <-time.After(time.Minute):
		t.Fatal("no notification within a minute")
	}
}
