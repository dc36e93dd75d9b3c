package spool

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// Events that were spooled for one cluster wait for it, and are not published to another. After a month
// they are removed.
func TestReplay_PublishesToTheClusterOfTheEvents(t *testing.T) {
	first, second, dir := bustest.NewServer(t).Connect(t), bustest.NewServer(t).Connect(t), t.TempDir()
	cluster, err := first.ClusterID(t.Context())
	must(t, err)
	addresses := map[string]string{"a": "", "old": first.Address(), "any": "", "unknown": first.Address()}
	for job, address := range addresses {
		f := newRunFile(dir, address, job, 1)
		must(t, f.append(epochEvent(job, 1)))
		if job == "a" || job == "old" {
			must(t, f.belongTo(cluster))
		}
		must(t, f.append(endedEvent(job)))
		must(t, f.close())
	}
	long := time.Now().Add(-2 * maxForeignAge)
	must(t, os.Chtimes(filepath.Join(dir, clusterPrefix+cluster, "old-1"+fileSuffix), long, long))
	for _, step := range []struct {
		name string
		b    *bus.Bus
		want int
	}{
		{"the other cluster gets what belongs to none", second, 2},
		{"nothing is left for it", second, 0},
		{"the first one gets its own, and what waits for its address", first, 4},
	} {
		if n, err := Replay(t.Context(), dir, step.b, quiet); n != step.want || err != nil {
			t.Errorf("%s: Replay() = %d, %v, want %d", step.name, n, err, step.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("spool holds %v, want nothing", left)
	}
}

// A run that has begun on one cluster publishes nothing from its spool to another one.
func TestOutbox_LeavesEventsOfAnotherCluster(t *testing.T) {
	b, dir := bustest.New(t), t.TempDir()
	o := NewOutbox(dir, "", "a", 1, quiet)
	o.Add(epochEvent("a", 1))
	must(t, o.file.belongTo("gone"))
	o.spool(epochEvent("a", 0))
	connected := make(chan *bus.Bus, 1)
	connected <- b
	go o.Run(t.Context(), connected)
	if n := o.Finish(); n != 2 {
		t.Errorf("%d events wait, want 2", n)
	}
	if last, err := b.LastSequence(t.Context(), schemas.StreamJob); last != 0 || err != nil {
		t.Errorf("%d events in the log, %v; want none", last, err)
	}
}

// Samples on disk that were measured for another cluster are dropped, and counted.
func TestSampleQueue_BelongsToACluster(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct {
		cluster       string
		left, dropped int
	}{{"a", 1, 0}, {"a", 2, 0}, {"b", 0, 2}} {
		q := OpenSamples(dir, quiet)
		must(t, q.BelongTo(step.cluster))
		if step.cluster == "a" {
			q.Add(numbered(uint64(step.left)))
			q.spill()
		}
		if s := q.Stats(); s.Samples != step.left || s.Dropped != step.dropped {
			t.Errorf("cluster %s: %+v, want %d samples and %d dropped", step.cluster, s, step.left, step.dropped)
		}
		q.Close()
	}
}
