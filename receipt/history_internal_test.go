package receipt

import (
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

func seconds(n float64) *float64 { return &n }

func at(n float64) *time.Time { return after(noon, &n) }

// A prediction is the one for the batch size that the job had at the time, although the advice
// chose another one and the job has changed since.
func TestHistory_PredictsTheJobAsItRan(t *testing.T) {
	stamp := func(n float64) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{At: *at(n)}, JobID: "mlp-1", Run: 1}
	}
	setting := func(batch uint32) schemas.Setting {
		return schemas.Setting{Model: "mlp", BatchSize: batch, CPUs: 2, Epochs: 3, Nodes: []string{"a"}}
	}
	alternatives := []schemas.Alternative{
		{BatchSize: 16, CPUs: 2, PredictedSeconds: seconds(30), UpperBoundSeconds: seconds(40)},
		{BatchSize: 32, CPUs: 2, PredictedSeconds: seconds(20), UpperBoundSeconds: seconds(25)},
	}
	advice := func(n float64, action schemas.Action) *schemas.Advice {
		return &schemas.Advice{
			JobStamp: stamp(n), Decision: schemas.MeetsSLO, Action: action, Chosen: &alternatives[1],
			Alternatives: alternatives,
		}
	}
	var r historyReader
	for _, e := range []schemas.Event{
		&schemas.Started{JobStamp: stamp(0), Setting: setting(16)},
		&schemas.Epoch{JobStamp: stamp(10), Setting: setting(16), Epoch: 1, DurationSeconds: 10},
		&schemas.Moved{
			JobStamp: stamp(12), FromBatchSize: 16, ToBatchSize: 32, Outcome: "carried_out",
		},
		&schemas.Epoch{JobStamp: stamp(18), Setting: setting(32), Epoch: 2, DurationSeconds: 6},
		&schemas.Ended{JobStamp: stamp(24), Setting: setting(32), Outcome: "finished"},
		advice(11, schemas.ActionBatch),
		advice(19, schemas.ActionKeep),
	} {
		r.add(e)
	}
	beside := []schemas.JobStatus{{JobID: "beside", State: schemas.StateRunning, Model: "cnn", StartedAt: at(15)}}
	got := r.history(&Story{Status: schemas.JobStatus{JobID: "mlp-1", BatchSize: 32, CPUs: 2}, Neighbours: beside})
	want := &JobHistory{
		Job: schemas.JobStatus{JobID: "mlp-1", BatchSize: 32, CPUs: 2},
		Epochs: []HistoryEpoch{
			{At: *at(10), Run: 1, Epoch: 1, BatchSize: 16, DurationSeconds: 10, ConcurrentJobs: seconds(1)},
			{At: *at(18), Run: 1, Epoch: 2, BatchSize: 32, DurationSeconds: 6, ConcurrentJobs: seconds(1.5)},
		},
		Predictions: []PredictionPoint{
			{
				At: *at(11), Decision: schemas.MeetsSLO, Action: schemas.ActionBatch,
				EndsAt: at(41), LatestAt: at(51),
			},
			{
				At: *at(19), Decision: schemas.MeetsSLO, Action: schemas.ActionKeep,
				EndsAt: at(39), LatestAt: at(44),
			},
		},
		Changes: []Change{
			{*at(0), "started", "run 1: batch size 16 on 2 CPUs"},
			{*at(12), "moved", "batch size 16 to 32: carried out"},
			{*at(24), "finished", ""},
		},
		Neighbours: beside,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
}

func TestThinned_KeepsEvenlySpacedPointsAndTheLast(t *testing.T) {
	for _, n := range []int{0, 1, 2, maxPoints - 1, maxPoints, maxPoints + 1, 7 * maxPoints, 123_457} {
		var s thinned[int]
		for i := range n {
			s.add(i)
		}
		got := s.all()
		if len(got) > maxPoints+1 || n > 0 && len(got) < min(n, maxPoints/2) {
			t.Errorf("%d points: got %d of them, want %d to %d", n, len(got), min(n, maxPoints/2), maxPoints+1)
		}
		for i, p := range got {
			if i == len(got)-1 && p == n-1 {
				continue
			}
			if p != i*s.step {
				t.Fatalf("%d points: got %d at %d, want %d", n, p, i, i*s.step)
			}
		}
		if n > 0 && got[len(got)-1] != n-1 {
			t.Errorf("%d points: the last is %d, want %d", n, got[len(got)-1], n-1)
		}
	}
}

// A prediction after a change of the CPUs is the one for the new number, before an epoch with it ends.
func TestHistory_PredictsWithAppliedCPUs(t *testing.T) {
	stamp := func(n float64) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{At: *at(n)}, JobID: "mlp-1", Run: 1}
	}
	alternatives := []schemas.Alternative{
		{BatchSize: 16, CPUs: 2, PredictedSeconds: seconds(30)},
		{BatchSize: 16, CPUs: 1, PredictedSeconds: seconds(50)},
	}
	var r historyReader
	for _, e := range []schemas.Event{
		&schemas.Started{JobStamp: stamp(0), Setting: schemas.Setting{BatchSize: 16, CPUs: 2}},
		&schemas.Moved{
			JobStamp: stamp(12), Move: schemas.MoveCPUs, Outcome: schemas.MoveApplied,
			FromBatchSize: 16, ToBatchSize: 16, FromCPUs: 2, ToCPUs: 1,
		},
		&schemas.Advice{JobStamp: stamp(13), Chosen: &alternatives[0], Alternatives: alternatives},
	} {
		r.add(e)
	}
	h := r.history(&Story{})
	if got, want := h.Predictions[0].EndsAt, at(63); !got.Equal(*want) {
		t.Errorf("predicted end %s, want %s", got, want)
	}
	if got, want := h.Changes[1].Text, "2 to 1 CPU: applied"; got != want {
		t.Errorf("change %q, want %q", got, want)
	}
}

// One step of a move of CPUs names what it was planned from; the others do not repeat it.
func TestMoveText_ExplainsAMove(t *testing.T) {
	e := &schemas.Moved{
		Move: schemas.MoveCPUs, Outcome: schemas.MoveCarriedOut, Purpose: schemas.MoveAtRisk,
		FromCPUs: 1, ToCPUs: 2, Rule: "share", FreeCPUs: 1,
		BeforeProbability: seconds(0.25), AfterProbability: seconds(0.75),
		RejectedCPUs: []uint32{4}, RejectedReasons: []string{"it was never measured"},
	}
	want := "1 to 2 CPUs, at risk: carried out; rule: share; " +
		"SLO met with probability 0.750 instead of 0.250; free: 1 CPU; not 4 CPUs: it was never measured"
	if got := moveText(e); got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
	e.Outcome = schemas.MoveKept
	if got, want := moveText(e), "1 to 2 CPUs, at risk: kept"; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
}

// The end is the one of the status, as in all other views; an older advice that ends before adds no bound.
func TestETA_PrefersTheCurrentPrediction(t *testing.T) {
	now := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
	end, seconds, bound := now.Add(10*time.Minute), 60.0, 90.0
	for ago, hasBound := range map[time.Duration]bool{time.Hour: false, -9 * time.Minute: true} {
		e := &ETA{EndsAt: &end}
		a := &schemas.Advice{Chosen: &schemas.Alternative{PredictedSeconds: &seconds, UpperBoundSeconds: &bound}}
		a.At = now.Add(-ago)
		e.addAdvice(a, &schemas.JobStatus{})
		if !e.EndsAt.Equal(end) || (e.LatestAt != nil) != hasBound {
			t.Errorf("with advice of %s ago: ends %s, at the latest %v, want %s and a bound: %t",
				ago, e.EndsAt, e.LatestAt, end, hasBound)
		}
	}
}
