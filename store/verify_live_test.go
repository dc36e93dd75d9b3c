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

// The store writes during the repair, including late samples of the repaired minutes.
func TestVerify_WorksDuringARunningStore(t *testing.T) {
	t.Parallel()
	d, b := storetest.New(t), bustest.New(t)
	begin := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)
	// Each batch creates a part, and each DELETE rewrites every part: 200 ms limits their number.
	stop := run(t, store.New(b, d, slog.New(slog.DiscardHandler), nil, store.Options{MaxAge: 200 * time.Millisecond}))
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
	missing, mended, busy := uint64(0), false, uint64(0)
	for round := range 2 {
		must(
			t,
			d.Exec(
				t.Context(),
				fmt.Sprintf("DELETE FROM node_sample WHERE sequence < 500 AND number %% 2 = %d", round),
			),
		)
		must(t, d.Exec(t.Context(), fmt.Sprintf("DELETE FROM node_minute WHERE toMinute(minute) %% 2 = %d", round)))
		must(
			t,
			d.Exec(
				t.Context(),
				"INSERT INTO job_epoch SELECT * FROM job_epoch LIMIT 10 SETTINGS insert_deduplicate = 0",
			),
		)
		r, got := verify(t, b, d, store.VerifyOptions{Repair: true}, 0)
		busy += r.Busy()
		missing += got["node_sample"].Missing
		mended = mended || got["node_minute"].Missing+got["node_minute"].Wrong > 0
		for name, f := range got {
			_, rollUp := map[string]bool{"node_minute": true, "node_hour": true, "job_run": true}[name]
			if !f.Mended && !(rollUp && r.Busy() > 0) {
				t.Errorf("round %d: %s: %+v, want it repaired", round, name, f)
			}
		}
		if got["job_epoch"].Double != 10 {
			t.Errorf("round %d: %d duplicate epochs, want 10", round, got["job_epoch"].Double)
		}
	}
	close(done)
	late.Wait()
	want := halt()
	want[schemas.StreamNode] = max(want[schemas.StreamNode], last)
	awaitSequences(t, d, want)
	stop()
	if missing != 499 || !mended {
		t.Errorf("missing samples = %d, want 499; repaired minutes: %v, want true", missing, mended)
	}
	if busy > 0 { // minutes that a slow store wrote during each comparison
		t.Logf("%d rows were skipped as busy", busy)
		verify(t, b, d, store.VerifyOptions{Repair: true}, 0)
	}
	clean(t, b, d, "at the end")
	compare(t, b, d)
}
