package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Two endpoints share reply buffers, and each request still gets its own reply.
func TestServe_ConcurrentReplies(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	reply := func(_ context.Context, q *schemas.JobRequest) (any, error) {
		return &schemas.Advice{Model: q.Model, Message: strings.Repeat(q.Model, 50)}, nil
	}
	ctx, cancel := context.WithCancel(within(t))
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- b.Serve(ctx, bus.Service{Name: "test", Version: "1.0.0", Ready: func() {
			close(ready)
		}, Endpoints: []bus.Endpoint{
			bus.Handle(schemas.SubjectJobPredict, reply), bus.Handle(schemas.SubjectJobSubmit, reply),
		}})
	}()
	<-ready
	var all sync.WaitGroup
	for n, subject := range []string{schemas.SubjectJobPredict, schemas.SubjectJobSubmit} {
		for k := range 8 {
			all.Go(func() {
				model := strings.Repeat(string(rune('a'+n*8+k)), 1+k)
				for range 100 {
					var a schemas.Advice
					if err := b.Request(
						ctx,
						subject,
						&schemas.JobRequest{Model: model, CPUs: schemas.CPUs{1}, Epochs: 1},
						&a,
					); err != nil ||
						a.Model != model ||
						a.Message != strings.Repeat(model, 50) {
						t.Errorf("request for %s: model %q, message %q, %v; want its own reply",
							model, a.Model, a.Message, err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// panickingReply is a reply that cannot be encoded.
type panickingReply struct{}

func (panickingReply) MarshalJSON() ([]byte, error) { panic("of the encoder") }

// If a handler or the encoding of its reply panics, the request fails with code internal, the
// panic is counted and logged with its stack, and the endpoint keeps answering.
func TestServe_RecoversFromAPanic(t *testing.T) {
	t.Parallel()
	reg, log := prometheus.NewRegistry(), &syncBuffer{}
	b, err := bus.Connect(within(t), bus.Options{URL: bustest.NewServer(t).URL()},
		slog.New(slog.NewTextHandler(log, nil)), reg)
	must(t, err)
	defer func() { _ = b.Close(context.Background()) }()
	handle := func(_ context.Context, q *schemas.JobRequest) (any, error) {
		switch q.Model {
		case "panics":
			panic("of the test")
		case "panics when encoded":
			return panickingReply{}, nil
		}
		return &schemas.Advice{Model: q.Model}, nil
	}
	serve(t, b, bus.Handle(schemas.SubjectJobPredict, handle))
	for _, c := range []struct {
		model string
		want  error
	}{{"panics", schemas.ErrInternal}, {"panics when encoded", schemas.ErrInternal}, {"fine", nil}} {
		var a schemas.Advice
		q := &schemas.JobRequest{Model: c.model, CPUs: schemas.CPUs{1}, Epochs: 1}
		if err := b.Request(within(t), schemas.SubjectJobPredict, q, &a); !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", c.model, err, c.want)
		}
	}
	want := strings.NewReader(`
# HELP courier_bus_handler_panics_total Requests whose handler panicked, by subject of the endpoint.
# TYPE courier_bus_handler_panics_total counter
courier_bus_handler_panics_total{subject="job.predict"} 2
`)
	if err := testutil.GatherAndCompare(reg, want, "courier_bus_handler_panics_total"); err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "of the test") || !strings.Contains(text,
		"request_test.go") {
		t.Errorf("the log has no panic with its stack:\n%s", text)
	}
}

// A request without an answer ends, also if its context has no deadline, and the error names the subject.
func TestRequest_EndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	serve(t, b, bus.Handle(schemas.SubjectJobStatus, func(context.Context, *schemas.JobStatusRequest) (any, error) {
		<-t.Context().Done()
		return nil, nil
	}))
	var s schemas.JobStatus
	q := &schemas.JobStatusRequest{JobID: "a"}
	err := b.Request(context.WithoutCancel(t.Context()), q.Subject(), q, &s)
	if !errors.Is(err, schemas.ErrUnavailable) || !strings.Contains(err.Error(), "no answer to job.status in time") {
		t.Errorf("Request = %v, want that job.status was not answered", err)
	}
}

// serve answers an endpoint until the test ends.
func serve(t *testing.T, b *bus.Bus, e bus.Endpoint) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	s := bus.Service{
		Name: "test", Version: "1.0.0", Endpoints: []bus.Endpoint{e},
		Ready: func() { close(ready) },
	}
	go func() { done <- b.Serve(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-ready
}

// syncBuffer is a buffer for concurrent writers.
type syncBuffer struct {
	mu  sync.Mutex
	all strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
