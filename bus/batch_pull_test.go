package bus_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// The server ends a pull request after a number of messages, of bytes, or after a timeout. In each
// case the batches continue without a restart or a missing message.
func TestConsumeBatch_ContinuesAfterTheEndOfARequest(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	server.Connect(t) // prepares
	again := make(warnings, 10)
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL()}, slog.New(slog.NewTextHandler(again, nil)), nil)
	must(t, err)
	const small, large, each = 12_000, 600, 100 // four requests admit 10,000 small or 400 large messages
	publishSamples(t, server, 0, small, 1)
	publishSamples(t, server, small, large, each)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	next, events := uint64(1), 0
	err = b.ConsumeBatch(
		ctx,
		schemas.StoreDurables()[1],
		bus.BatchOptions{MaxMessages: 5500, MaxAge: 1500 * time.Millisecond},
		func(_ context.Context, batch bus.Batch) error {
			if batch.First != next {
				t.Errorf("first sequence of the batch: got %d, want %d", batch.First, next)
			}
			next, events = batch.Last+1, events+len(batch.Records)
			switch batch.Last {
			case small + large: // by now requests have ended by their timeout
				publishSamples(t, server, small+large*each, 1, 1)
			case small + large + 1:
				cancel()
			}
			return nil
		},
	)
	if err != nil || next != small+large+2 || events != small+large*each+1 {
		t.Fatalf("ConsumeBatch = %v, up to %d with %d events, want %d with %d", err, next-1, events,
			small+large+1, small+large*each+1)
	}
	if len(again) > 0 {
		t.Errorf("got %d restarts of batches, want 0", len(again))
	}
}

// publishSamples publishes messages with the same number of samples, numbered consecutively.
func publishSamples(t *testing.T, server *bustest.Server, from, messages, each int) {
	t.Helper()
	js := outside(t, server.URL())
	for n := range messages {
		var all []*schemas.Sample
		for i := range each {
			number := uint64(from + n*each + i + 1)
			all = append(all, &schemas.Sample{
				Stamp: schemas.Stamp{
					EventID: schemas.SampleID("node-a", "boot", number),
					At:      time.Now().UTC(),
				},
				Node:            "node-a",
				BootID:          "boot",
				Number:          number,
				IntervalSeconds: 2,
				Cores:           2,
				CPUModel:        "a processor with a name",
			})
		}
		var message any = all
		if each == 1 {
			message = all[0]
		}
		data, err := schemas.Marshal(message)
		must(t, err)
		if _, err := js.PublishAsync(all[0].Subject(), data,
			jetstream.WithMsgID(fmt.Sprint(all[0].EventID, each)),
			jetstream.WithStallWait(patience)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("timeout: not all messages were acknowledged")
	}
}
