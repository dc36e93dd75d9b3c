package store_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	gocmp "github.com/google/go-cmp/cmp"
)

// minutesOf selects the rows of the roll-up to minutes.
const minutesOf = "SELECT node, minute, samples, cpu_ratio, cpu_ratio_max, io_wait_ratio, load_average FROM " +
	"node_load ORDER BY node, minute"

// rolledUp maps the roll-ups to hours and of runs to two queries: one of the roll-up, and one that
// computes the same rows from the table. The sums of the test values are exact in any order.
var rolledUp = map[string][2]string{
	"node_hour": {
		"SELECT node, hour, samples, cpu_ratio, cpu_ratio_max, io_wait_ratio, load_average, cores FROM " +
			"node_load_hourly",
		"SELECT s.node, toStartOfHour(s.at), count(), avg(s.cpu_ratio), max(s.cpu_ratio), " +
			"avg(s.io_wait_ratio), avg(s.load_average), nullIf(max(s.cores), 0) FROM node_sample AS s GROUP BY ALL",
	},
	"job_run": {
		"SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), sum(r.epochs), max(r.epoch_max), " +
			"argMaxMerge(r.batch_size), argMaxMerge(r.accuracy), sum(r.epoch_seconds), " +
			"sum(r.concurrent_job_seconds), sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds) FROM " +
			"job_run AS r GROUP BY r.job_id, r.run",
		"SELECT job_id, run, max(sequence), max(at), count(), max(epoch), argMax(batch_size, sequence), " +
			"argMax(accuracy, sequence), sum(duration_seconds), ifNull(sum(duration_seconds * " +
			"concurrent_jobs), 0), sumIf(duration_seconds, concurrent_jobs IS NOT NULL), " +
			"sum(job_cpu_seconds) FROM job_epoch GROUP BY job_id, run",
	},
}

func compareRollUps(t *testing.T, d *store.Database) {
	t.Helper()
	for name, q := range rolledUp {
		missing := selectNumber(t, d, "SELECT count() AS n FROM (("+q[1]+") EXCEPT ("+q[0]+"))")
		wrong := selectNumber(t, d, "SELECT count() AS n FROM (("+q[0]+") EXCEPT ("+q[1]+"))")
		if missing > 0 || wrong > 0 {
			t.Errorf("%s differs from its table: %d rows are missing, %d wrong", name, missing, wrong)
		}
	}
}

// A repeated batch repairs its rows in the roll-ups to hours and of runs if they are lost or
// counted twice. The rows of other batches stay.
func TestStore_RebuildsEachRollUp(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	s := newTestLog()
	for i := range uint64(90) {
		s.sample("node-a", i)
		s.sample("node-b", i)
	}
	samples := s.events
	s.events = nil
	s.started("a", 1)
	for n := range uint32(12) {
		s.epoch("a", 1, n+1)
		s.epoch("b", 1+n/6, n+1)
	}
	var all []bus.Batch
	for name, events := range map[string][]schemas.Event{
		schemas.StreamNode: samples,
		schemas.StreamJob:  s.events,
	} {
		half := len(events) / 2
		all = append(all, batch(name, 1, events[:half]...), batch(name, uint64(half)+1, events[half:]...))
	}
	w := newStore(t, nil, d)
	for _, b := range all {
		write(t, w, b)
	}
	compareRollUps(t, d)
	damages := map[string]func(table string){
		"lost": func(table string) { loseParts(t, d, table) },
		"counted twice": func(table string) {
			must(t,
				d.Exec(t.Context(),
					"INSERT INTO "+table+" SETTINGS insert_deduplicate = 0 SELECT * FROM "+table))
		},
	}
	for name, damage := range damages {
		for _, table := range []string{"node_minute", "node_hour", "job_run"} {
			damage(table)
			for _, b := range all {
				b.Redelivered = true
				write(t, w, b)
			}
			t.Log(table, name)
			compareRollUps(t, d)
			compareMinutes(t, d, samples)
		}
	}
}

// compareMinutes compares the roll-up to minutes with the events, of which it takes the samples.
func compareMinutes(t *testing.T, d *store.Database, events []schemas.Event) {
	t.Helper()
	var samples []*schemas.Sample
	for _, e := range events {
		if s, ok := e.(*schemas.Sample); ok {
			samples = append(samples, s)
		}
	}
	var got []minute
	must(t, d.Query(t.Context(), &got, minutesOf))
	if diff := gocmp.Diff(rollUp(samples), got); diff != "" {
		t.Errorf("roll-up of the samples (-want +got):\n%.2000s", diff)
	}
}

// rollUp computes the roll-up of samples to minutes. All values are multiples of 1/64, so that
// sums do not depend on their order.
func rollUp(samples []*schemas.Sample) []minute {
	type key struct {
		node string
		at   time.Time
	}
	groups := make(map[key][]*schemas.Sample)
	for _, s := range samples {
		k := key{s.Node, s.At.Truncate(time.Minute)}
		groups[k] = append(groups[k], s)
	}
	var all []minute
	for k, group := range groups {
		m := minute{Node: k.node, Minute: k.at, Samples: uint64(len(group))}
		m.CPU, m.Most = mean(group, func(s *schemas.Sample) *float64 { return s.CPURatio })
		m.IOWait, _ = mean(group, func(s *schemas.Sample) *float64 { return s.IOWaitRatio })
		m.Load, _ = mean(group, func(s *schemas.Sample) *float64 { return s.LoadAverage })
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b minute) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), a.Minute.Compare(b.Minute))
	})
	return all
}

// mean returns the mean and the maximum of the measured values, nil without any.
func mean(group []*schemas.Sample, of func(*schemas.Sample) *float64) (average, most *float64) {
	sum, n := 0.0, 0
	for _, s := range group {
		if v := of(s); v != nil {
			if most == nil || *v > *most {
				most = v
			}
			sum += *v
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	return pointer(sum / float64(n)), most
}
