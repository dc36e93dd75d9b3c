package store_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
)

// The store writes during verifications and a rebuild, also late samples of old minutes.
func TestVerify_WorksDuringARunningStore(t *testing.T) {
	t.Parallel()
	d, b := storetest.New(t), bustest.New(t)
	begin := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)
	o := store.Options{MaxAge: 200 * time.Millisecond}
	stop := run(t, store.New(b, d, slog.New(slog.DiscardHandler), nil, o))
	var late sync.WaitGroup
	done := make(chan struct{})
	last := uint64(0)
	const firstLate = 1 << 40 // beyond the numbers of publishAll for the same nodes
	late.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := uint64(1); ; n++ {
			s := newTestLog()
			s.at = begin.Add(time.Duration(n%100) * 20 * time.Second)
			s.sample(fmt.Sprintf("node-%d", n%3), firstLate+n)
			sequence, err := b.Publish(t.Context(), s.events[0])
			if err != nil {
				t.Error(err)
				return
			}
			last = sequence
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	halt := publishAll(t, b)
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: 500, schemas.StreamJob: 50})
	for range 2 {
		if _, got := verify(t, b, d, store.VerifyOptions{}, 0); len(got) > 0 {
			t.Errorf("differences during a running store %+v, want none", got)
		}
	}
	must(t, d.Exec(t.Context(), "DELETE FROM node_sample WHERE sequence < 500 AND number % 2 = 0"))
	if _, got := verify(t, b, d, store.VerifyOptions{}, 0); got["node_sample"].Missing < 100 {
		t.Errorf("differences %+v, want the deleted samples", got)
	}
	rebuild(t, b, d, schemas.StreamNode)
	close(done)
	late.Wait()
	want := halt()
	want[schemas.StreamNode] = max(want[schemas.StreamNode], last)
	awaitSequences(t, d, want)
	stop()
	clean(t, b, d, "at the end")
	compare(t, b, d)
}
