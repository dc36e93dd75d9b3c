package store

import (
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
)

func TestClockSkew(t *testing.T) {
	var c clockSkew
	now := time.Unix(1_790_000_000, 0)
	sample := func(node string, delays ...time.Duration) {
		var records []bus.Record
		for _, d := range delays {
			records = append(records,
				bus.Record{Event: &schemas.Sample{Node: node, Stamp: schemas.Stamp{At: now.Add(-d)}}, StoredAt: now})
		}
		c.add(append(records, bus.Record{Event: &schemas.Epoch{}, StoredAt: now}), now)
	}
	expect := func(when string, ahead, behind time.Duration) {
		t.Helper()
		if a, b := c.skew(now); a != ahead || b != behind {
			t.Errorf("%s: skew() = %s, %s, want %s, %s", when, a, b, ahead, behind)
		}
	}
	expect("before the first sample", 0, 0)
	sample("right", 20*time.Millisecond, 10*time.Millisecond)
	sample("fast", -90*time.Second, -30*time.Second)
	sample("slow", 40*time.Second)
	sample("spool", time.Hour, time.Millisecond) // a replayed sample and a current one
	now = now.Add(clockWindow)
	expect("two wrong clocks", 90*time.Second, 40*time.Second)
	sample("right", 5*time.Millisecond)
	sample("fast", time.Millisecond)
	expect("until the end of the window", 90*time.Second, 40*time.Second)
	now = now.Add(clockWindow)
	expect("set right", 0, 5*time.Millisecond)
	now = now.Add(clockWindow)
	expect("without current samples", 0, 0)
}
