package gateway

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// applySample applies a sample of a node that was taken and stored s seconds after noon, and
// returns the evicted node.
func applySample(t *nodeTable, node string, s int) string {
	at := noon.Add(time.Duration(s) * time.Second)
	return t.apply(&schemas.Sample{
		Stamp: schemas.Stamp{At: at}, Node: node, Number: uint64(s), IntervalSeconds: 2,
	}, at)
}

func TestNodeTable_SaysHowOldEachNodeIs(t *testing.T) {
	for _, c := range []struct {
		interval  float64
		age       time.Duration
		live      bool
		patience  float64
		wantedAge float64
	}{
		{interval: 2, age: 10 * time.Second, live: true, patience: 10, wantedAge: 10},
		{interval: 2, age: 10*time.Second + 1, live: false, patience: 10, wantedAge: 10.000000001},
		{interval: 30, age: 90 * time.Second, live: true, patience: 90, wantedAge: 90},
		{interval: 30, age: 91 * time.Second, live: false, patience: 90, wantedAge: 91},
		{
			interval:  2,
			age:       -time.Second,
			live:      true,
			patience:  10,
			wantedAge: 0,
		}, // the clocks of node and server differ
	} {
		table := newNodeTable()
		table.apply(&schemas.Sample{
			Stamp:           schemas.Stamp{At: noon},
			Node:            "a",
			IntervalSeconds: c.interval,
		}, noon)
		got := table.list(&nodeQuery{limit: 1}, noon.Add(c.age)).Nodes[0]
		if got.Live != c.live || got.PatienceSeconds != c.patience ||
			got.AgeSeconds != c.wantedAge || got.Recent != nil {
			t.Errorf("interval %v s, %v after its sample: live %v, age %v s, patience %v s, want %v, %v, %v",
				c.interval, c.age, got.Live, got.AgeSeconds, got.PatienceSeconds, c.live, c.wantedAge, c.patience)
		}
	}
}

func TestNodeTable_ForgetsTheNodeThatIsSilentLongest(t *testing.T) {
	table := newNodeTable()
	name := func(i int) string { return fmt.Sprintf("node-%05d", i) }
	for i := range maxNodes {
		if evicted := applySample(table, name(i), i); evicted != "" {
			t.Fatalf("node %d evicts %s, want capacity for %d", i, evicted, maxNodes)
		}
	}
	applySample(table, name(0), maxNodes) // node 1 then has the oldest sample
	if evicted := applySample(table, "newcomer", maxNodes+1); evicted != name(1) {
		t.Errorf("a new node evicts %q, want %s", evicted, name(1))
	}
	if len(table.byName) != maxNodes {
		t.Errorf("%d nodes, want %d", len(table.byName), maxNodes)
	}
	for want, there := range map[string]bool{
		name(0):    true,
		name(1):    false,
		name(2):    true,
		"newcomer": true,
	} {
		if _, is := table.byName[want]; is != there {
			t.Errorf("the table has %s: %t, want %t", want, is, there)
		}
	}
}

// The pages contain each matching node once and in order, for each page size and filter.
func TestNodeTable_PagesAndFilters(t *testing.T) {
	table := newNodeTable()
	now := noon.Add(time.Minute)
	names := []string{"gpu-1", "gpu-2", "cpu-1", "cpu-2", "cpu-3"}
	for _, node := range names {
		s := &schemas.Sample{Stamp: schemas.Stamp{At: now}, Node: node, IntervalSeconds: 2}
		storedAt := now
		if node == "cpu-2" {
			storedAt = noon // silent
		}
		table.apply(s, storedAt)
	}
	for _, c := range []struct {
		name  string
		query nodeQuery
		want  string
		live  int
	}{
		{"by name", nodeQuery{}, "cpu-1 cpu-2 cpu-3 gpu-1 gpu-2", 4},
		{"live", nodeQuery{live: true}, "cpu-1 cpu-3 gpu-1 gpu-2", 4},
		{"search", nodeQuery{search: "pu-2"}, "cpu-2 gpu-2", 1},
		{
			"names",
			nodeQuery{names: map[string]bool{"cpu-3": true, "gpu-2": true, "absent": true}},
			"cpu-3 gpu-2", 2,
		},
		{"no match", nodeQuery{search: "tpu"}, "", 0},
	} {
		for size := 1; size <= len(names)+1; size++ {
			var got []string
			q := c.query
			q.limit = size
			for pages := 0; pages == 0 || q.after != ""; pages++ {
				l := table.list(&q, now)
				if l.Total != len(strings.Fields(c.want)) || l.Live != c.live ||
					len(l.Nodes) > size {
					t.Errorf("%s, pages of %d: %d of %d live on a page of %d, want %d of %s",
						c.name, size, l.Live, l.Total, len(l.Nodes), c.live, c.want)
				}
				for _, n := range l.Nodes {
					got = append(got, n.Node)
				}
				q.after = l.Next
				if pages > len(names) {
					t.Fatalf("%s, pages of %d: there is always a next page", c.name, size)
				}
			}
			if d := cmp.Diff(strings.Fields(c.want), got); d != "" && len(got)+len(c.want) > 0 {
				t.Errorf("%s, pages of %d (-want +got):\n%s", c.name, size, d)
			}
		}
	}
}

func TestRecentPoints_AreTheLastOnes(t *testing.T) {
	var r recentPoints
	const samples = 3*maxRecentPoints + 7
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Second) }
	for i := range samples {
		r.add(at(i), new(float64(i)/samples), nil)
		points := r.since(noon)
		if want := min(i+1, maxRecentPoints); len(points) != want {
			t.Fatalf("after %d samples: %d points, want %d", i+1, len(points), want)
		}
		for k, p := range points {
			n := i - len(points) + 1 + k
			want := float64(n) / samples
			if !p.At.Equal(at(n)) || math.Abs(*p.CPURatio-want) > 1.0/ratioSteps ||
				p.IOWaitRatio != nil {
				t.Fatalf("after %d samples: point %d = %v, want %v at %v", i+1, k, p, want, at(n))
			}
		}
	}
	if got := r.since(at(samples - 6)); len(got) != 6 || !got[5].At.Equal(at(samples-1)) {
		t.Errorf("the last 5 s hold %d points, want 6", len(got))
	}
}
