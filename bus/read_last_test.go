package bus_test

import (
	"context"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
)

func TestLastSamples_ReturnsTheNewestOfEachNode(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b := server.Connect(t)
	for _, node := range []string{"a", "b", "c"} {
		for number := range uint64(3) {
			s := &schemas.Sample{
				Node:            node,
				BootID:          "boot",
				Number:          number,
				IntervalSeconds: 2,
				Cores:           1,
			}
			s.EventID, s.At = schemas.SampleID(node, "boot", number), time.Now().UTC()
			if _, err := b.Publish(within(t), s); err != nil {
				t.Fatal(err)
			}
		}
	}

	got := b.LastSamples(within(t), "a", "b", "unknown")
	if len(got) != 2 {
		t.Errorf("samples of %d nodes, want those of a and b", len(got))
	}
	for node, r := range got {
		if s := r.Event.(*schemas.Sample); s.Node != node || s.Number != 2 || r.StoredAt.IsZero() {
			t.Errorf("sample of %s = %+v, stored at %s, want number 2", node, s, r.StoredAt)
		}
	}

	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if got := b.LastSamples(ctx, "a"); len(got) != 0 {
		t.Errorf("samples %v without a server, want none", got)
	}
}
