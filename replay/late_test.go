package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/replay"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// pastRun adds the events of a run whose epochs take 100 s / batch size and, with larger batch sizes,
// lose a little accuracy. A run that is longer than its limit is stopped there. The events are stored
// in January, as those of an import.
func pastRun(l *replay.Log, id string, at time.Time, batch, epochs uint32, limit float64) {
	setting := schemas.Setting{
		Model: "mlp", BatchSize: batch, CPUs: 1, Epochs: epochs, Nodes: []string{"node-" + id},
	}
	add := func(event string, after float64, e schemas.Event, stamp *schemas.JobStamp) {
		*stamp = schemas.JobStamp{
			Stamp: schemas.Stamp{
				EventID: id + "/" + event, At: at.Add(time.Duration(after * float64(time.Second))),
			},
			JobID: id, Run: 1,
		}
		l.Records = append(l.Records, replay.LogRecord{
			Stream: schemas.StreamJob,
			Record: bus.Record{
				Event: e, Sequence: uint64(len(l.Records) + 1),
				StoredAt: time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC),
			},
		})
	}
	started := &schemas.Started{Setting: setting, LimitSeconds: limit}
	add("started", 0, started, &started.JobStamp)
	each := 100 / float64(batch)
	for n := range epochs {
		end := each * float64(n+1)
		if limit > 0 && end > limit {
			ended := &schemas.Ended{
				Setting: setting, Outcome: schemas.EventFailed, DurationSeconds: limit + 2, EpochsDone: n,
			}
			add("failed", limit+2, ended, &ended.JobStamp)
			return
		}
		accuracy := 0.9 - 0.0005*float64(batch) - 0.1/float64(n+1)
		e := &schemas.Epoch{
			Setting: setting, Epoch: n + 1, DurationSeconds: each * (1 + 0.01*float64(n%3)),
			DurationSource: schemas.DurationReported, Accuracy: &accuracy,
		}
		add(fmt.Sprint("epoch", n), end, e, &e.JobStamp)
	}
	ended := &schemas.Ended{
		Setting: setting, Outcome: schemas.EventFinished, DurationSeconds: each * float64(epochs),
		EpochsDone: epochs,
	}
	add("finished", each*float64(epochs), ended, &ended.JobStamp)
}

func TestLateJobs_TellsWhatWouldHaveBeenInTime(t *testing.T) {
	var l replay.Log
	first := time.Date(2026, time.September, 1, 0, 0, 0, 0, time.UTC)
	for i, batch := range []uint32{10, 20, 50, 10, 20, 50, 10, 20, 50, 10, 20, 50} {
		pastRun(&l, fmt.Sprint("before", i), first.Add(time.Duration(i)*time.Hour), batch, 10, 0)
	}
	pastRun(&l, "long-ago", first.AddDate(0, 0, 5), 10, 10, 80) // late, but not in the last month
	november := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	pastRun(&l, "in-time", november, 20, 10, 60)
	pastRun(&l, "late", november.AddDate(0, 0, 1), 10, 10, 60)      // takes 100 s; 20 takes 50 s
	pastRun(&l, "hopeless", november.AddDate(0, 0, 2), 10, 10, 10)  // 50 takes 20 s
	pastRun(&l, "no-limit", november.AddDate(0, 0, 3), 10, 10, 0)   // not judged
	pastRun(&l, "in-time-2", november.AddDate(0, 0, 4), 50, 10, 60) // 20 would do as well

	got, err := l.LateJobs(t.Context(), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]string{}
	for _, j := range got.Rows {
		verdicts[j.JobID] = fmt.Sprintf("%s %d: %s", j.Decision, j.AdvisedBatchSize, j.Verdict)
	}
	want := map[string]string{
		"late":     "meets_slo 20: would have been in time",
		"hopeless": "best_effort 50: no batch size is in time",
	}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Errorf("late jobs (-want +got):\n%s", diff)
	}
	numbers := []int{
		got.Jobs, got.Late, got.InTime, got.StillLate, got.Refused, got.Unknown, got.Unjudged, got.MadeLate,
	}
	if diff := cmp.Diff([]int{4, 2, 1, 0, 1, 0, 0, 0}, numbers); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	// Batch size 20 loses 0.005 accuracy against 10.
	if got.AccuracyLoss == nil || *got.AccuracyLoss < 0.003 || *got.AccuracyLoss > 0.007 {
		t.Errorf("accuracy loss = %v, want about 0.005", got.AccuracyLoss)
	}
	var text strings.Builder
	got.WriteText(&text)
	for _, want := range []string{
		"4 jobs with a time limit or an SLO, 2 of them late", "1\twould have been in time with the batch size",
		"late\tmlp\t60 s\t10\t20\t50.",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &text)
		}
	}
}

func TestLateJobs_NeedsJobs(t *testing.T) {
	if _, err := (&replay.Log{}).LateJobs(t.Context(), 0.95); err == nil {
		t.Error("an empty log has a result, want an error")
	}
}
