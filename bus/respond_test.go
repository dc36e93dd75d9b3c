package bus_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// Replies are written to buffers that serve again, at two endpoints at once: each
// asker gets its own.
func TestBus_RepliesToEachAsker(t *testing.T) {
	b := bustest.New(t)
	reply := func(_ context.Context, q *schemas.JobRequest) (any, error) {
		return &schemas.Advice{Model: q.Model, Message: strings.Repeat(q.Model, 50)}, nil
	}
	ctx, cancel := context.WithCancel(within(t))
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- b.Serve(ctx, bus.Service{Name: "test", Version: "1.0.0", Ready: func() { close(ready) }, Endpoints: []bus.Endpoint{
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
					if err := b.Request(ctx, subject, &schemas.JobRequest{Model: model, CPUs: schemas.CPUs{1}, Epochs: 1}, &a); err != nil || a.Model != model || a.Message != strings.Repeat(model, 50) {
						t.Errorf("asked about %s, got %q, %q, %v", model, a.Model, a.Message, err)
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
