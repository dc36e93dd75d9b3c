package decide_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/decide"
	"courier/regress/evidence"
	"courier/schemas"
)

// An alternative reports the runs behind its figures.
func TestDecide_ReportsEvidence(t *testing.T) {
	r := evidenceRegressors(t)
	a := decide.Decide(evidenceQuestion(func(q *schemas.JobRequest) {
		q.BatchSizes = []int{64, 96, 1024}
	}), r, evidenceBegin)
	for i, want := range []schemas.Evidence{
		{
			Time: &schemas.TimeEvidence{
				Support:           "measured",
				ConfigurationRuns: 4,
				NodeTypeRuns:      20,
				ModelRuns:         20,
			},
			Accuracy: &schemas.AccuracyEvidence{
				Support:       "measured",
				BatchSizeRuns: 4,
				ModelRuns:     20,
			},
		},
		{
			Time: &schemas.TimeEvidence{
				Support:      "interpolated",
				NodeTypeRuns: 20,
				ModelRuns:    20,
			},
			Accuracy: &schemas.AccuracyEvidence{Support: "interpolated", ModelRuns: 20},
		},
		{
			Time: &schemas.TimeEvidence{
				Support: "extrapolated", NodeTypeRuns: 20, ModelRuns: 20,
			},
			Accuracy: &schemas.AccuracyEvidence{Support: "extrapolated", ModelRuns: 20},
		},
	} {
		alt := a.Alternatives[i]
		want.Time.NodeType = evidenceNode.NodeType()
		want.Accuracy.LongestEpochs, want.Accuracy.HighestAccuracy = evidenceEpochs, 0.75
		got := alt.Evidence
		if got == nil || got.Time == nil || got.Accuracy == nil || got.Startup == nil {
			t.Fatalf("batch size %d: evidence = %+v, want that of time, accuracy and start-up",
				alt.BatchSize, got)
		}
		if fmt.Sprintf("%+v", *got.Time) != fmt.Sprintf("%+v", *want.Time) {
			t.Errorf("batch size %d: evidence of time %+v, want %+v", alt.BatchSize, *got.Time,
				*want.Time)
		}
		if *got.Accuracy != *want.Accuracy {
			t.Errorf("batch size %d: evidence of accuracy %+v, want %+v", alt.BatchSize,
				*got.Accuracy, *want.Accuracy)
		}
		// The first of the 20 starts was as fast as the second.
		if s := got.Startup; s.NodeTypeRuns != 20 || s.ModelRuns != 20 || s.Seconds < 2.5 ||
			s.Seconds > 3.5 {
			t.Errorf("batch size %d: evidence of start-up = %+v, want 20 runs of about 3 s",
				alt.BatchSize, *s)
		}
	}
	if a.Chosen.Evidence != nil {
		t.Error("the chosen alternative repeats the evidence of the list")
	}
}

// The interval of an accuracy contains it, and is absent if the accuracy is unknown.
func TestDecide_ReportsAnIntervalOfTheAccuracy(t *testing.T) {
	r := evidenceRegressors(t)
	for _, batches := range [][]int{{32, 64, 256}, {48, 96, 300}} {
		a := decide.Decide(evidenceQuestion(func(q *schemas.JobRequest) {
			q.BatchSizes, q.Epochs = batches, 12
		}), r, evidenceBegin)
		for _, alt := range a.Alternatives {
			low, high := alt.AccuracyLower, alt.AccuracyUpper
			if low == nil || high == nil {
				t.Fatalf("batch size %d: got no interval, want one", alt.BatchSize)
			}
			m := *alt.PredictedAccuracy
			if *low > m || *high < m || *low == *high {
				t.Errorf("batch size %d: accuracy %g, want it between %g and %g", alt.BatchSize, m, *low, *high)
			}
		}
	}
	a := decide.Decide(evidenceQuestion(func(q *schemas.JobRequest) {
		q.BatchSizes = []int{2048}
	}), r, evidenceBegin)
	if alt := a.Alternatives[0]; alt.AccuracyLower != nil || alt.AccuracyUpper != nil {
		t.Errorf("alternative %+v has an interval of an unknown accuracy, want none", alt)
	}
}

// Runs on another node type are no evidence, and the answer reports how many there are.
func TestDecide_ReportsAMissingNodeType(t *testing.T) {
	r := evidenceRegressors(t)
	q := evidenceQuestion(nil)
	q.Hardware = []schemas.Hardware{{Cores: 12, CPUModel: "P100"}}
	a := decide.Decide(q, r, evidenceBegin)
	if want := "model shufflenet has 20 runs, but none on a node like node-a"; !strings.Contains(
		a.Message, want,
	) {
		t.Errorf("%s: message %q lacks %q", a.Decision, a.Message, want)
	}
	for _, alt := range a.Alternatives {
		got := *alt.Evidence.Time
		if got.Support != evidence.NeverRun.String() || got.ModelRuns != 20 || got.NodeTypeRuns != 0 ||
			alt.PredictedSeconds != nil {
			t.Errorf("batch size %d: evidence = %+v, want 20 runs of the model, none on this node type",
				alt.BatchSize, got)
		}
	}
}

// The advice for a job that fits on no live node says why nothing is known.
func TestDecide_ReportsThatNoNodeHasTheCPUs(t *testing.T) {
	r := evidenceRegressors(t)
	q := evidenceQuestion(func(q *schemas.JobRequest) { q.CPUs, q.Nodes = schemas.CPUs{64}, nil })
	q.Nodes, q.Hardware = nil, nil
	a := decide.Decide(q, r, evidenceBegin)
	want := "model shufflenet has 20 runs, but no live node has 64 CPUs: on such a node, run it with "
	if a.Decision != schemas.Exploring || !strings.Contains(a.Message, want) {
		t.Errorf("%s: message %q lacks %q", a.Decision, a.Message, want)
	}
}

// An active correction is reported with its scope and factor.
func TestDecide_NamesActiveCorrections(t *testing.T) {
	runs := evidenceRuns(nil)
	slower := evidenceRuns(func(n int, r *advisortest.Run) { // from batch size 128 on, later
		for e := range r.Epochs {
			if r.BatchSize >= 128 {
				r.Epochs[e].Seconds *= 1.5
			}
		}
	})
	later := slices.Clone(runs)
	for i, n := range []int{
		8, 0, 12, 4, 9, 1, 13, 5,
	} { // two runs of each configuration; slow and normal runs alternate
		slower[n].StartedAt = evidenceBegin.Add(time.Duration(1000+i) * time.Hour)
		later = append(later, slower[n])
	}
	all, err := advisortest.Fit(testContext, runs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if all, err = advisortest.Fit(testContext, later, all); err != nil {
		t.Fatal(err)
	}
	r := advisortest.LoadFiles(t, all)
	a := decide.Decide(evidenceQuestion(nil), r, evidenceBegin)
	for _, alt := range a.Alternatives {
		e := alt.Evidence.Time
		if alt.BatchSize < 128 {
			if len(e.Corrections) > 0 {
				t.Errorf("batch size %d: corrections = %+v, want none",
					alt.BatchSize, e.Corrections)
			}
			continue
		}
		if len(e.Corrections) != 1 || math.Abs(e.Corrections[0].Ratio-1.5) > 0.15 {
			t.Fatalf("batch size %d: corrections = %+v, want one of about 1.5", alt.BatchSize, e.Corrections)
		}
		if c := e.Corrections[0]; c.Scope != evidence.ScopeFrom || c.BatchSize != 128 ||
			c.Runs != 4 || c.SinceAt.IsZero() {
			t.Errorf("batch size %d: %+v, want four runs from batch size 128 on", alt.BatchSize, c)
		}
	}
}

// Advice for a running job has no evidence, because the answer to its request had it.
func TestDecide_ReportsNoEvidenceForARunningJob(t *testing.T) {
	q := evidenceQuestion(nil)
	setting := schemas.Setting{
		Model:     evidenceModel,
		BatchSize: 64,
		CPUs:      1,
		Epochs:    20,
		Nodes:     q.Nodes,
	}
	q.Self = &decide.Member{Setting: setting, Hardware: q.Hardware, EpochsDone: 5}
	a := decide.Decide(q, evidenceRegressors(t), evidenceBegin)
	for _, alt := range a.Alternatives {
		if alt.Evidence != nil || alt.PredictedSeconds == nil {
			t.Errorf("got alternative %+v, want a time and no evidence", alt)
		}
	}
}
