package bus_test

import (
	"context"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestConsumeBatch_TakesWhatADeadProcessHadTaken: messages that a process took
// and died with before it recorded its intent come first, not never.
func TestConsumeBatch_TakesWhatADeadProcessHadTaken(t *testing.T) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	for n := range uint64(30) {
		s := &schemas.Sample{Stamp: schemas.Stamp{EventID: schemas.SampleID("node-a", "boot", n), At: time.Now()}, Node: "node-a", BootID: "boot", Number: n, IntervalSeconds: 2, Cores: 2}
		if _, err := b.Publish(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	d := schemas.StoreDurables()[1]
	nc, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	c, err := js.CreateOrUpdateConsumer(t.Context(), d.Stream, jetstream.ConsumerConfig{Durable: d.Name, AckPolicy: jetstream.AckAllPolicy, AckWait: d.AckWait, MaxAckPending: d.MaxAckPending})
	if err != nil {
		t.Fatal(err)
	}
	taken, err := c.Fetch(10, jetstream.FetchMaxWait(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for range taken.Messages() {
	}
	nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []uint64
	if err := b.ConsumeBatch(ctx, d, bus.BatchOptions{MaxAge: 100 * time.Millisecond}, func(_ context.Context, batch bus.Batch) error {
		for _, r := range batch.Records {
			got = append(got, r.Sequence)
		}
		if batch.Last == 30 {
			cancel()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i, sequence := range got {
		if sequence != uint64(i)+1 {
			t.Fatalf("batches hold %v, want 1 to 30", got)
		}
	}
	if len(got) != 30 {
		t.Fatalf("batches hold %d messages, want 30", len(got))
	}
}
