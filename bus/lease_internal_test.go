package bus

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"courier/bus/server"
	"courier/schemas"
)

// The context of the current batch outlives its parent, but not the lease.
func TestFinishContext_EndsWithTheLease(t *testing.T) {
	t.Parallel()
	s, err := server.New(server.Options{DataDir: t.TempDir(), Port: 0}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	b, err := Connect(t.Context(), Options{URL: s.URL()}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	if err := b.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}

	ctx, end := context.WithCancel(t.Context())
	err = b.Hold(ctx, "test", 300*time.Millisecond, func(working context.Context) error {
		finishing, cancel := finishContext(working)
		defer cancel()
		end()
		<-working.Done()
		kv, err := b.js.KeyValue(finishing, schemas.BucketLeases)
		if err != nil {
			return err
		}
		if _, err := kv.PutString(finishing, "test", `{"holder":"another","ttl_seconds":60}`); err != nil {
			return err
		}
		<-finishing.Done()
		return context.Cause(finishing)
	})
	if !errors.Is(err, errLeaseLost) {
		t.Errorf("cause of the end = %v, want %v", err, errLeaseLost)
	}
}

// A message on which the decoder panics becomes a decoding error.
func TestDecode_PanicIsAnError(t *testing.T) {
	t.Parallel()
	parse := func(string, []byte) ([]schemas.Event, error) { panic("of the test") }
	events, err := decodeWith(parse, schemas.JobSubject("a", schemas.EventEpoch), []byte("{}"))
	if err == nil || events != nil {
		t.Errorf("decodeWith = %v, %v, want an error", events, err)
	}
}
