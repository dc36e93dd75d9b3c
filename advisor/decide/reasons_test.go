package decide_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

// Each answer gives the actual reason for a promise or for its absence.
func TestDecide_NamesTheReason(t *testing.T) {
	r := evidenceRegressors(t)
	free := func(most int, target float64, slo time.Duration) func(*schemas.JobRequest) {
		return func(q *schemas.JobRequest) {
			q.Epochs, q.MaxEpochs, q.TargetAccuracy, q.SLO = 0, most, target, schemas.Duration(slo)
		}
	}
	for _, c := range []struct {
		name     string
		change   func(*schemas.JobRequest)
		decision schemas.Decision
		message  []string // parts of it
		reason   string   // part of the reason of batch size 128
	}{
		{
			"in time", nil, schemas.MeetsSLO, []string{"20 epochs in", "SLO met with probability"},
			"can be promised, but",
		},
		{"too late", slo(time.Minute), schemas.BestEffort,
			[]string{
				"no alternative meets the SLO with probability 0.95",
				"more than the 60 s that the SLO leaves",
			}, "too unlikely to meet the SLO"},
		{"a confidence that nothing reaches", func(q *schemas.JobRequest) { q.Confidence = 0.99999 },
			schemas.BestEffort,
			[]string{"no probability above 0.9999 is predicted, and 0.99999 is required"},
			"too unlikely to meet the SLO"},
		{"a target in time", free(40, 0.5, time.Hour), schemas.MeetsSLO,
			[]string{
				"SLO met and accuracy 0.5 reached with probability",
			}, "can be promised, but is "},
		{"a target that no run reached", free(40, 0.9, time.Hour), schemas.BestEffort,
			[]string{
				"no run of model shufflenet has reached accuracy 0.9, the highest was 0.75; " +
					"batch size 32 on 1 CPU comes closest: 29 epochs",
			}, "no run of the model has reached the target accuracy"},
		{"a target that takes more epochs", free(5, 0.6, time.Hour), schemas.BestEffort,
			[]string{
				"no alternative meets the SLO and reaches accuracy 0.6", "the accuracy takes",
				"more than the 5 requested", "batch size 64 on 1 CPU comes closest: 5 epochs",
			}, "too unlikely to reach the target accuracy"},
		{
			"a target that takes longer than the SLO", free(40, 0.6, 3*time.Minute),
			schemas.BestEffort,
			[]string{
				"the accuracy takes", "at least (", "batch size 256 on 1 CPU comes closest",
			},
			"too unlikely",
		},
		{"a target that the asked batch sizes never reach", func(q *schemas.JobRequest) {
			free(40, 0.75, time.Hour)(q)
			q.BatchSizes = []int{128, 256}
		}, schemas.BestEffort, []string{
			"however long it runs, the accuracy is reached with probability",
		}, "too unlikely to reach the target accuracy"},
		{
			"a batch size that is too large",
			func(q *schemas.JobRequest) { q.BatchSizes = []int{1024, 128 * 64} },
			schemas.Exploring,
			[]string{
				"nothing can be promised, because model shufflenet ran on this node type with batch sizes 32 to 512",
			},
			"",
		},
		{"too many CPUs", func(q *schemas.JobRequest) { q.CPUs = schemas.CPUs{4} },
			schemas.Exploring, []string{"ran on this node type with 1 CPU only"},
			"cannot be promised: the model ran on this node type with 1 CPU only"},
		{"a model that never ran", func(q *schemas.JobRequest) { q.Model = "resnet" },
			schemas.Exploring, []string{
				"nothing is known yet about model resnet: run it with",
			}, "no run of the model: nothing is known"},
	} {
		a := decide.Decide(evidenceQuestion(c.change), r, evidenceBegin)
		if a.Decision != c.decision {
			t.Errorf("%s: got decision %s, want %s: %s", c.name, a.Decision, c.decision, a.Message)
		}
		for _, part := range c.message {
			if !strings.Contains(a.Message, part) {
				t.Errorf("%s: message %q lacks %q", c.name, a.Message, part)
			}
		}
		if alt := a.Running(128, a.Alternatives[0].CPUs); alt != nil &&
			!strings.Contains(alt.Reason, c.reason) &&
			a.Chosen.BatchSize != 128 {
			t.Errorf("%s: reason of batch size 128: got %q, want %q", c.name, alt.Reason, c.reason)
		}
		if testing.Verbose() {
			t.Logf("%s: %s", c.name, a.Message)
			for _, alt := range a.Alternatives {
				t.Logf("    %d: %s", alt.BatchSize, alt.Reason)
			}
			for _, m := range a.Menu {
				t.Logf("    or %s", m.Text())
			}
		}
	}
}

// If SLO and target accuracy are likely enough separately but not jointly, the answer explains
// that.
func TestDecide_NamesAJointProbability(t *testing.T) {
	r := evidenceRegressors(t)
	found := false
	for i := 0; i < 6*600 && !found; i++ {
		epochs, seconds := 11+i%6, 300+i/6
		q := evidenceQuestion(func(q *schemas.JobRequest) {
			q.Epochs, q.TargetAccuracy = epochs, 0.5
			q.BatchSizes, q.SLO = []int{64}, schemas.Duration(time.Duration(seconds)*time.Second)
		})
		a := decide.Decide(q, r, evidenceBegin)
		alt := a.Alternatives[0]
		onTime, reaches := *alt.SLOProbability, *alt.AccuracyProbability
		if onTime < a.Confidence || reaches < a.Confidence || *alt.Probability >= a.Confidence {
			continue
		}
		found = true
		want := fmt.Sprintf("at best the SLO is met with probability %.3f and the accuracy reached with %.3f",
			onTime, reaches)
		if a.Decision != schemas.BestEffort || !strings.Contains(a.Message, want) {
			t.Errorf("%s: message %q lacks %q", a.Decision, a.Message, want)
		}
	}
	if !found {
		t.Error("got no SLO with two sufficient probabilities and an insufficient joint one, want one")
	}
}

// With a target accuracy every choice of the menu reaches it, too.
func TestDecide_TheMenuReachesTheTarget(t *testing.T) {
	r := evidenceRegressors(t)
	q := evidenceQuestion(func(q *schemas.JobRequest) {
		q.Epochs, q.MaxEpochs, q.TargetAccuracy = 0, 40, 0.6
		q.SLO = schemas.Duration(3 * time.Minute)
	})
	a := decide.Decide(q, r, evidenceBegin)
	longer := 0
	for _, c := range a.Menu {
		if c.PredictedAccuracy == nil || *c.PredictedAccuracy < 0.6 {
			t.Errorf("choice %s does not reach the target, want only choices that do", c.Text())
		}
		if c.Kind == schemas.ChoiceDeadline {
			longer++
			q.Request.SLO = schemas.Duration(c.SLOSeconds * float64(time.Second))
			q.Request.BatchSizes = []int{int(c.BatchSize)}
		}
	}
	if longer != 1 {
		t.Fatalf("%d longer SLOs on the menu, want one: %v", longer, a.Menu)
	}
	if again := decide.Decide(q, r, evidenceBegin); again.Decision != schemas.MeetsSLO {
		t.Errorf("got decision %s with the longer SLO of the menu, want a promise: %s", again.Decision, again.Message)
	}
}
