package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

func retentionOf(t *testing.T, all []store.Retention, table string) store.Retention {
	t.Helper()
	for _, r := range all {
		if r.Table == table {
			return r
		}
	}
	t.Fatalf("no retention of %s in %+v", table, all)
	return store.Retention{}
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

// Rows are deleted only on request, longer retentions keep rows, and verify does not miss deleted ones.
func TestRetention_DeletesRowsOnlyOnRequest(t *testing.T) {
	t.Parallel()
	d, b := storetest.New(t), bustest.New(t)
	run(t, newStore(t, b, d))
	databases := []*store.Database{d}
	s := oldSamples(t)
	await(t, "migrations", func() bool {
		all, err := d.Retentions(t.Context(), nil)
		return err == nil && len(all) > 10
	})
	// The default of 90 days must not delete the oldest samples at once.
	_, err := store.ApplyRetentions(t.Context(), databases, map[string]int{"node_sample": 400}, false)
	must(t, err)
	publish(t, b, s.events)
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: 40})

	all, err := store.ReadRetentions(t.Context(), databases, map[string]int{"node_sample": 30})
	must(t, err)
	r := retentionOf(t, all, "node_sample")
	if r.Period != "400 days" || r.Wanted != "30 days" || r.Rows != 40 || r.Older != 20 || r.Months < 2 {
		t.Errorf("retention = %+v, want 400 days and 20 of 40 rows in two months older than 30 days", r)
	}
	if hours := retentionOf(t, all, "node_hour"); hours.Period != "5 years" || hours.Older != 0 {
		t.Errorf("retention = %+v, want 5 years and no older row", hours)
	}

	_, err = store.ApplyRetentions(t.Context(), databases, map[string]int{"node_sample": 30}, false)
	if !errors.Is(err, store.ErrDeletesRows) {
		t.Fatalf("without permission to delete: error %v, want %v", err, store.ErrDeletesRows)
	}
	all, err = store.ReadRetentions(t.Context(), databases, nil)
	must(t, err)
	if r := retentionOf(t, all, "node_sample"); r.Period != "400 days" || r.Rows != 40 {
		t.Errorf("retention after the refusal = %+v, want 400 days and 40 rows", r)
	}

	all, err = store.ApplyRetentions(t.Context(), databases, map[string]int{"node_sample": 30}, true)
	must(t, err)
	if r := retentionOf(t, all, "node_sample"); !r.Changed {
		t.Errorf("retention = %+v, want it changed", r)
	}
	await(t, "the end of the old rows", func() bool {
		return selectNumber(t, d, "SELECT count() AS n FROM node_sample") == 20
	})
	clean(t, b, d, "after rows were deleted")

	for _, want := range []string{"forever", "forever"} { // the second change has nothing to remove
		all, err = store.ApplyRetentions(t.Context(), databases, map[string]int{"node_sample": 0}, false)
		must(t, err)
		if r := retentionOf(t, all, "node_sample"); r.Wanted != want || r.Older != 0 {
			t.Errorf("retention = %+v, want %s", r, want)
		}
	}
	var text strings.Builder
	must(t, store.WriteRetentions(&text, all))
	if !strings.Contains(text.String(), "node_sample") || !strings.Contains(text.String(), "forever") {
		t.Errorf("text:\n%s", text.String())
	}
}

// On a cluster each shard has the same retention.
func TestRetention_OfAllShards(t *testing.T) {
	t.Parallel()
	servers, b := cluster.Start(t, 1, 1), bustest.New(t)
	c := openCluster(t, b, servers)
	must(t, c.Migrate(t.Context()))
	_, err := store.ApplyRetentions(t.Context(), c.Databases(), map[string]int{"node_sample": 10}, false)
	must(t, err)
	all, err := store.ReadRetentions(t.Context(), c.Databases(), nil)
	must(t, err)
	var got []string
	for _, r := range all {
		if r.Table == "node_sample" {
			got = append(got, fmt.Sprint(r.Shard, " ", r.Period))
		}
	}
	if want := "1 10 days, 2 10 days"; strings.Join(got, ", ") != want {
		t.Errorf("retentions %q, want %q", got, want)
	}
	readers := storetest.Open(t, servers.URL(0, "courier"))
	if _, err := readers.Retentions(t.Context(), nil); !errors.Is(err, store.ErrTablesDiffer) {
		t.Errorf("retentions of the distributed tables: error %v, want %v", err, store.ErrTablesDiffer)
	}
}

func TestParseRetentions_RefusesWhatCannotBe(t *testing.T) {
	for _, c := range []struct{ table, text, want string }{
		{"node_sample", "30d", ""},
		{"job_advice", "forever", ""},
		{"node_sample", "0d", "want 1d to"},
		{"node_sample", "30", "want 1d to"},
		{"node_sample", "2h", "want 1d to"},
		{"node_sample", "99999d", "want 1d to"},
		{"job_epoch", "30d", "cannot be set"},
		{"x; DROP TABLE y", "30d", "cannot be set"},
	} {
		_, err := store.ParseRetentions(map[string]string{c.table: c.text})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: error %v, want %q", c.table, c.text, err, c.want)
		}
	}
}
