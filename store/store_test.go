package store_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
)

// patience bounds the waits of a test. It only guards against hanging.
const patience = 5 * time.Minute

func newStore(t testing.TB, b *bus.Bus, d *store.Database) *store.Store {
	t.Helper()
	return store.New(b, d, slog.New(slog.DiscardHandler), nil, store.Options{MaxAge: 20 * time.Millisecond})
}

// selectNumber returns the number that a query selects.
func selectNumber(t testing.TB, d *store.Database, statement string, args ...any) uint64 {
	t.Helper()
	all := values[uint64](t, d, statement, args...)
	if len(all) != 1 {
		t.Fatalf("%s returns %d rows, want 1", statement, len(all))
	}
	return all[0]
}

func wantNumber(t testing.TB, d *store.Database, want uint64, statement string) {
	t.Helper()
	if got := selectNumber(t, d, statement); got != want {
		t.Errorf("%s: %d, want %d", statement, got, want)
	}
}

// values returns the rows of a query of one column.
func values[T any](t testing.TB, d *store.Database, statement string, args ...any) []T {
	t.Helper()
	all, err := store.Values[T](t.Context(), d, statement, args...)
	must(t, err)
	return all
}

// publish publishes events and returns the last sequence of each stream.
func publish(t testing.TB, b *bus.Bus, events []schemas.Event) map[string]uint64 {
	t.Helper()
	last := make(map[string]uint64)
	for _, e := range events {
		sequence, err := b.Publish(t.Context(), e)
		must(t, err)
		e.(interface{ SetSequence(uint64) }).SetSequence(sequence)
		last[stream(e)] = max(last[stream(e)], sequence)
	}
	return last
}

// run runs a store until the returned function is called, or the test ends.
func run(t testing.TB, s interface{ Run(context.Context) error }) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// awaitSequences waits until the tables hold the streams up to these sequences.
func awaitSequences(t testing.TB, d *store.Database, want map[string]uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond) // each look is a query
	defer tick.Stop()
	for name, sequence := range want {
		for {
			have, err := d.Position(ctx, name)
			if err == nil && have >= sequence {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatalf("the tables hold %s up to %d (%v), want %d", name, have, err, sequence)
			}
		}
	}
}

// fill runs a store until the tables hold the streams up to these sequences.
func fill(t testing.TB, b *bus.Bus, d *store.Database, last map[string]uint64) {
	t.Helper()
	stop := run(t, newStore(t, b, d))
	awaitSequences(t, d, last)
	stop()
}

func TestStore_FillsEveryTable(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	b := bustest.New(t)
	s := newTestLog()
	s.job("alpha", time.Minute, schemas.EventFinished)
	s.job("beta", time.Second, schemas.EventFailed)
	for n := range uint64(130) {
		s.sample("node-a", n+1)
	}
	s.regressors()
	run(t, newStore(t, b, d))
	awaitSequences(t, d, publish(t, b, s.events))
	want := map[string]uint64{
		"job_submitted":      2,
		"job_started":        2,
		"job_epoch":          6,
		"job_advice":         6,
		"job_risk":           2,
		"job_moved":          4,
		"job_ended":          2,
		"node_sample":        130,
		"regressor_promoted": 1,
		"regressor_rejected": 1,
		"regressor_drift":    1,
	}
	for _, table := range schemas.Tables() {
		wantNumber(t, d, want[table.Name], "SELECT count() AS n FROM "+table.Name)
	}
}

// The views show corrections, and count a correction as one drift of its regressor.
func TestStore_WritesCorrections(t *testing.T) {
	t.Parallel()
	d, b := storetest.New(t), bustest.New(t)
	s := newTestLog()
	s.regressors() // includes a correction of a node type
	s.corrections()
	run(t, newStore(t, b, d))
	awaitSequences(t, d, publish(t, b, s.events))
	scope := "drifted = 'resnet on V100, batch size from 512'"
	for query, want := range map[string]uint64{
		"SELECT count() AS n FROM drifts WHERE state = 'active' AND ratio_low = 1.375 AND " + scope:   1,
		"SELECT count() AS n FROM drifts WHERE state = 'replaced' AND ratio_low IS NULL AND " + scope: 1,
		"SELECT count() AS n FROM drifts WHERE state = 'active' AND drifted = 'x, 2 cores'":           1,
		"SELECT count() AS n FROM regressor_life WHERE kind = 'drift_end' AND " + scope:               1,
		"SELECT sum(drifts) AS n FROM regressors WHERE model_digest = 'abc'":                          2,
	} {
		wantNumber(t, d, want, query)
	}
}

// The test writes a batch again after each possible interruption: before any table, after some
// tables, before the roll-up, and after all.
func TestStore_RepeatsABatch(t *testing.T) {
	t.Parallel()
	s := newTestLog()
	s.job("alpha", time.Minute, schemas.EventFinished)
	jobs := s.events
	s.events = nil
	for n := range uint64(90) {
		s.sample("node-a", n+1)
	}
	samples := s.events
	type state struct{ Epochs, Ends, Samples, RolledUp uint64 }
	tests := []struct {
		name  string
		leave func(t *testing.T, d *store.Database, w *store.Store)
	}{
		{"not written", func(*testing.T, *store.Database, *store.Store) {}},
		{"written completely", func(t *testing.T, d *store.Database, w *store.Store) {
			write(t, w, batch(schemas.StreamJob, 1, jobs...))
			write(t, w, batch(schemas.StreamNode, 1, samples...))
		}},
		{"written to some tables", func(t *testing.T, d *store.Database, w *store.Store) {
			must(t, d.Exec(t.Context(), "RENAME TABLE job_epoch TO hidden"))
			if err := w.Write(t.Context(), batch(schemas.StreamJob, 1, jobs...)); err == nil {
				t.Fatal("writing a batch to a missing table succeeded, want an error")
			}
			must(t, d.Exec(t.Context(), "RENAME TABLE hidden TO job_epoch"))
			if n := selectNumber(t, d, "SELECT count() AS n FROM job_started"); n != 1 {
				t.Fatalf("job_started has %d rows, want the one written before the failure", n)
			}
		}},
		{"written without the roll-up", func(t *testing.T, d *store.Database, w *store.Store) {
			must(t, d.Exec(t.Context(), "DETACH TABLE node_minute_view"))
			write(t, w, batch(schemas.StreamNode, 1, samples...))
			must(t, d.Exec(t.Context(), "ATTACH TABLE node_minute_view"))
			if n := selectNumber(t, d, "SELECT sum(samples) AS n FROM node_minute"); n != 0 {
				t.Fatalf("node_minute counts %d samples, want none yet", n)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := storetest.New(t)
			w := newStore(t, nil, d)
			test.leave(t, d, w)
			for range 2 {
				write(t, w, batch(schemas.StreamJob, 1, jobs...))
				write(t, w, batch(schemas.StreamNode, 1, samples...))
			}
			got := state{
				selectNumber(t, d, "SELECT count() AS n FROM job_epoch"),
				selectNumber(t, d, "SELECT count() AS n FROM job_ended"),
				selectNumber(t, d, "SELECT count() AS n FROM node_sample"),
				selectNumber(t, d, "SELECT sum(samples) AS n FROM node_minute"),
			}
			if diff := cmp.Diff(state{3, 1, 90, 90}, got); diff != "" {
				t.Errorf("rows after two repetitions (-want +got):\n%s", diff)
			}
		})
	}
}

// The log has duplicates at later sequences, as it may after the duplicate window.
func TestStore_DropsDuplicates(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	w := newStore(t, nil, d)
	told := func() []schemas.Event {
		s := newTestLog()
		s.started("alpha", 1)
		s.epoch("alpha", 1, 1)
		s.epoch("alpha", 1, 2)
		return s.events
	}
	s := newTestLog()
	s.epoch("alpha", 1, 3)
	first, second := batch(schemas.StreamJob, 1, told()...), batch(
		schemas.StreamJob,
		4,
		append(append(told(), told()...), s.events...)...)
	write(t, w, first)
	for range 2 { // the second write repeats the batch
		write(t, w, second)
		if got := selectNumber(t, d, "SELECT count() AS n FROM job_epoch"); got != 3 {
			t.Fatalf("job_epoch has %d rows, want 3", got)
		}
	}
	wantNumber(t, d, 3, "SELECT max(sequence) AS n FROM job_epoch WHERE epoch < 3")
	sample := func() []schemas.Event { s := newTestLog(); s.sample("node-a", 7); return s.events }
	original := sample()
	write(t, w, batch(schemas.StreamNode, 1, original...))
	repeated := batch(schemas.StreamNode, 500, sample()[0])
	repeated.Records[0].Event.(*schemas.Sample).At = original[0].(*schemas.Sample).At
	write(t, w, repeated)
	wantNumber(t, d, 1, "SELECT sum(samples) AS n FROM node_minute")
}

// The batches of a new log have the same ranges as batches of the old log in the same database.
func TestStore_KeepsTheRowsOfAnOldLog(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	w := newStore(t, nil, d)
	s := newTestLog()
	s.sample("node-a", 1)
	s.sample("node-a", 2)
	write(t, w, batch(schemas.StreamNode, 1, s.events[0]))
	again := batch(schemas.StreamNode, 1, s.events[1])
	again.Records[0].StoredAt = again.Records[0].StoredAt.Add(time.Hour)
	write(t, w, again)
	wantNumber(t, d, 2, "SELECT count() AS n FROM node_sample")
}

// Nodes with wrong clocks do not stop the store.
func TestStore_WritesSamplesOfManyMonths(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	s := newTestLog()
	for month := range 130 {
		s.at = time.Now().UTC().AddDate(0, month, 0)
		s.sample("node-a", uint64(month)+1)
	}
	write(t, newStore(t, nil, d), batch(schemas.StreamNode, 1, s.events...))
	wantNumber(t, d, 130, "SELECT count() AS n FROM node_sample")
}

func write(t testing.TB, s *store.Store, b bus.Batch) {
	t.Helper()
	must(t, s.Write(t.Context(), b))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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
		wantNumber(t, d, want, statement)
	}
	if r, found := verify(t, b, d, store.VerifyOptions{}, 0); len(found) > 0 {
		t.Errorf("differences between the tables and the log: %v\n%+v", found, r)
	}
}
