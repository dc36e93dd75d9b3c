package store_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/nats-io/nats.go"
)

// The log has messages with several samples, more than fit in a batch. Some messages contain
// duplicate samples of other messages, and one message cannot be decoded.
func TestStore_WritesMessagesWithSeveralSamples(t *testing.T) {
	t.Parallel()
	d, server := storetest.New(t), bustest.NewServer(t)
	b := server.Connect(t)
	s := newTestLog()
	const count = 250
	for n := range uint64(count) {
		s.sample("node-a", n)
	}
	var samples []*schemas.Sample
	for _, e := range s.events {
		samples = append(samples, e.(*schemas.Sample))
	}
	stop := run(t, store.New(b, d, slog.New(slog.DiscardHandler), nil,
		store.Options{MaxMessages: 64, MaxAge: 20 * time.Millisecond}))
	for from := 0; from < count; from += 30 {
		_, err := b.PublishSamples(t.Context(), samples[from:min(from+40, count)])
		must(t, err)
		_, err = b.Publish(t.Context(), samples[from])
		must(t, err)
	}
	last, err := b.PublishSamples(t.Context(), samples[:200])
	must(t, err)
	nc, err := nats.Connect(server.URL())
	must(t, err)
	defer nc.Close()
	broken := `[{"event_id":"node-a/boot/1","at":"2026-11-20T00:00:00Z","node":"node-a","boot_id":"boot","interval_seconds":2,"cores":1},{"event_id":"x"}]`
	must(t, nc.Publish(samples[0].Subject(), []byte(broken)))
	must(t, nc.Flush())
	var reason string
	await(t, "the dead letter", func() bool {
		must(t, b.Read(t.Context(), bus.FollowOptions{Stream: schemas.StreamDead}, func(r bus.Record) error {
			reason = r.Event.(*schemas.Dead).Reason
			return nil
		}))
		return reason != ""
	})
	if !strings.HasPrefix(reason, "sample 2: ") {
		t.Errorf("reason of the dead letter = %q, want one that names sample 2", reason)
	}
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: last})
	stop()
	for statement, want := range map[string]uint64{
		"SELECT count() AS n FROM node_sample":                  count,
		"SELECT count(DISTINCT event_id) AS n FROM node_sample": count,
		"SELECT sum(samples) AS n FROM node_minute":             count,
	} {
		if got := selectNumber(t, d, statement); got != want {
			t.Errorf("%s: %d, want %d", statement, got, want)
		}
	}
	if r, found := verify(t, b, d, store.VerifyOptions{}, 0); len(found) > 0 {
		t.Errorf("differences between the tables and the log: %v\n%+v", found, r)
	}
}
