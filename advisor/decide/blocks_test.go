package decide_test

import (
	"math"
	"testing"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// Short epochs arrive in blocks: with one event, as rounds of boosting do, or each with its own, if the job
// buffers its output. While the next block is awaited, the job is neither ahead nor overdue.
func TestDecide_BlocksOfEpochsAreAwaited(t *testing.T) {
	const epochs, block, each = 200, 20, 50 * time.Millisecond
	for name, step := range map[string]uint32{"one event": block, "an event per epoch": 1} {
		state, begin, sequence := cluster.New(), evidenceBegin, uint64(0)
		apply := func(e schemas.Event, at time.Time) {
			sequence++
			state.Apply(e, sequence, at)
		}
		q := schemas.JobRequest{JobID: "job", Model: "m", CPUs: schemas.CPUs{1}, BatchSizes: []int{32},
			Epochs: epochs, Nodes: []string{"n"}, SLO: schemas.Duration(13 * time.Second)}.WithDefaults()
		stamp := schemas.JobStamp{Stamp: schemas.Stamp{At: begin}, JobID: "job", Run: 1}
		apply(&schemas.Submitted{JobStamp: stamp, Request: q}, begin)
		set := schemas.Setting{Model: "m", BatchSize: 32, CPUs: 1, Epochs: epochs, Nodes: []string{"n"}}
		apply(&schemas.Started{JobStamp: stamp, Setting: set, NodeCores: 8}, begin)
		report := func(epoch, following uint32, at time.Time) {
			e := &schemas.Epoch{JobStamp: stamp, Setting: set, Epoch: epoch, DurationSeconds: each.Seconds(),
				FollowingEpochs: following}
			e.At = at
			apply(e, at)
			if affected := state.Affected(e, state.Job("job"), at); len(affected) > 0 != (following == 0) {
				t.Errorf("%s: %d jobs are predicted again after epoch %d of those that arrive together", name,
					len(affected), epoch)
			}
		}
		at := begin.Add(2 * time.Second)
		report(1, 0, at)
		for done := uint32(1); done < epochs-block; {
			at = at.Add(block * each)
			for end := done + block; done < end; {
				done += step
				report(done, end-done, at)
			}
			for _, after := range []time.Duration{0, 300, 600, 950} {
				now := at.Add(after * time.Millisecond)
				a := decide.Decide(decide.AskRunning(state, state.Job("job"), now), decide.Regressors{}, now)
				left := time.Duration(epochs-done)*each - after*time.Millisecond
				if got := *a.Chosen.PredictedSeconds; math.Abs(got-left.Seconds()) > each.Seconds() {
					t.Errorf("%s: %d ms after epoch %d: %v s are left, want %v", name, after, done, got, left.Seconds())
				}
			}
		}
	}
}
