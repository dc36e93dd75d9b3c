package trainer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"courier/regress/evidence"
	"courier/schemas"
)

// foreignCores is the CPU demand of foreign processes on a node with two processors.
var foreignCores = []float64{0, 0.6, 1, 2}

// examplesWithForeignLoad returns runs of three epochs on a node with two processors, with foreign
// CPU load, and foreign storage load without effect. effect is the share of the CPU load that slows
// jobs down.
func examplesWithForeignLoad(seed uint64, runs int, effect float64) (all []Example) {
	random := rand.New(rand.NewPCG(seed, 1))
	for run := range runs {
		batch, cpus := []uint32{4, 16, 64}[random.IntN(3)], uint32(1+random.IntN(2))
		hog := foreignCores[random.IntN(len(foreignCores))]
		wanted := float64(cpus) + effect*hog
		seconds := 4 * (1 + 8/float64(batch)) / float64(cpus) * max(1, wanted/2) *
			math.Exp(0.03*random.NormFloat64())
		load := schemas.Load{ConcurrentJobs: 1, Processes: float64(cpus)}
		schemas.Foreign{
			CPU:    schemas.RatioOf(hog / 2).Tenths(),
			IOWait: schemas.RatioOf(0.5 * random.Float64()).Tenths(),
		}.Set(&load)
		for epoch := range 3 {
			all = append(all, Example{
				Job: fmt.Sprint("job-", run), Model: "m", Nodes: []string{"a"},
				Features: schemas.Features{
					BatchSize: batch, CPUs: cpus, Load: load, EpochsDone: uint32(epoch + 1),
				},
				Value: seconds * math.Exp(0.02*random.NormFloat64()),
				At:    time.Unix(int64(60*run+epoch), 0).UTC(),
			})
		}
	}
	return all
}

func foreignColumns(examples []Example) schemas.ForeignColumns {
	return newForeignTrial(examples).choose()
}

func columnsOf(chosen schemas.ForeignColumns) (names []string) {
	for _, c := range chosen {
		names = append(names, c.Name)
	}
	return names
}

func TestForeignColumns_LowerTheHeldOutError(t *testing.T) {
	unknown := func(all []Example, share float64) []Example {
		for i := range all {
			if float64(i) < share*float64(len(all)) {
				schemas.Foreign{}.Set(&all[i].Features.Load)
			}
		}
		return all
	}
	for seed := range uint64(5) {
		for _, c := range []struct {
			name     string
			examples []Example
			want     []string
		}{
			{"a hog that slows jobs down",
				examplesWithForeignLoad(seed, 120, 1), []string{"foreign_cpu_ratio"}},
			{"a hog without influence", examplesWithForeignLoad(seed, 120, 0), nil},
			{"a third of the examples do not know it",
				unknown(examplesWithForeignLoad(seed, 120, 1), 1./3), []string{"foreign_cpu_ratio"}},
			{"most examples do not know it",
				unknown(examplesWithForeignLoad(seed, 120, 1), 0.6), nil},
			{"too few runs", examplesWithForeignLoad(seed, 5, 1), nil},
		} {
			got := columnsOf(foreignColumns(c.examples))
			if !slices.Equal(got, c.want) {
				t.Errorf("seed %d, %s: columns %v, want %v", seed, c.name, got, c.want)
			}
		}
	}
}

func TestFit_PredictsLongerTimesWithForeignLoad(t *testing.T) {
	for seed := range uint64(3) {
		examples := examplesWithForeignLoad(seed, 120, 1)
		m := fitEpochTimes(t, examples, nil)
		if got := columnsOf(foreignOf(m)); !slices.Equal(got, []string{"foreign_cpu_ratio"}) {
			t.Fatalf("seed %d: columns %v, want the foreign CPU", seed, got)
		}

		p, err := evidence.Compile(stateOf(m).Regressor)
		if err != nil {
			t.Fatal(err)
		}
		epoch := func(foreign float64) evidence.EpochTime {
			c := evidence.Configuration{Model: "m", BatchSize: 16, CPUs: 2}
			c.ConcurrentJobs, c.ForeignCPURatio = 1, foreign
			return p.Epochs(c, 1)
		}
		calm, between, busy, beyond := epoch(0), epoch(0.8), epoch(1), epoch(3)
		if ratio := math.Exp(busy.Location - calm.Location); !(ratio > 1.75 && ratio < 2.3) {
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
		with, without := *m.HeldOutError, *fitEpochTimes(t, blind, nil).HeldOutError
		if !(with < 0.3*without) {
			t.Errorf("seed %d: held-out error %.3f with the foreign load, want below 0.3 times %.3f without it",
				seed, with, without)
		}
		t.Logf("seed %d: held-out error %.3f with the foreign load, want below 0.3 times %.3f without it",
			seed, with, without)
	}
}

// Columns are kept unless they raise the error, because without them all configurations change.
func TestFit_KeepsItsColumns(t *testing.T) {
	examples := examplesWithForeignLoad(1, 120, 1)
	first := fitEpochTimes(t, examples, nil)
	calm := slices.DeleteFunc(slices.Clone(examples), func(x Example) bool {
		return x.Features.Load.ForeignCPURatio.Value > 0
	})
	if columns := foreignColumns(calm); len(columns) > 0 {
		t.Fatalf("columns %v for examples with constant load, want none", columnsOf(columns))
	}
	next := fitEpochTimes(t, calm, first)
	if got, want := foreignOf(next), foreignOf(first); !slices.Equal(columnsOf(got), columnsOf(want)) {
		t.Errorf("columns %v, want %v", columnsOf(got), columnsOf(want))
	}
}

// A load that changes from epoch to epoch explains past epochs but not future ones,
// because it is unknown at the start of a job.
func TestFit_IgnoresAShortLivedLoad(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	examples := examplesWithForeignLoad(1, 120, 0)
	for i := range examples {
		foreign := float64(random.IntN(6)) / 10
		schemas.Foreign{CPU: schemas.RatioOf(foreign)}.Set(&examples[i].Features.Load)
		examples[i].Value *= 1 + foreign
	}
	if columns := foreignColumns(examples); len(columns) == 0 {
		t.Fatal("the load does not lower the held-out error, although it lengthens each epoch")
	}

	m := fitEpochTimes(t, examples, nil)
	if len(foreignOf(m)) > 0 {
		t.Errorf("columns %v, want none", columnsOf(foreignOf(m)))
	}
}
