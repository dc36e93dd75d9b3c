package gateway

import (
	"fmt"
	"testing"
	"time"

	"courier/schemas"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// heard is a sample of a node that was taken and stored s seconds after noon.
func heard(c cluster, node string, s int) cluster {
	at := noon.Add(time.Duration(s) * time.Second)
	return c.apply(&schemas.Sample{Stamp: schemas.Stamp{At: at}, Node: node, Number: uint64(s), IntervalSeconds: 2}, at)
}

func TestCluster_SaysHowOldEachNodeIs(t *testing.T) {
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
		{interval: 2, age: -time.Second, live: true, patience: 10, wantedAge: 0}, // the clocks differ
	} {
		s := &schemas.Sample{Stamp: schemas.Stamp{At: noon}, Node: "a", IntervalSeconds: c.interval}
		got := cluster{}.apply(s, noon).list(noon.Add(c.age), 0).Nodes[0]
		if got.Live != c.live || got.PatienceSeconds != c.patience || got.AgeSeconds != c.wantedAge || got.Recent != nil {
			t.Errorf("interval %v s, %v after its sample: live %v, age %v s, patience %v s, want %v, %v, %v",
				c.interval, c.age, got.Live, got.AgeSeconds, got.PatienceSeconds, c.live, c.wantedAge, c.patience)
		}
	}
}

func TestCluster_KeepsTheLastPointsAndChangesNoSnapshot(t *testing.T) {
	var snapshots []cluster
	c := cluster{}
	const samples = 3*recentPoints + 7
	for i := range samples {
		c = heard(c, "a", i)
		snapshots = append(snapshots, c)
	}
	for i, s := range snapshots {
		points := s["a"].recent
		if want := min(i+1, recentPoints); len(points) != want {
			t.Fatalf("after %d samples: %d points, want %d", i+1, len(points), want)
		}
		for k, p := range points {
			if want := noon.Add(time.Duration(i-len(points)+1+k) * time.Second); !p.At.Equal(want) {
				t.Fatalf("snapshot %d, point %d = %v, want %v: a later sample changed it", i, k, p.At, want)
			}
		}
		if s["a"].sample.Number != uint64(i) {
			t.Fatalf("snapshot %d holds sample %d", i, s["a"].sample.Number)
		}
	}
	last := noon.Add((samples - 1) * time.Second)
	if got := c.list(last, 5*time.Second).Nodes[0].Recent; len(got) != 6 || !got[5].At.Equal(last) {
		t.Errorf("the last 5 s hold %d points up to %v, want 6 up to %v", len(got), got[len(got)-1].At, last)
	}
}

func TestCluster_ForgetsTheNodeThatIsSilentLongest(t *testing.T) {
	c := cluster{}
	name := func(i int) string { return fmt.Sprintf("node-%04d", i) }
	for i := range maxNodes {
		c = heard(c, name(i), i)
	}
	c = heard(c, name(0), maxNodes)      // heard of again
	c = heard(c, "newcomer", maxNodes+1) // number 1 is silent longest now
	if _, there := c[name(1)]; there || len(c) != maxNodes {
		t.Errorf("%d nodes, %s there: %v; want %d without it", len(c), name(1), there, maxNodes)
	}
	for _, want := range []string{name(0), name(2), "newcomer"} {
		if _, there := c[want]; !there {
			t.Errorf("%s is forgotten", want)
		}
	}
}

func TestHub_TakesABoundedNumberOfClientsOfOne(t *testing.T) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(m)
	for range maxOfOne {
		if _, err := h.join("ada"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.join("ada"); err != errMany {
		t.Errorf("client %d of one user: %v, want %v", maxOfOne+1, err, errMany)
	}
	if _, err := h.join("bob"); err != nil {
		t.Errorf("the first of another: %v, want room", err)
	}
}

func TestHub_TakesABoundedNumberOfClients(t *testing.T) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(m)
	first, err := h.join("ada")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxClients - 1 {
		if _, err := h.join(fmt.Sprint(i % 10)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.join("bob"); err != errFull {
		t.Errorf("client %d: %v, want %v", maxClients+1, err, errFull)
	}
	h.leave(first)
	h.leave(first) // twice is once
	if _, err := h.join("bob"); err != nil {
		t.Errorf("after one left: %v, want room", err)
	}
	h.close()
	if _, err := h.join("bob"); err != errStopping || len(h.clients) != 0 {
		t.Errorf("after close: %v with %d clients, want %v with none", err, len(h.clients), errStopping)
	}
}
