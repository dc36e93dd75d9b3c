package trainer

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// epochExamples returns the epochs of a run of a model: as many as there are seconds.
func epochExamples(model string, run int, batch uint32, begin time.Time, seconds ...float64) []Example {
	var all []Example
	at, end := begin, begin
	for _, s := range seconds {
		end = end.Add(time.Duration(s * float64(time.Second)))
	}
	for i, s := range seconds {
		at = at.Add(time.Duration(s * float64(time.Second)))
		all = append(all, Example{
			Job: fmt.Sprint(model, "-", batch, "-", run), Model: model, Nodes: []string{"node"},
			Features: schemas.Features{
				BatchSize: batch, CPUs: 1, EpochsDone: uint32(i + 1),
				Load: schemas.Load{ConcurrentJobs: 1, Processes: 1, StableTimeRatio: 1},
			},
			Value: s, Weight: 1, At: at, EndedAt: end, Seconds: s,
		})
	}
	return all
}

// Every run counts immediately, and models whose times differ by a factor of a thousand do not
// influence each other.
func TestFitEvidence_LearnsEachModelFromItsFirstRun(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	examples := append(epochExamples("quick", 1, 64, begin, 10, 10.2, 9.8),
		epochExamples("slow", 1, 64, begin, 10_000)...)
	r, err := Fit(context.Background(), schemas.TargetEpochTime, examples,
		Options{Method: MethodEvidence})
	if err != nil {
		t.Fatal(err)
	}
	if r.Manifest.Family != regress.FamilyHierarchy || evidenceOf(&r.Manifest) == nil {
		t.Fatalf("family %q, want a regressor with evidence", r.Manifest.Family)
	}
	p, _, err := evidenceOf(&r.Manifest).Compile()
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]float64{"quick": 10, "slow": 10_000} {
		c := evidence.Configuration{
			Model: model, BatchSize: 64, CPUs: 1, NodeLoad: evidence.NodeLoad{ConcurrentJobs: 1},
		}
		got := p.Time(c, 1)
		if math.Abs(got.Median()/want-1) > 0.02 || got.Counts.Configuration != 1 {
			t.Errorf("%s: %g s from runs %+v, want about %g s from one run", model, got.Median(),
				got.Counts, want)
		}
	}
}

// The model file alone, as any reader of such files predicts it, has the served medians.
func TestFitEvidence_TheFileHasTheServedMedians(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	var examples []Example
	for i, batch := range []uint32{16, 32, 64, 128, 256} {
		law := 4 + 400/float64(batch)
		examples = append(examples,
			epochExamples("mlp", i, batch, begin.Add(time.Duration(i)*time.Hour), law, law*1.01)...)
	}
	r, err := Fit(context.Background(), schemas.TargetEpochTime, examples,
		Options{Method: MethodEvidence})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := r.EncodeManifest()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := regress.Load(r.EncodeModel(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := evidenceOf(&r.Manifest).Compile()
	if err != nil {
		t.Fatal(err)
	}
	judge, err := newTrialPredictor(tree)
	if err != nil {
		t.Fatal(err)
	}
	s := servedState{target: schemas.TargetEpochTime, predictor: p}
	grid := s.grid(examples)
	if len(grid) < 17 {
		t.Fatalf("%d grid points, want the batch sizes and those at quarters of an octave between them",
			len(grid))
	}
	for i := range grid {
		got, ok := judge.predict(&grid[i])
		if !ok || math.Abs(got.Value/grid[i].Value-1) > 0.01 {
			t.Errorf("batch size %d: predicted %g s, want %g s as in the file",
				grid[i].Features.BatchSize, got.Value, grid[i].Value)
		}
	}
}

// Runs that all take longer correct the predictions of every batch size immediately, including
// batch sizes without new runs.
func TestFitEvidence_CorrectsDriftImmediately(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	batches := []uint32{16, 32, 64, 128, 256}
	var examples []Example
	run := func(n int, batch uint32, factor float64) {
		s := factor * (4 + 400/float64(batch))
		examples = append(examples,
			epochExamples("mlp", n, batch, begin.Add(time.Duration(n)*time.Hour), s, s*1.01, s*0.99)...)
	}
	n := 0
	for range 4 {
		for _, batch := range batches {
			run(n, batch, 1+0.01*float64(n%3))
			n++
		}
	}
	o := Options{Method: MethodEvidence}
	r, err := Fit(context.Background(), schemas.TargetEpochTime, examples, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range batches[:4] { // no new run has batch size 256
		run(n, batch, 1.5)
		n++
		if r, err = fitAfter(context.Background(), schemas.TargetEpochTime, examples, &r.Manifest,
			o); err != nil {
			t.Fatal(err)
		}
	}
	p, corrections, err := evidenceOf(&r.Manifest).Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range batches {
		c := evidence.Configuration{
			Model:     "mlp",
			BatchSize: int(batch),
			CPUs:      1,
			NodeLoad:  evidence.NodeLoad{ConcurrentJobs: 1},
		}
		want := 1.5 * (4 + 400/float64(batch))
		if got := p.CorrectedTime(corrections, c, 1).Median(); math.Abs(got/want-1) > 0.08 {
			t.Errorf("batch size %d: %g s after four slower runs, want about %g s", batch, got,
				want)
		}
	}
}
