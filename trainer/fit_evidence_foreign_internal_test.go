package trainer

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// fitEpochTimes fits epoch times by evidence; before may be nil.
func fitEpochTimes(t *testing.T, examples []Example, before *regress.Manifest) *regress.Manifest {
	t.Helper()
	r, err := fitAfter(t.Context(), schemas.TargetEpochTime, examples, before, Options{
		Method: MethodEvidence,
		Seed:   1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &r.Manifest
}

// heldOutEvidence returns the relative error of runs predicted by other runs of their
// configuration.
func heldOutEvidence(t *testing.T, m *regress.Manifest) float64 {
	t.Helper()
	var all []evidence.Evaluation
	if err := json.Unmarshal(m.Evaluations, &all); err != nil || len(all) != 1 {
		t.Fatalf("%d evaluations, %v, want 1", len(all), err)
	}
	return all[0].Measured.RelativeError
}

func TestFitEvidence_PredictsLongerTimesWithForeignLoad(t *testing.T) {
	for seed := range uint64(3) {
		examples := examplesWithForeignLoad(seed, 120, 1)
		m := fitEpochTimes(t, examples, nil)
		if got := columnsOf(foreignOf(m)); !slices.Equal(got, []string{"foreign_cpu_ratio"}) {
			t.Fatalf("seed %d: columns %v, want the foreign CPU", seed, got)
		}

		p, corrections, err := evidenceOf(m).Compile()
		if err != nil {
			t.Fatal(err)
		}
		epoch := func(foreign float64) evidence.EpochTime {
			c := evidence.Configuration{Model: "m", BatchSize: 16, CPUs: 2}
			c.ConcurrentJobs, c.ForeignCPURatio = 1, foreign
			return p.Epochs(corrections, c)
		}
		calm, between, busy, beyond := epoch(0), epoch(0.8), epoch(1), epoch(3)
		if ratio := math.Exp(busy.Location - calm.Location); !(ratio > 1.8 && ratio < 2.2) {
			t.Errorf("seed %d: factor %.2f with foreign load on both processors, want 2", seed, ratio)
		}
		if ratio := math.Exp(between.Location - calm.Location); !(ratio > 1.6 && ratio < 2) {
			t.Errorf("seed %d: factor %.2f with foreign load on 1.6 processors, want 1.8", seed, ratio)
		}
		for _, e := range []*evidence.EpochTime{&calm, &between, &busy} {
			if !e.Support.Promisable() {
				t.Errorf("seed %d: support between measured loads = %s, want a promisable one",
					seed, e.Support)
			}
		}
		if beyond.Support.Promisable() {
			t.Errorf("seed %d: support above the measured loads = %s, want no promisable one",
				seed, beyond.Support)
		}

		blind := slices.Clone(examples)
		for i := range blind {
			schemas.Foreign{}.Set(&blind[i].Features.Load)
		}
		with, without := heldOutEvidence(t, m), heldOutEvidence(t, fitEpochTimes(t, blind, nil))
		if !(with < 0.3*without) {
			t.Errorf("seed %d: held-out error %.3f with the foreign load, want below 0.3 times %.3f without it",
				seed, with, without)
		}
		t.Logf("seed %d: held-out error %.3f with the foreign load, want below 0.3 times %.3f without it",
			seed, with, without)
	}
}

func TestFitEvidence_IgnoresForeignLoadWithoutEffect(t *testing.T) {
	if m := fitEpochTimes(t, examplesWithForeignLoad(1, 120, 0), nil); len(foreignOf(m)) > 0 {
		t.Errorf("columns %v, want none", columnsOf(foreignOf(m)))
	}
}

// Columns are kept unless they raise the error, because without them all configurations change.
func TestFitEvidence_KeepsItsColumns(t *testing.T) {
	examples := examplesWithForeignLoad(1, 120, 1)
	first := fitEpochTimes(t, examples, nil)
	calm := slices.DeleteFunc(slices.Clone(examples), func(x Example) bool {
		return x.Features.Load.ForeignCPURatio.Value > 0
	})
	if columns := foreignColumns(t.Context(), schemas.TargetEpochTime, calm); len(columns) > 0 {
		t.Fatalf("columns %v for examples with constant load, want none", columnsOf(columns))
	}
	next := fitEpochTimes(t, calm, first)
	if got, want := foreignOf(next), foreignOf(first); !slices.Equal(columnsOf(got), columnsOf(want)) {
		t.Errorf("columns %v, want %v", columnsOf(got), columnsOf(want))
	}
}

// A load that changes from epoch to epoch explains past epochs but not future ones,
// because it is unknown at the start of a job.
func TestFitEvidence_IgnoresAShortLivedLoad(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	examples := examplesWithForeignLoad(1, 120, 0)
	for i := range examples {
		foreign := float64(random.IntN(6)) / 10
		schemas.Foreign{CPU: schemas.RatioOf(foreign)}.Set(&examples[i].Features.Load)
		examples[i].Value *= 1 + foreign
	}
	if columns := foreignColumns(t.Context(), schemas.TargetEpochTime, examples); len(columns) == 0 {
		t.Fatal("the load does not lower the held-out error, although it lengthens each epoch")
	}

	m := fitEpochTimes(t, examples, nil)
	if len(foreignOf(m)) > 0 {
		t.Errorf("columns %v, want none", columnsOf(foreignOf(m)))
	}
	var all []evidence.Evaluation
	if err := json.Unmarshal(m.Evaluations, &all); err != nil || len(all) != 1 {
		t.Fatalf("%d evaluations, %v, want 1", len(all), err)
	}
	if c := all[0].Measured.Coverage; c < 0.9 {
		t.Errorf("coverage of the bound at 0.95 = %.2f of the held-out runs, want at least 0.9", c)
	}
}
