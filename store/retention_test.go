package store_test

import (
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store/storetest"
)

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
