package shares_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// A move that the runner undid or refused is not planned again for ten minutes.
func TestPlan_LeavesOutUndoneAndRefusedMoves(t *testing.T) {
	atRisk := []string{`a at_risk 1→2 for ""`}
	for _, test := range []struct {
		outcome string
		want    []string
	}{
		{schemas.MoveUndone, nil},
		{schemas.MoveRefused, nil},
		{schemas.MoveCarriedOut, atRisk},
		{schemas.MoveKept, atRisk},
		{schemas.MoveDryRun, atRisk},
	} {
		t.Run(test.outcome, func(t *testing.T) {
			c := newElasticCluster(t)
			c.run("a", 1200*time.Second, 1)
			e := movedEvent("a", test.outcome, 1, 2, c.now)
			c.apply(e)
			if diff := cmp.Diff(test.want, c.plan()); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}

			c.now = c.now.Add(9 * time.Minute)
			c.apply(e) // a duplicate does not extend the time
			c.now = c.now.Add(2 * time.Minute)
			if c.plan() == nil {
				t.Error("no move after eleven minutes, want one")
			}
		})
	}
}

// A job lends nothing to a job that refused the CPUs.
func TestPlan_LendsNothingForABarredMove(t *testing.T) {
	c := newElasticCluster(t)
	c.run("a", 4000*time.Second, 2)
	c.apply(movedEvent("a", schemas.MoveUndone, 2, 1, c.now))
	c.run("b", 2500*time.Second, 1)
	if diff := cmp.Diff([]string(nil), c.plan()); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
}

// Barred moves are part of the snapshot, are bounded, and do not outlive the run.
func TestCluster_BoundsBarredMoves(t *testing.T) {
	c := newElasticCluster(t)
	c.run("a", 1200*time.Second, 1)
	size := func() int {
		var b bytes.Buffer
		if err := c.Freeze().Encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.Len()
	}
	before := size()
	for n := range uint32(2000) {
		c.apply(movedEvent("a", schemas.MoveRefused, 1, n+2, c.now))
	}
	if after := size(); after > before+2000 {
		t.Errorf("the snapshot grew from %d to %d bytes", before, after)
	}

	c.apply(movedEvent("a", schemas.MoveRefused, 1, 2, c.now.Add(-time.Second)))
	c.apply(movedEvent("a", schemas.MoveRefused, 1, 2, c.now))
	var b bytes.Buffer
	if err := c.Freeze().Encode(&b); err != nil {
		t.Fatal(err)
	}
	restored, err := cluster.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := c.plan()
	c.Cluster = restored
	if diff := cmp.Diff(want, c.plan()); diff != "" || want != nil {
		t.Errorf("moves after the snapshot: got %v, want none: %s", c.plan(), diff)
	}

	started := advisortest.StartedEvent("a", 2)
	started.At, started.CPUs, started.Epochs, started.Nodes = c.now, 1, 1000, []string{"node-a"}
	started.Moves = []string{schemas.MoveCPUs}
	c.apply(started)
	if got := c.plan(); fmt.Sprint(got) != `[a at_risk 1→2 for ""]` {
		t.Errorf("moves of the next run: got %v", got)
	}
}

// A planned move names the rule, the inputs, and the numbers of CPUs that were turned down.
func TestPlan_ExplainsAMove(t *testing.T) {
	c := newElasticCluster(t)
	q := c.request("a", 1200*time.Second)
	q.CPUs = schemas.CPUs{1, 2, 3, 4}
	submitted := &schemas.Submitted{Request: q, Advice: *decide.Decide(decide.Ask(c.Cluster, q, c.now), c.r, c.now)}
	submitted.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: "a/submitted", At: c.now}, JobID: "a",
	}
	c.apply(submitted)
	started := advisortest.StartedEvent("a", 1)
	started.At, started.CPUs, started.Epochs, started.Nodes = c.now, 1, 1000, []string{"node-a"}
	started.Moves = []string{schemas.MoveCPUs}
	c.apply(started)
	c.apply(movedEvent("a", schemas.MoveRefused, 1, 3, c.now))

	planned := shares.PoolOf(c.Cluster, "node-a", c.now).Plan(c.r, c.now)
	if len(planned) != 1 {
		t.Fatalf("%d moves, want 1", len(planned))
	}
	m := planned[0].Move
	if m.Rule == "" || m.FreeCPUs != 1 || m.SlackSeconds == nil || *m.SlackSeconds > -300 {
		t.Errorf("move %+v, want a rule, one free CPU and a slack of about -300 s", m)
	}
	if diff := cmp.Diff([]uint32{3, 4}, m.RejectedCPUs); diff != "" {
		t.Errorf("rejected CPUs (-want +got):\n%s", diff)
	}
	want := []string{"the runner undid or refused it recently", "it was never measured"}
	if diff := cmp.Diff(want, m.RejectedReasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
