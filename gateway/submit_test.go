package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"
)

// recorder is a service that records submissions like the advisor. Its first answer for each job
// is an error, although the job was recorded.
type recorder struct {
	mu   sync.Mutex
	jobs map[string]int // submissions by job ID
}

func (r *recorder) submit(id string) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs[id]++
	if r.jobs[id] == 1 {
		return nil, &schemas.Error{Code: schemas.CodeUnavailable, Message: "nats does not answer"}
	}
	return map[string]string{"job_id": id}, nil
}

func (r *recorder) endpoints() []bus.Endpoint {
	return []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit,
			func(_ context.Context, q *schemas.JobRequest) (any, error) {
				return r.submit(q.JobID)
			}),
		bus.HandlePerson(schemas.SubjectJobSubmit,
			func(_ context.Context, _ string, q *schemas.JobRequest) (any, error) {
				return r.submit(q.JobID)
			}),
	}
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.jobs)
}

func TestSubmit_RepeatedAfterAFailureIsOneJob(t *testing.T) {
	for _, c := range []struct {
		name, first, key string
		again            func(id string) string // body of the second submission
	}{
		{"with the id of the error", `{"model":"m","cpus":2,"epochs":3}`, "",
			func(id string) string {
				return `{"id":"` + id + `","model":"m","cpus":2,"epochs":3}`
			}},
		{"with the same key", `{"id":"","model":"m","cpus":2,"epochs":3}`, "3f1c-nightly",
			func(string) string { return `{"model":"m","cpus":2,"epochs":3}` }},
		{"with an own id", `{"ID":"nightly-7","model":"m","cpus":2,"epochs":3}`, "",
			func(string) string { return `{"id":"nightly-7","model":"m","cpus":2,"epochs":3}` }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, r := bustest.New(t), &recorder{jobs: map[string]int{}}
			serve(t, b, r.endpoints()...)
			header := http.Header{"Content-Type": {"application/json"}}
			if c.key != "" {
				header.Set("Idempotency-Key", c.key)
			}

			h := open(t, b, gateway.Options{})
			failed := h.send(t, "POST", "/api/v1/jobs", header, strings.NewReader(c.first))
			checkError(t, "first submission", failed, 503, schemas.CodeUnavailable, "")
			id := read[gateway.SubmitError](t, failed).JobID
			if !schemas.ValidToken(id) || failed.header.Get("Location") != "/api/v1/jobs/"+id {
				t.Fatalf("failed submission = %s at %q, want a job_id and its path", failed.body,
					failed.header.Get("Location"))
			}

			other := open(t, b, gateway.Options{}) // the retry may reach another gateway
			again := other.send(t, "POST", "/api/v1/jobs", header, strings.NewReader(c.again(id)))
			if again.status != http.StatusCreated ||
				again.header.Get("Location") != "/api/v1/jobs/"+id {
				t.Errorf("second submission = %d %s at %q, want 201 for job %s",
					again.status, again.body, again.header.Get("Location"), id)
			}
			if n := r.count(); n != 1 {
				t.Errorf("two submissions created %d jobs, want 1", n)
			}
		})
	}
}

// The gateway waits for an advisor that uses its whole timeout.
func TestSubmit_WaitsForASlowAdvisor(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	serve(t, b, bus.Handle(schemas.SubjectJobSubmit, func(ctx context.Context, q *schemas.JobRequest) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, schemas.SubmitTimeout)
		defer cancel()
		<-ctx.Done()
		return map[string]string{"job_id": q.JobID}, nil
	}))
	h := open(t, b, gateway.Options{})
	if a := h.do(t, "POST", "/api/v1/jobs", `{"model":"m","cpus":2,"epochs":3}`); a.status != http.StatusCreated {
		t.Errorf("submission with a late answer = %d %s, want 201", a.status,
			a.body)
	}
}

func TestSubmit_KeyIsOfItsUser(t *testing.T) {
	b, r := bustest.New(t), &recorder{jobs: map[string]int{}}
	serve(t, b, r.endpoints()...)
	h := openWithTokens(t, b, gateway.Options{})
	ids := map[string]bool{}
	for _, c := range []struct{ token, key string }{
		{submitterToken, "a"}, {adminToken, "a"}, {submitterToken, "b"}, {submitterToken, "a"},
	} {
		header := bearer(c.token)
		header.Set("Idempotency-Key", c.key)
		a := h.send(t, "POST", "/api/v1/jobs", header,
			strings.NewReader(`{"model":"m","cpus":2,"epochs":3}`))
		ids[strings.TrimPrefix(a.header.Get("Location"), "/api/v1/jobs/")] = true
	}
	if len(ids) != 3 || r.count() != 3 {
		t.Errorf("jobs of three keys of two users = %v, %d recorded, want 3", ids, r.count())
	}
}

func TestSubmit_RefusesWhatIsNoKey(t *testing.T) {
	b, r := bustest.New(t), &recorder{jobs: map[string]int{}}
	serve(t, b, r.endpoints()...)
	h := open(t, b, gateway.Options{})
	const plain, named = `{"model":"m","cpus":2,"epochs":3}`, `{"id":"x","model":"m","cpus":2,"epochs":3}`
	for _, c := range []struct {
		name   string
		keys   []string
		body   string
		field  string
		status int
	}{
		{"maximum length", []string{strings.Repeat("k", 255)}, plain, "", 503},
		{"empty", []string{""}, plain, "Idempotency-Key", 400},
		{"too long", []string{strings.Repeat("k", 256)}, plain, "Idempotency-Key", 400},
		{"a space", []string{"a b"}, plain, "Idempotency-Key", 400},
		{"not ASCII", []string{"schlüssel"}, plain, "Idempotency-Key", 400},
		{"two", []string{"a", "b"}, plain, "Idempotency-Key", 400},
		{"together with an id", []string{"a"}, named, "Idempotency-Key", 400},
		{"an id that is not a string", nil, `{"id":7}`, "id", 400},
		{"not an object", []string{"a"}, `[]`, "", 400},
	} {
		header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": c.keys}
		a := h.send(t, "POST", "/api/v1/jobs", header, strings.NewReader(c.body))
		code := schemas.CodeInvalid
		if c.status == 503 {
			code = schemas.CodeUnavailable
		}
		checkError(t, c.name, a, c.status, code, c.field)
	}
	if n := r.count(); n != 1 {
		t.Errorf("%d jobs were recorded, want only that of the key with the maximum length", n)
	}
}
