package explore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/explore"
)

// studyOptions returns the options of a small study.
func studyOptions() explore.Options {
	return explore.Options{
		Model:   "mlp",
		Command: []string{"train", "--batch-size", "{batch}"},
		Factors: explore.Factors{BatchSizes: []int{8, 32, 128}, CPUs: []int{1, 2}},
		Epochs:  2,
		SLOs:    []time.Duration{100 * time.Second},
	}
}

// law measures a block by a law: small batches take longer and are more accurate.
func law(_ context.Context, b explore.Block) ([]explore.MeasuredRun, error) {
	at := time.Date(2026, time.November, 23, 9, 0, 0, 0, time.UTC)
	var records []explore.MeasuredRun
	for job := range b.Jobs {
		r := explore.MeasuredRun{
			Block: b, Job: job + 1, Epochs: 2, EpochsDone: 2, NodeProcesses: b.Jobs * b.CPUs, Node: "node-a",
			StartedAt: at, Status: explore.StatusFinished,
		}
		for epoch := 1; epoch <= 2; epoch++ {
			seconds := (10 + 400/float64(b.BatchSize)) / float64(b.CPUs) * (1 + 0.01*float64(b.Replication))
			accuracy := 0.9 - float64(b.BatchSize)/1000 + 0.01*float64(epoch)
			r.Curve = append(r.Curve, explore.EpochPoint{Epoch: epoch, Seconds: seconds, Accuracy: &accuracy})
			r.Accuracy, r.TotalSeconds = &accuracy, r.TotalSeconds+seconds
		}
		r.EndedAt = at.Add(time.Duration(r.TotalSeconds * float64(time.Second)))
		records = append(records, r)
	}
	return records, nil
}

// An interrupted study continues, and repeats no finished run.
func TestStudy_ContinuesAfterAnInterruption(t *testing.T) {
	dir := t.TempDir()
	o := studyOptions()
	o.Design = explore.DesignFull
	measured := map[string]int{}
	for interruptions := 0; ; interruptions++ {
		study, err := explore.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		blocks := 0
		result, err := study.Run(ctx, func(ctx context.Context, b explore.Block) ([]explore.MeasuredRun, error) {
			if blocks++; blocks > 4 {
				cancel() // while the block runs
				return nil, ctx.Err()
			}
			measured[b.ID()]++
			return law(ctx, b)
		}, nil)
		cancel()
		if errors.Is(err, explore.ErrInterrupted) {
			continue
		}
		if err != nil || interruptions != 4 || result.Runs != 18 {
			t.Fatalf("Run() = %+v, %v after %d interruptions, want 18 runs after 4",
				result, err, interruptions)
		}
		break
	}
	for id, n := range measured {
		if n != 1 {
			t.Errorf("block %s was measured %d times, want once", id, n)
		}
	}
}

// Open repairs the files that a crash has left, and refuses another design.
func TestOpen_ReadsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	o := studyOptions()
	o.Design = explore.DesignFull
	run := func(o explore.Options) (*explore.Findings, error) {
		study, err := explore.Open(dir, o)
		if err != nil {
			return nil, err
		}
		return study.Run(t.Context(), law, nil)
	}
	if _, err := run(o); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(dir, "runs.csv")
	data, err := os.ReadFile(runs)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runs, data[:len(data)-20], 0o600); err != nil { // in the last line
		t.Fatal(err)
	}
	result, err := run(o)
	if err != nil || result.Runs != 18 {
		t.Errorf("after a crash: %+v, %v; want all 18 runs", result, err)
	}

	o.Epochs = 3
	if _, err := run(o); err == nil || !strings.Contains(err.Error(), "another design") {
		t.Errorf("Open() of another design = %v, want a refusal", err)
	}
	o.Epochs = 2
	if err := os.WriteFile(runs, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(o); err == nil || !strings.Contains(err.Error(), "not of a study") {
		t.Errorf("Open() of another table = %v, want an error", err)
	}
}

// Combinations that fail are left out, also if they are the first ones, and repeated when the study is
// continued.
func TestStudy_LeavesOutFailedCombinations(t *testing.T) {
	dir := t.TempDir()
	o := studyOptions()
	o.Design, o.Replications = explore.DesignFull, 2
	measured := 0
	o.SLOs = append(o.SLOs, time.Second) // nothing meets it, and the largest batch size is nearest
	for _, isBroken := range []bool{true, false} {
		study, err := explore.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		result, err := study.Run(t.Context(), func(
			ctx context.Context, b explore.Block,
		) ([]explore.MeasuredRun, error) {
			records, err := law(ctx, b)
			measured++
			if (measured <= 2 || b.BatchSize == 128) && isBroken {
				records[0].Status = explore.StatusFailed
			}
			return records, err
		}, nil)
		if err != nil {
			t.Fatalf("broken %t: %v", isBroken, err)
		}
		var text strings.Builder
		result.WriteText(&text)
		for _, answer := range result.Advice {
			if answer.Chosen.Runs == 0 {
				t.Errorf("broken %t: a combination that failed is advised: %+v", isBroken, answer)
			}
		}
		if isNamed := strings.Contains(text.String(), "\tfailed\t"); isNamed != isBroken {
			t.Errorf("broken %t: failed combinations in the table:\n%s", isBroken, &text)
		}
		runs := 12 - 2*result.Failed // of which none failed
		isNamed := strings.Contains(text.String(), "combinations failed and left out: the same command")
		if result.Runs != runs || isNamed != isBroken || isBroken != (result.Failed >= 2) ||
			isBroken && measured != runs+result.Failed {
			t.Errorf("broken %t: %+v after %d measurements, want %d runs:\n%s", isBroken, result, measured,
				runs, &text)
		}
	}

	study, err := explore.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = study.Run(t.Context(), func(ctx context.Context, b explore.Block) ([]explore.MeasuredRun, error) {
		records, err := law(ctx, b)
		records[0].Status = explore.StatusFailed
		return records, err
	}, nil)
	if err == nil || !strings.Contains(err.Error(), "the first runs failed") {
		t.Errorf("Run() of a broken script = %v, want an error", err)
	}
}

// The budget ends a study before a block that would not fit.
func TestStudy_KeepsItsBudget(t *testing.T) {
	o := studyOptions()
	o.Design, o.Budget = explore.DesignFull, 300*time.Second
	study, err := explore.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	spent := 0.0
	result, err := study.Run(t.Context(), func(ctx context.Context, b explore.Block) ([]explore.MeasuredRun, error) {
		records, err := law(ctx, b)
		spent += records[0].TotalSeconds
		return records, err
	}, nil)
	if err != nil || !strings.Contains(result.Reason, "budget") || spent > 320 || result.Runs < 5 {
		t.Errorf("%+v, %v after %.0f s; want the budget of 300 s used up", result, err, spent)
	}
}

func TestOpen_RejectsInvalidOptions(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*explore.Options)
		want   string
	}{
		{"no batch sizes", func(o *explore.Options) { o.Factors.BatchSizes = nil }, "--batch-sizes is missing"},
		{"batch size 0", func(o *explore.Options) { o.Factors.BatchSizes = []int{0} }, "--batch-sizes: 0 is not"},
		{"no epochs", func(o *explore.Options) { o.Epochs = 0 }, "--epochs: 0 is not"},
		{"adaptive without an SLO", func(o *explore.Options) { o.Design, o.SLOs = "adaptive", nil }, "--slo"},
		{"fraction of two factors", func(o *explore.Options) { o.Design = "fractional" }, "three factors"},
		{"too many cells", func(o *explore.Options) {
			o.Factors.BatchSizes = nil
			for i := range 20_000 {
				o.Factors.BatchSizes = append(o.Factors.BatchSizes, i+1)
			}
		}, "want at most"},
	} {
		o := studyOptions()
		c.change(&o)
		if _, err := explore.Open(t.TempDir(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}
