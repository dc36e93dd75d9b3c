package runner

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// A job that gave a CPU away is compared with the prediction for the CPUs that it started with.
func TestJob_ComparesItsEndWithThePredictionAtItsStart(t *testing.T) {
	var stderr bytes.Buffer
	seconds := []float64{35, 50}
	setting := schemas.Setting{BatchSize: 32, CPUs: 2, Epochs: 10}
	moved := setting
	moved.CPUs = 1
	began := time.Now()
	j := &job{
		screen:       newScreen(io.Discard, &stderr, false),
		epochs:       newEpochState(began),
		startedAt:    began,
		startSetting: setting,
		result: Result{
			Setting: moved,
			Ended:   began.Add(45 * time.Second),
			Advice: &schemas.Advice{Alternatives: []schemas.Alternative{
				{BatchSize: 32, CPUs: 2, PredictedSeconds: &seconds[0]},
				{BatchSize: 32, CPUs: 1, PredictedSeconds: &seconds[1]},
			}},
		},
	}
	j.summarize()
	if got := stderr.String(); !strings.Contains(got, "the run took 45 s, predicted 35 s") {
		t.Errorf("summary = %q, want the prediction of 35 s for two CPUs", got)
	}
}

// A run without a prediction ends with a line, too.
func TestJob_SaysHowARunEnded(t *testing.T) {
	var stderr bytes.Buffer
	accuracy, began := 0.875, time.Now()
	j := &job{
		screen: newScreen(io.Discard, &stderr, false), epochs: newEpochState(began), startedAt: began,
		result: Result{JobID: "j", Ended: began.Add(45 * time.Second), Accuracy: &accuracy},
	}
	j.epochs.lastAt = j.result.Ended
	j.summarize()
	j.o.PageURL = "http://gateway:8080/"
	j.summarize()
	j.result.ExitCode = 3
	j.summarize()
	const want = "courier: the run took 45 s; accuracy 0.8750: courier receipt j\n" +
		"courier: the run took 45 s; accuracy 0.8750: courier receipt j, http://gateway:8080/jobs/j\n" +
		"courier: the run ended after 45 s with exit code 3: courier receipt j, http://gateway:8080/jobs/j\n"
	if diff := cmp.Diff(want, stderr.String()); diff != "" {
		t.Errorf("last lines (-want +got):\n%s", diff)
	}
}
