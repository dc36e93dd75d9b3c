package decide_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// A batch size whose last two runs failed on a node is not advised there until one succeeds, unless
// nothing else is asked for.
func TestDecide_LeavesOutWhatFails(t *testing.T) {
	c, sequence := cluster.New(), uint64(0)
	now := time.Date(2026, time.November, 26, 8, 0, 0, 0, time.UTC)
	run := func(batch uint32, outcome, reason string) {
		sequence++
		id := fmt.Sprint("job-", sequence)
		stamp := schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: now}, JobID: id, Run: 1}
		set := schemas.Setting{Model: "new", BatchSize: batch, CPUs: 1, Epochs: 3, Nodes: []string{"n"}}
		c.Apply(&schemas.Started{JobStamp: stamp, Setting: set}, 2*sequence, now)
		c.Apply(&schemas.Ended{JobStamp: stamp, Setting: set, Outcome: outcome, Reason: reason}, 2*sequence+1, now)
	}
	advised := func(batches ...int) (uint32, string) {
		q := schemas.JobRequest{JobID: "q", Model: "new", CPUs: schemas.CPUs{1}, BatchSizes: batches,
			Epochs: 3, Nodes: []string{"n"}}.WithDefaults()
		a := decide.Decide(decide.Ask(c, q, now), decide.Regressors{}, now)
		last := a.Alternatives[len(a.Alternatives)-1]
		return a.Chosen.BatchSize, fmt.Sprint(last.BatchSize, ": ", last.Reason)
	}
	run(512, schemas.EventFailed, "exit status 1")
	if got, _ := advised(64, 512); got != 512 {
		t.Errorf("after one failure batch size %d is advised, want 512", got)
	}
	run(512, schemas.EventFailed, "out of memory")
	got, last := advised(64, 512)
	if got != 64 || !strings.Contains(last, "512: its last 2 runs on such a node failed: out of memory") {
		t.Errorf("after two failures batch size %d is advised, last alternative %q; want 64, and why not 512",
			got, last)
	}
	if got, _ := advised(512); got != 512 {
		t.Errorf("batch size %d is advised where only 512 is asked for", got)
	}
	run(512, schemas.EventFinished, "")
	if got, _ := advised(64, 512); got != 512 {
		t.Errorf("after a success batch size %d is advised, want 512", got)
	}
	for batch := range uint32(100) {
		run(batch+1, schemas.EventFailed, "no")
	}
	if n := len(c.Model(&schemas.JobRequest{Model: "new"}).Failures); n > 32 {
		t.Errorf("%d failures are kept, want at most 32", n)
	}
}
