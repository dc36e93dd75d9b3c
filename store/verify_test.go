package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// found contains the sums over the hours of one table or roll-up of a report.
type found struct {
	Missing, Double, Extra, Wrong uint64
}

// verify returns the differences by table.
func verify(
	t testing.TB, b *bus.Bus, d *store.Database, o store.VerifyOptions, window uint64,
) (*store.Report, map[string]found) {
	t.Helper()
	o.SetWindow(window)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := store.Verify(ctx, b, d, o)
	must(t, err)
	all := make(map[string]found)
	note := func(name string, missing, double, extra, wrong uint64) {
		f := all[name]
		f.Missing += missing
		f.Double += double
		f.Extra += extra
		f.Wrong += wrong
		all[name] = f
	}
	for _, s := range r.Streams {
		for _, table := range s.Tables {
			for _, h := range table.Hours {
				if h.Differs() {
					note(table.Table, h.Missing, h.Double, h.Extra, 0)
				} else if h.LogEvents != h.TableEvents {
					t.Errorf("%s at %s: the counts differ without a reported difference: %+v",
						table.Table, h.At, h)
				}
			}
		}
		for _, u := range s.RollUps {
			for _, h := range u.Hours {
				note(u.RollUp, h.Missing, 0, h.Extra, h.Wrong)
			}
		}
	}
	return r, all
}

func clean(t testing.TB, b *bus.Bus, d *store.Database, when string) *store.Report {
	t.Helper()
	r, all := verify(t, b, d, store.VerifyOptions{}, 0)
	if len(all) > 0 {
		t.Errorf("%s: differences %+v, want none", when, all)
	}
	return r
}

// storeThreeHours publishes the events of two jobs and samples of three hours, some of them late,
// and runs a store until the tables have them.
func storeThreeHours(t testing.TB, b *bus.Bus, d *store.Database) {
	t.Helper()
	s := newTestLog()
	s.job("alpha", time.Minute, schemas.EventFinished)
	s.job("beta", time.Second, schemas.EventFailed)
	s.regressors()
	now := s.at.Truncate(time.Hour)
	for n := range uint64(300) { // three per minute
		s.at = now.Add(-2 * time.Hour).Add(time.Duration(n) * 20 * time.Second)
		s.sample("node-a", n+1)
		s.sample("node-b", n+1)
	}
	for n := range uint64(40) { // from a spool, of the day before
		s.at = now.Add(-24 * time.Hour).Add(time.Duration(n) * time.Second)
		s.sample("node-c", n+1)
	}
	fill(t, b, d, publish(t, b, s.events))
}

// The damages are found, and a rebuild of the damaged streams removes them.
func TestVerify_FindsDifferencesThatARebuildRemoves(t *testing.T) {
	t.Parallel()
	const undone = " SETTINGS insert_deduplicate = 0"
	damage := []string{
		"DELETE FROM node_sample WHERE number BETWEEN 100 AND 149 AND node = 'node-a'",
		"DELETE FROM job_epoch WHERE job_id = 'beta'",
		"TRUNCATE TABLE job_advice",
		"INSERT INTO job_ended SELECT * FROM job_ended" + undone,

		// Up to four copies of rows, which the roll-up has not counted, and a deleted one.
		"DETACH TABLE node_minute_view",
		"INSERT INTO node_sample SELECT * FROM node_sample WHERE node = 'node-b' AND number < 11" + undone,
		"INSERT INTO node_sample SELECT * FROM node_sample WHERE node = 'node-b' AND number < 6" + undone,
		"DELETE FROM node_sample WHERE node = 'node-b' AND number = 4",
		"ATTACH TABLE node_minute_view",

		// A wrong roll-up, and a row without an event in the log.
		"DELETE FROM node_minute WHERE node = 'node-c'",
		"INSERT INTO node_minute (node, minute, samples) SELECT DISTINCT node, minute, 1 FROM node_minute " +
			"WHERE node = 'node-b' ORDER BY minute DESC LIMIT 5" + undone,
		"INSERT INTO node_minute (node, minute, samples) SELECT 'no''body', toStartOfMinute(now()), 1",
		"INSERT INTO job_started (event_id, at, sequence, job_id) VALUES ('forged/1/started', now64(9), 1, 'forged')",
	}
	want := map[string]found{
		"node_sample": {Missing: 51, Double: 17},
		"job_epoch":   {Missing: 3},
		"job_advice":  {Missing: 6},
		"job_ended":   {Double: 2},
		"job_started": {Extra: 1},
		"node_minute": {Missing: 1, Wrong: 10, Extra: 17},
		"node_hour":   {Wrong: 3, Extra: 1},
		"job_run":     {Extra: 1},
	}
	for _, window := range []uint64{200, 0} { // a window of 200 rows divides hours into slices
		d, b := storetest.New(t), bustest.New(t)
		storeThreeHours(t, b, d)
		for _, statement := range damage {
			must(t, d.Exec(t.Context(), statement))
		}
		r, got := verify(t, b, d, store.VerifyOptions{}, window)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("found with windows of %d rows (-want +got):\n%s", window, diff)
		}
		rebuild(t, b, d, r.Damaged...)
		clean(t, b, d, "after a rebuild")
	}
}

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
		tick := time.NewTicker(50 * time.Millisecond)
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
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: 200, schemas.StreamJob: 50})
	for range 2 {
		if _, got := verify(t, b, d, store.VerifyOptions{}, 0); len(got) > 0 {
			t.Errorf("differences during a running store %+v, want none", got)
		}
	}
	must(t, d.Exec(t.Context(), "DELETE FROM node_sample WHERE sequence < 200 AND number % 2 = 0"))
	if _, got := verify(t, b, d, store.VerifyOptions{}, 0); got["node_sample"].Missing < 40 {
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
