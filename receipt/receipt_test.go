package receipt_test

import (
	"strings"
	"testing"
	"time"

	"courier/receipt"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

func after(seconds float64) *time.Time {
	return new(noon.Add(time.Duration(seconds * float64(time.Second))))
}

func ptr[T any](v T) *T { return &v }

// story is a job of three epochs of 10 s. The third one took 16 s beside two neighbours, and waited
// for storage for a quarter of the time.
func story() *receipt.Story {
	setting := schemas.Setting{Model: "mlp", BatchSize: 16, CPUs: 2, Epochs: 3, Nodes: []string{"a"}}
	stamp := func(at float64) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{At: *after(at)}, JobID: "mlp-1", Run: 1}
	}
	epoch := func(n uint32, at, seconds float64) *schemas.Epoch {
		return &schemas.Epoch{
			JobStamp: stamp(at), Setting: setting, Epoch: n, DurationSeconds: seconds,
			Accuracy: ptr(0.9), Metric: "val error", MetricValue: ptr(0.1),
		}
	}
	third := epoch(3, 38, 16)
	third.JobIOFullPressureRatio, third.JobMemoryFullPressureRatio = ptr(0.25), ptr(0.0)
	alternative := schemas.Alternative{
		BatchSize: 16, CPUs: 2, Epochs: 3, PredictedSeconds: ptr(30.0), UpperBoundSeconds: ptr(35.0),
		PredictedAccuracy: ptr(0.92), Probability: ptr(0.97),
		Evidence: &schemas.Evidence{Time: &schemas.TimeEvidence{ConfigurationRuns: 4}},
	}
	now := alternative
	now.Evidence = &schemas.Evidence{Time: &schemas.TimeEvidence{ConfigurationRuns: 5}}
	better := schemas.Alternative{
		BatchSize: 32, CPUs: 2, Epochs: 3, PredictedSeconds: ptr(20.0), PredictedAccuracy: ptr(0.91),
	}
	return &receipt.Story{
		Status: schemas.JobStatus{
			JobID: "mlp-1", State: schemas.StateFinished, Model: "mlp", Nodes: []string{"a"}, Run: 1,
			BatchSize: 16, CPUs: 2, Epochs: 3, EpochsDone: 3, Accuracy: ptr(0.9), MetSLO: ptr(false),
			SubmittedAt: after(-1), StartedAt: after(0), TrainedAt: after(38), EndedAt: after(41),
		},
		Events: []schemas.Event{
			&schemas.Submitted{JobStamp: stamp(-1), Advice: schemas.Advice{
				Decision: schemas.MeetsSLO, SLOSeconds: 36, Confidence: 0.95, Chosen: &alternative,
				Alternatives: []schemas.Alternative{alternative},
			}},
			epoch(1, 12, 10), epoch(2, 22, 10), third,
			&schemas.Ended{JobStamp: stamp(41), Setting: setting, Outcome: "finished", StartupSeconds: ptr(2.0)},
		},
		Neighbours: []schemas.JobStatus{
			{JobID: "twice", Nodes: []string{"a"}, CPUs: 2, StartedAt: after(22), EndedAt: after(38)},
			{JobID: "once", Nodes: []string{"a"}, CPUs: 1, StartedAt: after(22), EndedAt: after(50)},
			{JobID: "elsewhere", Nodes: []string{"b"}, CPUs: 8, StartedAt: after(0)},
			{JobID: "later", Nodes: []string{"a"}, CPUs: 8, StartedAt: after(38)},
		},
		Now: &schemas.Advice{
			Decision: schemas.MeetsSLO, Chosen: &better,
			Alternatives: []schemas.Alternative{now, better},
		},
	}
}

func TestReceipt_ComparesPromiseAndResult(t *testing.T) {
	var text strings.Builder
	receipt.New(story()).WriteText(&text)
	const want = `job	mlp-1: finished, batch size 16 on 2 CPUs, 3 of 3 epochs
predicted	meets SLO, 30 s, at most 35 s with probability 0.95, accuracy 0.9200, SLO of 36 s met with probability 0.970
result	38 s, start-up 2 s, waited 1 s, accuracy 0.9000 (val error 0.1), SLO missed, it worked for another 3 s after its last epoch
lost	4 s waiting for storage
lost	4 s to job twice
lost	2 s to job once
better	batch size 32 would be advised now: 20 s, accuracy 0.9100
learned	4 runs of this configuration before, 5 now; it took 26.7 % more than predicted
`
	got := strings.Split(text.String(), "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), got); diff != "" {
		t.Errorf("receipt (-want +got):\n%s", diff)
	}
}

// What was not measured is left out.
func TestReceipt_LeavesOutWhatIsUnknown(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*receipt.Story)
		absent string
	}{
		{"no epoch without neighbours", func(s *receipt.Story) { s.Neighbours[0].StartedAt = after(0) }, "to job"},
		{"no pressure", func(s *receipt.Story) {
			s.Events[3].(*schemas.Epoch).JobIOFullPressureRatio = nil
		}, "storage"},
		{"no answer now", func(s *receipt.Story) { s.Now = nil }, "better"},
		{"the same batch size now", func(s *receipt.Story) { s.Now.Chosen.BatchSize = 16 }, "better"},
		{"no request", func(s *receipt.Story) { s.Events = s.Events[1:] }, "predicted"},
		{"cancelled", func(s *receipt.Story) { s.Status.MetSLO = nil }, "SLO m"},
		{"one reported worker", func(s *receipt.Story) { s.Status.Workers = 1 }, "0 runs"},
		{"fewer epochs", func(s *receipt.Story) { s.Status.EpochsDone = 2 }, "than predicted"},
	} {
		s := story()
		c.change(s)
		var text strings.Builder
		receipt.New(s).WriteText(&text)
		_, rest, _ := strings.Cut(text.String(), "\nresult\t")
		if c.absent == "predicted" {
			rest = text.String()
		}
		if strings.Contains(rest, c.absent) {
			t.Errorf("%s: the receipt has %q, want it absent:\n%s", c.name, c.absent, &text)
		}
	}
}

func TestReceipt_EscapesMarkdown(t *testing.T) {
	s := story()
	s.Status.Reason = "out of <memory> in `train_step`"
	var text strings.Builder
	receipt.New(s).WriteMarkdown(&text)
	if want := "out of &lt;memory> in \\`train\\_step\\`"; !strings.Contains(text.String(), want) {
		t.Errorf("markdown lacks %q:\n%s", want, &text)
	}
}

func TestETA_Text(t *testing.T) {
	for _, c := range []struct {
		eta  receipt.ETA
		want string
	}{
		{
			receipt.ETA{EndsAt: after(60), LatestAt: after(90), Confidence: 0.95},
			"about 12:01:00Z (in 60 s), before 12:01:30Z (in 90 s) with probability 0.95",
		},
		{receipt.ETA{EndsAt: after(60)}, "about 12:01:00Z (in 60 s)"},
		{receipt.ETA{EndsAt: after(-60)}, "about 11:59:00Z (60 s ago)"},
		{receipt.ETA{}, "not known yet"},
	} {
		if got := c.eta.Text(noon); got != c.want {
			t.Errorf("ETA %q, want %q", got, c.want)
		}
	}
}
