package trainer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"courier/regress"
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
		load := schemas.Load{ConcurrentJobs: 1, Processes: float64(cpus), StableTimeRatio: 1}
		schemas.Foreign{
			CPU:    schemas.RatioOf(hog / 2).Tenths(),
			IOWait: schemas.RatioOf(0.5 * random.Float64()).Tenths(),
		}.Set(&load)
		for epoch := range 3 {
			all = append(all, Example{
				Job: fmt.Sprint("job-", run), Model: "m", Nodes: []string{"a"}, Weight: 1,
				Features: schemas.Features{BatchSize: batch, CPUs: cpus, Load: load},
				Value:    seconds * math.Exp(0.02*random.NormFloat64()),
				At:       time.Unix(int64(60*run+epoch), 0).UTC(),
			})
		}
	}
	return all
}

func columnsOf(chosen []schemas.ForeignColumn) (names []string) {
	for _, c := range chosen {
		names = append(names, c.String())
	}
	return names
}

func TestForeignColumns_LowerTheHeldOutError(t *testing.T) {
	if testing.Short() {
		t.Skip("a question of numbers, not of races")
	}
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
			target   string
			examples []Example
			want     []string
		}{
			{"a hog that slows jobs down", schemas.TargetEpochTime,
				examplesWithForeignLoad(seed, 120, 1), []string{"foreign_cpu_ratio"}},
			{"a hog without influence", schemas.TargetEpochTime, examplesWithForeignLoad(seed, 120, 0), nil},
			{"a third of the examples do not know it", schemas.TargetEpochTime,
				unknown(examplesWithForeignLoad(seed, 120, 1), 1./3), []string{"foreign_cpu_ratio"}},
			{"most examples do not know it", schemas.TargetEpochTime,
				unknown(examplesWithForeignLoad(seed, 120, 1), 0.6), nil},
			{"too few runs", schemas.TargetEpochTime, examplesWithForeignLoad(seed, 5, 1), nil},
			{"another target", schemas.TargetAccuracy, examplesWithForeignLoad(seed, 120, 1), nil},
		} {
			got := columnsOf(foreignColumns(t.Context(), c.target, c.examples))
			if !slices.Equal(got, c.want) {
				t.Errorf("seed %d, %s: columns %v, want %v", seed, c.name, got, c.want)
			}
		}
	}
}

func TestHeldOut_ErrorIsLowerWithTheForeignLoad(t *testing.T) {
	examples := examplesWithForeignLoad(1, 120, 1)
	columns := foreignColumns(t.Context(), schemas.TargetEpochTime, examples)
	with := heldOut(t.Context(), examples, columns)
	without := heldOut(t.Context(), examples, nil)
	if a, b := meanOf(with), meanOf(without); !(a < 0.7*b) {
		t.Errorf("mean absolute log error %.4f with the foreign load, want below 0.7 times %.4f without it",
			a, b)
	}
	t.Logf("mean absolute log error %.4f with the foreign load, want below 0.7 times %.4f without it",
		meanOf(with), meanOf(without))
}

// A fit on examples with foreign load predicts longer times with such load, extrapolates beyond the
// largest measured load, and treats an unknown load as the typical one.
func TestFit_PredictsLongerTimesWithForeignLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("a question of numbers, not of races")
	}
	examples := examplesWithForeignLoad(1, 120, 1)
	fitted, err := Fit(t.Context(), schemas.TargetEpochTime, examples, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := fitted.EncodeManifest()
	if err != nil {
		t.Fatal(err)
	}
	p, err := regress.Load(fitted.EncodeModel(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newTrialPredictor(p)
	if err != nil {
		t.Fatal(err)
	}
	predict := func(cpu schemas.Ratio) regress.Prediction {
		x := Example{Model: "m"}
		x.Features.BatchSize, x.Features.CPUs = 16, 2
		x.Features.Load = schemas.Load{ConcurrentJobs: 1, Processes: 2, ForeignCPURatio: cpu}
		x.Features.ModelCode, _ = e.encoder.Model("m")
		e.encoder.Fill(e.row, &x.Features)
		point, err := p.Predict(e.row)
		if err != nil {
			t.Fatal(err)
		}
		return point
	}
	calm, busy := predict(schemas.RatioOf(0)), predict(schemas.RatioOf(1))
	if ratio := busy.Value / calm.Value; ratio < 1.6 || ratio > 2.4 || busy.Extrapolated {
		t.Errorf("factor %.2f with foreign load on both processors, want about 2", ratio)
	}
	if v := predict(schemas.Ratio{}).Value; !(v >= calm.Value && v <= busy.Value) {
		t.Errorf("prediction with unknown load: %.2f s, want %.2f to %.2f", v, calm.Value, busy.Value)
	}

	few := slices.DeleteFunc(examplesWithForeignLoad(1, 160, 1), func(x Example) bool {
		return x.Features.Load.ForeignCPURatio.Value > 0.5
	})
	if fitted, err = Fit(t.Context(), schemas.TargetEpochTime, few, Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if p, err = regress.Compile(fitted); err != nil {
		t.Fatal(err)
	}
	if e, err = newTrialPredictor(p); err != nil {
		t.Fatal(err)
	}
	if !predict(schemas.RatioOf(1)).Extrapolated || predict(schemas.RatioOf(0.5)).Extrapolated {
		t.Error("want extrapolation above the highest measured load, and none below it")
	}
}

// New foreign load is no reason to scale older times; a slower machine is.
func TestForeignExplains_DistinguishesForeignLoadFromASlowerMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("a question of numbers, not of races")
	}
	for seed := range uint64(5) {
		calm := func(hog float64) []Example {
			return slices.DeleteFunc(examplesWithForeignLoad(seed, 300, 1), func(x Example) bool {
				return x.Features.Load.ForeignCPURatio != schemas.RatioOf(hog/2)
			})
		}
		before, since := calm(0), calm(2)
		from := before[len(before)-1].At.Add(time.Minute)
		slower := slices.Clone(before)
		for i := range slower {
			slower[i].Value *= 2
		}
		for _, later := range [][]Example{since, slower} {
			for i := range later {
				later[i].At = later[i].At.Add(from.Sub(time.Unix(0, 0)))
				later[i].Job = "late-" + later[i].Job
			}
		}
		drifts := []knownDrift{{DriftScope{Kind: ScopeAll}, from, 1.75}}
		for _, c := range []struct {
			name  string
			since []Example
			want  bool
		}{
			{"a hog has come", since, true},
			{"the machine is slower", slower, false},
		} {
			all := append(slices.Clone(before), c.since...)
			if got := foreignExplains(t.Context(), all, correctStale(all, drifts), drifts); got != c.want {
				t.Errorf("seed %d, %s: foreignExplains = %t, want %t", seed, c.name, got, c.want)
			}
		}
	}
}
