package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// newBusAndClient returns a bus and a plain JetStream client of the same server, with which a test
// publishes invalid messages and deletes messages.
func newBusAndClient(t *testing.T) (*bus.Bus, jetstream.JetStream) {
	t.Helper()
	server := bustest.NewServer(t)
	b := server.Connect(t)
	nc, err := nats.Connect(server.URL())
	must(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	must(t, err)
	return b, js
}

// publishDuplicate publishes an event without a message ID, so that NATS stores a duplicate.
func publishDuplicate(t *testing.T, js jetstream.JetStream, e schemas.Event) {
	t.Helper()
	data, err := schemas.Marshal(e)
	must(t, err)
	_, err = js.Publish(t.Context(), e.Subject(), data)
	must(t, err)
}

// totals sums the hours of a table.
func totals(r *store.Report, table string) (log, have, older, expired uint64) {
	for _, s := range r.Streams {
		for _, u := range s.Tables {
			if u.Table != table {
				continue
			}
			expired += u.Expired
			for _, h := range u.Hours {
				log, have, older = log+h.LogEvents, have+h.TableEvents, older+h.Older
			}
		}
	}
	return log, have, older, expired
}

// Duplicates in the log, dropped messages and dead letters are not differences.
func TestVerify_AcceptsDuplicatesAndDroppedMessages(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	b, js := newBusAndClient(t)
	s := newTestLog()
	for n := range uint64(60) {
		s.sample("node-a", n+1)
	}
	s.started("alpha", 1)
	s.epoch("alpha", 1, 1)
	run(t, newStore(t, b, d))
	publish(t, b, s.events)
	_, err := js.Publish(t.Context(), schemas.NodeSubject("node-a", schemas.EventSample), []byte("garbage"))
	must(t, err)
	awaitSequences(t, d,
		map[string]uint64{schemas.StreamNode: 60, schemas.StreamJob: 2}) // duplicates follow in other batches
	for _, e := range s.events[10:30] {
		publishDuplicate(t, js, e)
	}
	late := *s.events[61].(*schemas.Epoch) // a duplicate in another hour, which the store drops
	late.At = late.At.Add(-5 * time.Hour)
	publishDuplicate(t, js, &late)
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: 81, schemas.StreamJob: 3})
	r := clean(t, b, d, "with copies")
	if log, have, older, _ := totals(r, "node_sample"); log != 60 || have != 60 || older != 0 {
		t.Errorf("%d events in the log, %d in the table, %d older, want 60, 60, 0", log, have, older)
	}

	// The log drops some events, and the originals of some duplicates.
	stream, err := js.Stream(t.Context(), schemas.StreamNode)
	must(t, err)
	must(t, stream.Purge(t.Context(), jetstream.WithPurgeSequence(21)))
	r = clean(t, b, d, "after the log has dropped events")
	if log, have, older, _ := totals(r, "node_sample"); log != 40 || have != 40 || older != 20 {
		t.Errorf("%d events in the log, %d in the table, %d older, want 40, 40, 20", log, have, older)
	}

	// Rows without an event in the log stay, but their duplicates are reported.
	for _, statement := range []string{
		"DETACH TABLE node_minute_view",
		"INSERT INTO node_sample SELECT * FROM node_sample WHERE number < 15 SETTINGS insert_deduplicate = 0",
		"ATTACH TABLE node_minute_view",
	} {
		must(t, d.Exec(t.Context(), statement))
	}
	want := found{Double: 14}
	if _, got := verify(t, b, d, store.VerifyOptions{}, 0); got["node_sample"] != want {
		t.Errorf("found %+v, want %+v", got["node_sample"], want)
	}
	must(t, d.Exec(t.Context(), "OPTIMIZE TABLE node_sample FINAL DEDUPLICATE"))
	must(t, stream.Purge(t.Context()))
	r = clean(t, b, d, "after the log has dropped everything")
	if log, have, older, _ := totals(r, "node_sample"); log != 0 || have != 0 || older != 60 {
		t.Errorf("%d events in the log, %d in the table, %d older, want 0, 0, 60", log, have, older)
	}
}

// Samples beyond the TTL of the table, or with a timestamp that is a century off, are not
// differences, whether or not the table still has them.
func TestVerify_LeavesOutExpiredHours(t *testing.T) {
	t.Parallel()
	d, b := storetest.New(t), bustest.New(t)
	s := newTestLog()
	for n, at := range []time.Time{
		time.Now().AddDate(0, 0, -120),
		time.Date(2150, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Now().Add(-50 * time.Hour),
		time.Now(),
	} {
		s.at = at.UTC()
		s.sample("node-a", uint64(n+1))
		s.started(fmt.Sprintf("job-%d", n), 1) // its table has no TTL
	}
	fill(t, b, d, publish(t, b, s.events))
	r := clean(t, b, d, "before rows are dropped")
	if log, _, _, expired := totals(r, "node_sample"); log != 2 || expired != 3 {
		t.Errorf("%d samples compared and %d skipped, want 2 and 3", log, expired)
	}
	if log, have, _, _ := totals(r, "job_started"); log != 5 || have != 5 {
		t.Errorf("%d starts in the log and %d in the table, want 5 and 5", log, have)
	}
	must(t, d.Exec(t.Context(), "OPTIMIZE TABLE node_sample FINAL"))
	clean(t, b, d, "after the table has dropped expired rows")
}

func TestVerify_RejectsTheTablesOfAnotherLog(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		statement string
		want      error
	}{
		{"another log", "INSERT INTO log_position VALUES ('NODE', 1000, now64(9))", store.ErrOtherLog},
		{
			"a newer program",
			"INSERT INTO schema_migrations VALUES (999, '0999_later.sql', now64(9))",
			store.ErrNewer,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, b := storetest.New(t), bustest.New(t)
			must(t, d.Exec(t.Context(), test.statement))
			_, err := store.Verify(t.Context(), b, d, store.VerifyOptions{})
			if !errors.Is(err, test.want) {
				t.Errorf("Verify = %v, want %v", err, test.want)
			}
		})
	}
	t.Run("not migrated yet", func(t *testing.T) {
		d := storetest.Open(t, storetest.Empty(t))
		if _, err := store.Verify(t.Context(), bustest.New(t), d, store.VerifyOptions{}); err == nil {
			t.Error("Verify of an empty database succeeded, want an error")
		}
	})
}

// New tables and tables from a backup lack rows that a store has written to the old tables.
func TestVerify_FindsRowsThatOnlyOldTablesHad(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	last := fillLog(t, b)
	before := storetest.New(t)
	fill(t, b, before, last)
	d := storetest.New(t)
	must(t, d.Migrate(t.Context()))
	r, _ := verify(t, b, d, store.VerifyOptions{}, 0)
	if r.Different == 0 {
		t.Error("no hour differs, want all")
	}
	if log, have, _, _ := totals(r, "node_sample"); log != 400 || have != 0 {
		t.Errorf("%d samples in the log and %d in the table, want 400 and none", log, have)
	}
	rebuild(t, b, d)
	clean(t, b, d, "after a rebuild")
	compare(t, b, d)
}

// oldSamples publishes samples: 20 of now and 10 each of 40 and 100 days ago.
func oldSamples(t *testing.T) *testLog {
	t.Helper()
	s := newTestLog()
	for i, days := range []int{0, 0, 40, 100} {
		for n := range uint64(10) {
			s.sample("node-a", uint64(i)*10+n+1)
			sample := s.events[len(s.events)-1].(*schemas.Sample)
			sample.At = time.Now().UTC().Truncate(time.Second).Add(
				time.Duration(n)*time.Second - time.Hour - time.Duration(days)*24*time.Hour)
		}
	}
	return s
}

// Verify follows a TTL that was changed, and does not miss the rows that ClickHouse has deleted.
func TestVerify_FollowsAChangedRetention(t *testing.T) {
	t.Parallel()
	d, b := storetest.New(t), bustest.New(t)
	must(t, d.Migrate(t.Context()))
	const change = "ALTER TABLE node_sample MODIFY TTL toDateTime(at) + INTERVAL "
	// The default of 90 days would delete the oldest samples at once.
	must(t, d.Exec(t.Context(), change+"400 DAY"))
	run(t, newStore(t, b, d))
	s := oldSamples(t)
	publish(t, b, s.events)
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: 40})
	clean(t, b, d, "with a longer retention")

	must(t, d.Exec(t.Context(), change+"30 DAY"))
	await(t, "the end of the old rows", func() bool {
		return selectNumber(t, d, "SELECT count() AS n FROM node_sample") == 20
	})
	_, _, _, expired := totals(clean(t, b, d, "after rows were deleted"), "node_sample")
	if expired != 20 {
		t.Errorf("%d events are beyond the retention, want 20", expired)
	}
}
