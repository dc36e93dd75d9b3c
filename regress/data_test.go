package regress_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"courier/regress"
)

// underRace reports whether the race detector is on. Numeric code is ten times slower under it, so
// tests of accuracy alone are skipped.
var underRace bool

func skipUnderRace(t *testing.T) {
	t.Helper()
	if underRace {
		t.Skip("a question of numbers, not of races")
	}
}

// paperLike returns runs like the paper's: batch, cpus, jobs, network and
// processes on their levels, the 96 configurations in turn until there are enough, with noise.
func paperLike(examples int, seed uint64) *regress.Dataset {
	random := rand.New(rand.NewPCG(seed, 7))
	d := &regress.Dataset{
		Features: []regress.Feature{
			{Name: "batch_size"}, {Name: "cpus"}, {Name: "concurrent_jobs"},
			{Name: "network", Levels: []string{"lenet5", "simplenet"}}, {Name: "processes"},
		},
		Columns:    make([][]float64, 5),
		TargetName: "epoch_time", TargetUnit: "s",
	}
	for i := range examples {
		setting := i % 96
		batch := []float64{64, 128, 256, 512}[setting%4]
		cpus := []float64{1, 2, 4, 8}[setting/4%4]
		jobs := []float64{1, 3, 5}[setting/16%3]
		network := float64(setting / 48 % 2)
		mean := (600000/batch/math.Pow(cpus, 0.7)*(1+0.2*jobs) + 300*jobs) * (1 - 0.4*network) / 10
		for f, x := range []float64{batch, cpus, jobs, network, cpus * jobs} {
			d.Columns[f] = append(d.Columns[f], x)
		}
		d.Target = append(d.Target, mean*math.Exp(0.06*random.NormFloat64()))
		d.Group = append(d.Group, setting)
	}
	return d
}
