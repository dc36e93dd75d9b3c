package regress_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"courier/regress"
)

// streamOf reads a dataset in a random order that differs from time to time.
func streamOf(d *regress.Dataset, random *rand.Rand) *regress.Stream {
	return &regress.Stream{Features: d.Features, TargetName: d.TargetName, TargetUnit: d.TargetUnit,
		Read: func(visit func(row []float64, target float64) error) error {
			var row []float64
			for _, i := range random.Perm(d.Len()) {
				row = d.Row(i, row)
				if err := visit(row, d.Target[i]); err != nil {
					return err
				}
			}
			return nil
		}}
}

func boostingForStreams() regress.BoostingOptions {
	return regress.BoostingOptions{Trees: 20, Leaves: 15, RowShare: 0.7, FeatureShare: 0.8, Folds: -1, Seed: 5}
}

func TestFitBoostingStream_EqualsTheDataset(t *testing.T) {
	d := paperLike(600, 3)
	d.Group = nil
	for _, criterion := range []regress.Criterion{regress.Squared, regress.Absolute, regress.Huber} {
		o := boostingForStreams()
		o.Criterion = criterion
		want, got := fitBoth(t, d, o)
		if string(got.EncodeModel()) != string(want.EncodeModel()) {
			t.Errorf("%s: the stream's file differs from the dataset's", criterion)
		}
		got.Manifest.Examples.Digest = want.Manifest.Examples.Digest // the stream has seen bins
		if diff := cmp.Diff(want.Manifest, got.Manifest); diff != "" {
			t.Errorf("%s: manifests differ (-dataset +stream):\n%s", criterion, diff)
		}
	}
}

// Within a bin, a stream's examples are in another order than a dataset's: sums
// of floating-point numbers may differ by rounding.
func TestFitBoostingStream_PredictsAsTheDatasetDoes(t *testing.T) {
	d := continuous(3000, 6, 4)
	d.Columns[0][7] = math.Copysign(0, -1)
	o := boostingForStreams()
	o.RowShare, o.Criterion = 1, regress.Squared
	want, got := fitBoth(t, d, o)
	var predictors [2]*regress.Predictor
	for i, r := range []*regress.Regressor{want, got} {
		model, manifest := encode(t, r)
		p, err := regress.Load(model, manifest)
		if err != nil {
			t.Fatal(err)
		}
		predictors[i] = p
	}
	var row []float64
	for i := range d.Len() {
		row = d.Row(i, row)
		a, _ := predictors[0].Predict(row)
		b, _ := predictors[1].Predict(row)
		if math.Abs(a.Value-b.Value) > 1e-9 {
			t.Fatalf("example %d: the dataset's regressor predicts %g, the stream's %g", i, a.Value, b.Value)
		}
	}
}

func fitBoth(t *testing.T, d *regress.Dataset, o regress.BoostingOptions) (dataset, stream *regress.Regressor) {
	t.Helper()
	dataset, err := regress.FitBoosting(context.Background(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Threads = 3
	stream, err = regress.FitBoostingStream(context.Background(), streamOf(d, rand.New(rand.NewPCG(1, 2))), o)
	if err != nil {
		t.Fatal(err)
	}
	stream.Manifest.Boosting.Threads = dataset.Manifest.Boosting.Threads
	return dataset, stream
}

// Beyond the sample, bins follow from the examples with the smallest hashes, in
// whatever order they come.
func TestFitBoostingStream_KnowsNoOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("only computes, for long")
	}
	d := continuous(300_000, 5, 6)
	o := boostingForStreams()
	o.Trees = 2
	var files []string
	for seed := range uint64(2) {
		r, err := regress.FitBoostingStream(context.Background(), streamOf(d, rand.New(rand.NewPCG(seed, 2))), o)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(r.EncodeModel())+r.Manifest.Examples.Digest)
	}
	if files[0] != files[1] {
		t.Error("another order of 300,000 examples gives another file")
	}
}

func TestFitBoostingStream_RefusesExamples(t *testing.T) {
	broken := errors.New("the disk is gone")
	for name, c := range map[string]struct {
		change func(s *regress.Stream, o *regress.BoostingOptions)
		want   error
	}{
		"folds":    {func(_ *regress.Stream, o *regress.BoostingOptions) { o.Folds = 5 }, regress.ErrBadSettings},
		"patience": {func(_ *regress.Stream, o *regress.BoostingOptions) { o.Patience = 3 }, regress.ErrBadSettings},
		"features": {func(s *regress.Stream, _ *regress.BoostingOptions) { s.Features = nil }, regress.ErrBadExamples},
		"width":    {func(s *regress.Stream, _ *regress.BoostingOptions) { s.Features = s.Features[:3] }, regress.ErrBadExamples},
		"empty": {func(s *regress.Stream, _ *regress.BoostingOptions) {
			s.Read = func(func([]float64, float64) error) error { return nil }
		}, regress.ErrBadExamples},
		"few":      {func(_ *regress.Stream, o *regress.BoostingOptions) { o.MinExamples = 1000 }, regress.ErrTooFewExamples},
		"infinite": {func(s *regress.Stream, _ *regress.BoostingOptions) { instead(s, 0, math.Inf(1)) }, regress.ErrBadExamples},
		"another":  {func(s *regress.Stream, _ *regress.BoostingOptions) { instead(s, 1, 1e9) }, regress.ErrBadExamples},
		"NaN":      {func(s *regress.Stream, _ *regress.BoostingOptions) { instead(s, 1, math.NaN()) }, regress.ErrBadExamples},
		"source": {func(s *regress.Stream, _ *regress.BoostingOptions) {
			s.Read = func(func([]float64, float64) error) error { return broken }
		}, broken},
	} {
		s, o := streamOf(paperLike(96, 1), rand.New(rand.NewPCG(3, 4))), boostingForStreams()
		c.change(s, &o)
		if _, err := regress.FitBoostingStream(context.Background(), s, o); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := regress.FitBoostingStream(ctx, streamOf(continuous(5000, 5, 1), rand.New(rand.NewPCG(3, 4))), boostingForStreams()); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled fit returns %v", err)
	}
}

// instead replaces the first value of every reading from the given one on.
func instead(s *regress.Stream, from int, x float64) {
	read, readings := s.Read, 0
	s.Read = func(visit func(row []float64, target float64) error) error {
		readings++
		first := true
		return read(func(row []float64, target float64) error {
			if first && readings > from {
				row[0], first = x, false
			}
			return visit(row, target)
		})
	}
}

// BenchmarkFitBoostingStream makes its examples while they are read. The largest
// size runs where -short is absent.
func BenchmarkFitBoostingStream(b *testing.B) {
	for _, c := range []struct {
		name           string
		rows, features int
	}{{"rows=1e5/features=20", 100_000, 20}, {"rows=1e7/features=40", 10_000_000, 40}} {
		b.Run(c.name+"/trees=100/leaves=31", func(b *testing.B) {
			if testing.Short() && c.rows > 100_000 {
				b.Skip("a long one")
			}
			s := drawn(c.rows, c.features)
			o := regress.BoostingOptions{Trees: 100, Leaves: 31, MinLeaf: 20, Criterion: regress.Squared, Folds: -1, Threads: 2}
			for b.Loop() {
				if _, err := regress.FitBoostingStream(context.Background(), s, o); err != nil {
					b.Fatal(err)
				}
			}
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			b.ReportMetric(float64(memory.Sys)/(1<<30), "GiB")
		})
	}
}

// drawn is Friedman's first function of uniform features with noise, never held.
func drawn(rows, features int) *regress.Stream {
	s := &regress.Stream{TargetName: "y"}
	for f := range features {
		s.Features = append(s.Features, regress.Feature{Name: "x" + strconv.Itoa(f)})
	}
	s.Read = func(visit func(row []float64, target float64) error) error {
		random, x := rand.New(rand.NewPCG(3, 9)), make([]float64, features)
		for range rows {
			for f := range x {
				x[f] = random.Float64()
			}
			y := 10*math.Sin(math.Pi*x[0]*x[1]) + 20*(x[2]-0.5)*(x[2]-0.5) + 10*x[3] + 5*x[4] + random.NormFloat64()
			if err := visit(x, y); err != nil {
				return err
			}
		}
		return nil
	}
	return s
}
