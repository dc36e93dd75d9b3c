package advisor

import (
	"context"
	"math/rand/v2"
	"testing"

	"courier/regress"
	"courier/schemas"
)

// slopedRegressor predicts times that grow with batch size and load, the more the larger slope is.
func slopedRegressor(t *testing.T, slope float64) *LoadedRegressor {
	t.Helper()
	encoder := schemas.NewEncoder(schemas.TargetEpochTime, []string{"m", "n"}, []schemas.Hardware{
		{Cores: 2, Speed: 1e9},
		{Cores: 8, Speed: 2e9},
	})
	d := &regress.Dataset{TargetName: schemas.TargetEpochTime}
	for _, c := range encoder.Columns() {
		d.Features = append(d.Features, regress.Feature{
			Name:       c.String(),
			Continuous: c.Continuous(),
			Levels:     encoder.Levels(c),
		})
		d.Columns = append(d.Columns, nil)
	}
	row := make([]float64, len(d.Columns))
	for n := range 400 {
		f := settingOf(n)
		f.Node.Speed = []float64{1e9, 2e9}[n/7%2]
		encoder.Fill(row, &f)
		for i, x := range row {
			d.Columns[i] = append(d.Columns[i], x)
		}
		d.Target, d.Group = append(d.Target,
			1+slope*float64(f.BatchSize)*f.Load.ConcurrentJobs/f.Node.Cores), append(d.Group, n)
	}
	fitted, err := regress.FitLaw(context.Background(), d, regress.LawOptions{
		Transform: regress.Log,
		Folds:     -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := regress.Compile(fitted)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRegressor(p, "digest")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// settingOf returns the n-th of many features that differ in every field.
func settingOf(n int) schemas.Features {
	jobs := float64(1 + n%5)
	return schemas.Features{
		BatchSize:  uint32(4 + n%11),
		CPUs:       uint32(1 + n%3),
		EpochsDone: uint32(n % 2),
		ModelCode:  float64(n % 2),
		Load:       schemas.Load{ConcurrentJobs: jobs, Processes: jobs + float64(n%4)},
		Node: schemas.NodeCode{
			Cores:          []float64{2, 8}[n/3%2],
			Speed:          1e9 + 1e7*float64(n%101),
			OutsideSupport: n%13 == 0,
		},
	}
}

// A cached prediction equals a computed one, with more features and regressors than the cache has
// slots.
func TestPredictionCache_ReturnsComputedPredictions(t *testing.T) {
	all := []*LoadedRegressor{slopedRegressor(t, 0.1), slopedRegressor(t, 3)}
	random, kept, found := rand.New(rand.NewPCG(1, 2)), predictionCache{}, 0
	for range 20 * predictionCacheSlots {
		f, r := settingOf(random.IntN(predictionCacheSlots)), all[random.IntN(len(all))]
		if s := kept.slot(r, &f); s.by == r.serial && s.of == f {
			found++
		}
		got, ok := r.predict(&f, &kept)
		if want, wantOK := r.predict(&f, &predictionCache{}); got != want || ok != wantOK {
			t.Fatalf("cached prediction %+v, %t for %+v, want %+v, %t", got, ok, f, want, wantOK)
		}
	}
	if found < 2*predictionCacheSlots {
		t.Errorf("%d of %d predictions were in the cache, want at least %d",
			found, 20*predictionCacheSlots, 2*predictionCacheSlots)
	}
}
