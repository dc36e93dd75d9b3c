package store_test

import (
	"log/slog"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/prometheus/client_golang/prometheus"
)

// gather returns the metric values of a registry by name and label values.
func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	all := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += "/" + l.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() +
				float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestMetrics_CountABatch(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	address := storetest.Address(t)
	d, err := store.Open(t.Context(), store.Options{URL: address}, slog.New(slog.DiscardHandler), reg)
	must(t, err)
	defer d.Close()
	must(t, d.Migrate(t.Context()))
	w := store.New(nil, d, slog.New(slog.DiscardHandler), reg, store.Options{})
	s := newTestLog()
	s.epoch("alpha", 1, 1)
	s.epoch("alpha", 1, 1)
	s.epoch("alpha", 1, 2)
	b := batch(schemas.StreamJob, 1, s.events...)

	must(t, d.Exec(t.Context(), "RENAME TABLE job_epoch TO hidden"))
	if err := w.Write(t.Context(), b); err == nil {
		t.Fatal("writing a batch to a missing table succeeded, want an error")
	}
	got := gather(t, reg)
	if n := got["courier_store_batch_errors_total/JOB"]; n != 1 {
		t.Errorf("%v batch errors, want 1", n)
	}
	if n := got["courier_store_statement_errors_total/lookup"]; n != 1 {
		t.Errorf("%v statement errors, want 1", n)
	}

	must(t, d.Exec(t.Context(), "RENAME TABLE hidden TO job_epoch"))
	must(t, w.Write(t.Context(), b))
	got = gather(t, reg)
	for name, want := range map[string]float64{
		"courier_store_rows_total/job_epoch":             2,
		"courier_store_duplicate_events_total/job_epoch": 1,
		"courier_store_statement_seconds/insert":         1,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

// The metrics show the number of events missing in the tables and the age of the oldest one, even
// before they are in a batch.
func TestMetrics_ShowWhatIsBehind(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	d, b := storetest.New(t), bustest.New(t)
	s := newTestLog()
	for n := range uint64(100) {
		s.sample("ahead", n)
		_, err := b.Publish(t.Context(), s.events[n])
		must(t, err)
	}
	must(t, d.Exec(t.Context(), "RENAME TABLE node_sample TO hidden"))
	finish := run(t,
		store.New(b, d, slog.New(slog.DiscardHandler), reg, store.Options{MaxAge: 10 * time.Millisecond}))
	await(t, "the backlog", func() bool {
		return gather(t, reg)["courier_store_lag_messages/NODE"] == 100
	})
	old := gather(t, reg)["courier_store_lag_seconds/NODE"]
	await(t, "a higher age of the oldest event", func() bool {
		return gather(t, reg)["courier_store_lag_seconds/NODE"] > old+1
	})
	must(t, d.Exec(t.Context(), "RENAME TABLE hidden TO node_sample"))
	await(t, "no backlog", func() bool {
		got := gather(t, reg)
		return got["courier_store_lag_messages/NODE"] == 0 &&
			got["courier_store_lag_seconds/NODE"] == 0
	})
	finish()
}

// await waits for a condition.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond) // each look is a query
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}
