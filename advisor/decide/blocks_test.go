package decide_test

import (
	"math"
	"testing"
	"time"

	"courier/advisor/advisortest"
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

// A model whose last job reported ten epochs at first is awaited as long: neither its end nor its probability
// changes before that block arrives.
func TestDecide_TheFirstBlockIsAwaited(t *testing.T) {
	const batch, block, each = 64, 10, 560 * time.Millisecond
	state, at := cluster.New(), evidenceBegin
	r, sequence := advisortest.Regressors(t), uint64(0)
	apply := func(e schemas.Event) {
		sequence++
		state.Apply(e, sequence, at)
	}
	for _, id := range []string{"a", "b"} {
		q := request(slo(15 * time.Second))
		q.JobID, q.Epochs, q.BatchSizes = id, 2*block, []int{batch}
		stamp := schemas.JobStamp{Stamp: schemas.Stamp{At: at}, JobID: id, Run: 1}
		apply(&schemas.Submitted{JobStamp: stamp, Request: q})
		apply(&schemas.Started{JobStamp: stamp, Setting: setting(batch, 2*block), NodeCores: 8})
		if id == "b" {
			break
		}
		stamp.At, at = at.Add(block*each), at.Add(block*each)
		for epoch := uint32(1); epoch <= block; epoch++ {
			apply(&schemas.Epoch{JobStamp: stamp, Setting: setting(batch, 2*block), Epoch: epoch,
				DurationSeconds: each.Seconds(), FollowingEpochs: block - epoch})
		}
		apply(&schemas.Ended{JobStamp: stamp, Setting: setting(batch, 2*block), EpochsDone: block,
			Outcome: schemas.EventFinished})
	}
	var first float64
	for n := range time.Duration(block) {
		now := at.Add(n * each)
		c := decide.Decide(decide.AskRunning(state, state.Job("b"), now), r, now).Chosen
		ends := (n * each).Seconds() + *c.PredictedSeconds
		if n == 0 {
			first = ends
		}
		if math.Abs(ends-first) > each.Seconds()/2 || *c.Probability < 0.99 {
			t.Errorf("after %v: it ends after %.2f s with probability %.3f, want %.2f s", n*each, ends,
				*c.Probability, first)
		}
	}
}
