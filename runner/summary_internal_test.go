package runner

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"courier/runner/output"
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

// The last line judges an SLO as the advisor does: by the end of the last requested epoch, or of a job that may
// stop early; a job that ended too late missed it in any case.
func TestJob_JudgesItsSLOAsTheAdvisorDoes(t *testing.T) {
	began := time.Now()
	for name, tc := range map[string]struct {
		last, done   uint32
		lastAt, took int // seconds
		mayStopEarly bool
		isExceeded   bool
		want         string
	}{
		"in time":               {10, 10, 30, 31, false, false, "SLO of 40 s met"},
		"work after":            {10, 10, 30, 50, false, false, "SLO of 40 s met; it worked for another 20 s after"},
		"late":                  {10, 10, 45, 45, false, false, "SLO of 40 s missed"},
		"more epochs":           {10, 10, 30, 39, false, true, "SLO of 40 s met; the output counts more epochs"},
		"fewer epochs":          {6, 6, 20, 20, false, false, ""},
		"fewer epochs, late":    {6, 6, 20, 41, false, false, "SLO of 40 s missed"},
		"stopped early":         {6, 6, 20, 20, true, false, "SLO of 40 s met"},
		"stopped without epoch": {0, 0, 0, 20, true, false, ""},
	} {
		var stderr bytes.Buffer
		parser, err := output.New("")
		if err != nil {
			t.Fatal(err)
		}
		j := &job{
			screen: newScreen(io.Discard, &stderr, false), epochs: newEpochState(began),
			startedAt: began, output: parser,
			result: Result{Submitted: began, Ended: began.Add(time.Duration(tc.took) * time.Second)},
		}
		j.result.Setting.Epochs = 10
		j.o.Request.SLO, j.o.Request.MayStopEarly = schemas.Duration(40*time.Second), tc.mayStopEarly
		j.epochs.last, j.epochs.done, j.epochs.isExceeded = tc.last, tc.done, tc.isExceeded
		j.epochs.lastAt = began.Add(time.Duration(tc.lastAt) * time.Second)
		j.summarize()
		if got := stderr.String(); !strings.Contains(got, tc.want) || tc.want == "" && strings.Contains(got, "SLO") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
