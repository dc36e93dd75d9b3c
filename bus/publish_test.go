package bus_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
)

// A replicated stream rejects a duplicate while it stores the original. The stream of a single
// server never does, so the test sends the answers of a replicated stream.
func TestPublish_RetriesWhileACopyIsStored(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	must(t, js.DeleteStream(within(t), schemas.StreamNode))
	answers := []string{
		`{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`,
		`{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`,
		`{"stream":"NODE","seq":7,"duplicate":true}`,
	}
	nc := js.Conn()
	_, err := nc.Subscribe(sample(1).Subject(), func(m *nats.Msg) {
		_ = m.Respond([]byte(answers[0])) // if it fails, the publisher fails
		answers = answers[1:]
	})
	must(t, err)
	must(t, nc.Flush())
	if sequence, err := b.Publish(within(t), sample(1)); err != nil || sequence != 7 {
		t.Errorf("Publish = %d, %v, want 7", sequence, err)
	}
}

// Only one event per subject is the first, regardless of the duplicate window.
func TestPublishOnce_StoresOneEventPerSubject(t *testing.T) {
	t.Parallel()
	b := bustest.NewServer(t).Connect(t)
	sequence, first, err := b.PublishOnce(within(t), sample(1))
	if err != nil || !first {
		t.Fatalf("PublishOnce = first %v, %v, want the first", first, err)
	}
	again, first, err := b.PublishOnce(within(t), sample(2))
	if err != nil || first || again != sequence {
		t.Errorf("PublishOnce with another identity = %d, first %v, %v, want %d and not the first",
			again, first, err, sequence)
	}
}

// What was refused is not sent later: its sender was told that it failed.
func TestPublish_SendsNothingLater(t *testing.T) {
	t.Parallel()
	s := bustest.NewServer(t)
	b := s.Connect(t)
	publish(t, b, 1, 2)
	s.Stop()
	for b.Connected() {
		runtime.Gosched()
	}
	failing := map[string]func(context.Context) error{
		"publish": func(ctx context.Context) error { _, err := b.Publish(ctx, sample(2)); return err },
		"request": func(ctx context.Context) error {
			return b.Request(ctx, schemas.SubjectJobSubmit, &schemas.JobRequest{}, &schemas.Advice{})
		},
	}
	for name, try := range failing {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := try(ctx); !errors.Is(err, schemas.ErrUnavailable) {
			t.Errorf("%s without a server = %v, want unavailable", name, err)
		}
		cancel()
	}
	waiting := make(chan error, 1)
	go func() { // within its time limit the server comes back
		_, err := b.Publish(within(t), sample(3))
		waiting <- err
	}()
	s.Restart(t)
	if err := <-waiting; err != nil {
		t.Errorf("publish while the server restarts: %v", err)
	}
	last, err := b.LastSequence(within(t), schemas.StreamNode)
	if err != nil || last != 2 {
		t.Errorf("the stream ends with event %d, %v, want 2: the refused event was not sent later", last, err)
	}
}
