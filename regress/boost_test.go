package regress_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"courier/regress"
)

// boosting fits and loads a small sum of trees.
func boosting(
	t *testing.T, d *regress.Dataset, o regress.BoostingOptions,
) (*regress.Regressor, *regress.Predictor) {
	t.Helper()
	r, err := regress.FitBoosting(context.Background(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	model, manifest := encode(t, r)
	p, err := regress.Load(model, manifest)
	if err != nil {
		t.Fatal(err)
	}
	return r, p
}

func smallBoosting() regress.BoostingOptions {
	return regress.BoostingOptions{
		Trees:     60,
		Leaves:    8,
		MinLeaf:   2,
		Criterion: regress.Squared,
		Transform: regress.Log,
		Seed:      1,
	}
}

func TestFitBoosting_FitsItsExamples(t *testing.T) {
	d := paperLike(288, 1)
	for _, c := range []struct {
		criterion regress.Criterion
		level     float64
	}{{regress.Squared, 0}, {regress.Absolute, 0}, {regress.Huber, 0}, {regress.Huber, 0.5}, {
		regress.Quantile, 0.5,
	}} {
		for _, depth := range []int{0, 4} {
			o := smallBoosting()
			o.Criterion, o.Level = c.criterion, c.level
			if o.MaxDepth = depth; depth > 0 {
				o.Leaves = 0
			}
			r, p := boosting(t, d, o)
			if r2 := r.Manifest.Scores.R2; r2.Value < 0.85 || !(r2.Low <= r2.Value &&
				r2.Value <= r2.High) {
				t.Errorf("%s %g: out-of-fold R2 = %+v, want above 0.85 within its interval",
					c.criterion, c.level, r2)
			}
			sum := 0.0
			for i := range d.Len() {
				got, err := p.Predict(d.Row(i, nil))
				if err != nil {
					t.Fatal(err)
				}
				sum += math.Abs(got.Value/d.Target[i]-1) / float64(d.Len())
			}
			if sum > 0.1 {
				t.Errorf("%s %g: mean error on its own examples = %.3f, want under 0.1",
					c.criterion, c.level, sum)
			}
		}
	}
}

func encodeBoosting(
	t *testing.T, d *regress.Dataset, o regress.BoostingOptions,
) (model, manifest []byte) {
	t.Helper()
	r, err := regress.FitBoosting(context.Background(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, r)
}

func TestFitBoosting_BytesDependOnExamplesAndSeedOnly(t *testing.T) {
	d := paperLike(120, 2)
	shuffled := d.Subset(rand.New(rand.NewPCG(1, 1)).Perm(d.Len()))
	o := smallBoosting()
	o.RowShare, o.FeatureShare, o.Patience, o.Threads = 0.7, 0.6, 5, 1
	want, wantManifest := encodeBoosting(t, d, o)
	for name, fit := range map[string]struct {
		data    *regress.Dataset
		threads int
	}{"two threads": {d, 2}, "another order": {
		shuffled, 1,
	}, "five threads, another order": {shuffled, 5}} {
		o.Threads = fit.threads
		model, manifest := encodeBoosting(t, fit.data, o)
		if !bytes.Equal(model, want) || !bytes.Equal(manifest, wantManifest) {
			t.Errorf("%s: model or manifest differ from the first fit", name)
		}
	}
	o.Seed++
	if model, _ := encodeBoosting(t, d, o); bytes.Equal(model, want) {
		t.Error("bytes do not depend on the seed")
	}
}

// The number of examples is large enough for several threads.
func TestFitBoosting_ThreadsAgreeOnManyExamples(t *testing.T) {
	d := continuous(40_000, 6, 3)
	for _, weighted := range []bool{false, true} {
		if weighted {
			random := rand.New(rand.NewPCG(4, 4))
			for range d.Target {
				d.Weight = append(d.Weight, 0.1+random.Float64())
			}
		}
		for _, criterion := range []regress.Criterion{regress.Squared, regress.Absolute} {
			o := regress.BoostingOptions{
				Trees:     5,
				RowShare:  0.9,
				Criterion: criterion,
				Folds:     -1,
				Threads:   1,
			}
			want, _ := encodeBoosting(t, d, o)
			o.Threads = 3
			if got, _ := encodeBoosting(t, d, o); !bytes.Equal(got, want) {
				t.Errorf("%s, weighted %v: three threads give other bytes than one", criterion,
					weighted)
			}
		}
	}
}

// continuous makes examples of features without levels: Friedman's first
// function (1991), and noise.
func continuous(examples, features int, seed uint64) *regress.Dataset {
	random := rand.New(rand.NewPCG(seed, 9))
	d := &regress.Dataset{TargetName: "y", Columns: make([][]float64, features)}
	for f := range features {
		d.Features = append(d.Features, regress.Feature{Name: "x" + string(rune('a'+f))})
		d.Columns[f] = make([]float64, examples)
		for i := range examples {
			d.Columns[f][i] = random.Float64()
		}
	}
	for i := range examples {
		x := func(f int) float64 { return d.Columns[f][i] }
		d.Target = append(d.Target,
			10*math.Sin(math.Pi*x(0)*x(1))+20*(x(2)-0.5)*(x(2)-0.5)+10*x(3)+5*x(4)+
				random.NormFloat64())
	}
	return d
}

func TestFitBoosting_RefusesSettings(t *testing.T) {
	d := paperLike(96, 1)
	for _, c := range []struct {
		field  string
		change func(o *regress.BoostingOptions)
	}{
		{"trees", func(o *regress.BoostingOptions) { o.Trees = 0 }},
		{"leaves", func(o *regress.BoostingOptions) { o.Leaves = 1 }},
		{"leaves", func(o *regress.BoostingOptions) { o.Leaves = 5000 }},
		{"max_depth", func(o *regress.BoostingOptions) { o.MaxDepth = -1 }},
		{"max_depth", func(o *regress.BoostingOptions) { o.MaxDepth = 65 }},
		{"min_leaf", func(o *regress.BoostingOptions) { o.MinLeaf = -1 }},
		{"learning_rate", func(o *regress.BoostingOptions) { o.LearningRate = 1.5 }},
		{"learning_rate", func(o *regress.BoostingOptions) { o.LearningRate = math.NaN() }},
		{"row_share", func(o *regress.BoostingOptions) { o.RowShare = -0.5 }},
		{"feature_share", func(o *regress.BoostingOptions) { o.FeatureShare = 2 }},
		{"patience", func(o *regress.BoostingOptions) { o.Patience = -1 }},
		{"criterion", func(o *regress.BoostingOptions) { o.Criterion = "gini" }},
		{"level", func(o *regress.BoostingOptions) { o.Criterion = regress.Quantile }},
		{"level", func(o *regress.BoostingOptions) { o.Criterion, o.Level = regress.Quantile, 1 }},
		{
			"level",
			func(o *regress.BoostingOptions) { o.Criterion, o.Level = regress.Huber, math.NaN() },
		},
		{"level", func(o *regress.BoostingOptions) { o.Level = 0.5 }},
		{"transform", func(o *regress.BoostingOptions) { o.Transform = "sqrt" }},
		{"folds", func(o *regress.BoostingOptions) { o.Folds = 1 }},
		{"threads", func(o *regress.BoostingOptions) { o.Threads = -1 }},
	} {
		o := smallBoosting()
		c.change(&o)
		_, err := regress.FitBoosting(context.Background(), d, o)
		if !errors.Is(err, regress.ErrBadOptions) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: FitBoosting = %v, want ErrBadOptions that names the field", c.field, err)
		}
	}
}

func TestFitBoosting_KeepsMonotoneOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for _, criterion := range []regress.Criterion{
		regress.Squared, regress.Absolute, regress.Huber, regress.Quantile,
	} {
		d := paperLike(192, 4)
		d.Features[0].Monotone, d.Features[2].Monotone = -1, 1
		for i := range d.Target { // noise that an unconstrained tree would fit
			d.Target[i] *= math.Exp(1.5 * random.NormFloat64())
		}
		o := smallBoosting()
		if o.Criterion = criterion; criterion == regress.Quantile {
			o.Level = 0.8
		}
		_, p := boosting(t, d, o)
		free := d.Subset(seq(d.Len()))
		free.Features = slices.Clone(d.Features)
		free.Features[0].Monotone, free.Features[2].Monotone = 0, 0
		_, unbound := boosting(t, free, o)
		if broken := walk(t, p); broken != 0 {
			t.Errorf("%s: %d steps against the signs of the features, want 0", criterion, broken)
		}
		if walk(t, unbound) == 0 {
			t.Errorf("%s: no step violates the signs without constraints, so the test is void",
				criterion)
		}
	}
}

func TestFitBoosting_DegenerateData(t *testing.T) {
	for name, d := range degenerate() {
		for _, transform := range []regress.Transform{regress.None, regress.Log} {
			for _, criterion := range []regress.Criterion{
				regress.Absolute, regress.Squared, regress.Huber,
			} {
				o := smallBoosting()
				o.Trees, o.LearningRate, o.Transform, o.Criterion = 8, 0.5, transform, criterion
				r, p := boosting(t, d, o)
				if r.Manifest.Constant != (name == "constant target") {
					t.Errorf("%s: Constant = %v, want true only for a constant target",
						name, r.Manifest.Constant)
				}
				got, err := p.Predict(d.Row(0, nil))
				if err != nil || !(math.Abs(got.Value/d.Target[0]-1) < 0.6) {
					t.Errorf("%s, %s, %s: Predict = %g, %v, want about %g", name, transform,
						criterion, got.Value, err, d.Target[0])
				}
			}
		}
	}
}

func TestFitBoosting_StopsWithItsContext(t *testing.T) {
	for _, patience := range []int{0, 50_000} {
		ctx, cancel := context.WithCancel(context.Background())
		o := smallBoosting()
		o.Trees, o.Patience = 100_000, patience
		last := 0
		o.Progress = func(done, planned int) {
			if done != last+1 || planned != 2_200_000*(1+min(patience, 1)) {
				t.Errorf("progress = %d of %d trees after %d, want one more of all planned trees",
					done, planned, last)
			}
			last = done
			cancel()
		}
		if _, err := regress.FitBoosting(ctx, paperLike(96, 1), o); !errors.Is(err,
			context.Canceled) {
			t.Errorf("FitBoosting = %v, want context.Canceled", err)
		}
		if last > 2 {
			t.Errorf("%d trees were grown after cancellation, want at most 1", last-1)
		}
	}
}

// With pure noise the loss on held-out configurations soon rises.
func TestFitBoosting_PatienceStopsBeforeItOverfits(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	d := continuous(200, 5, 5)
	for i := range d.Target {
		d.Target[i] += 8 * random.NormFloat64()
	}
	o := smallBoosting()
	o.Trees, o.Transform, o.Patience = 400, regress.None, 20
	done, planned := 0, 0
	o.Progress = func(d, p int) { done, planned = d, p }
	stopped, _ := boosting(t, d, o)
	if done != planned || planned != 4800 {
		t.Errorf("progress ends with %d of %d, want all 4800", done, planned)
	}
	o.Patience = 0
	all, _ := boosting(t, d, o)
	if trees := bytes.Count(stopped.EncodeModel(), []byte("Tree=")); trees < 2 || trees > 200 {
		t.Errorf("%d of 400 trees were grown, want a few", trees)
	}
	if a, b := stopped.Manifest.Scores.MSE.Value, all.Manifest.Scores.MSE.Value; a > 0.9*b {
		t.Errorf("MSE = %.1f, without stopping %.1f: want a tenth less at least", a, b)
	}
}

// The share of new targets below a predicted quantile equals its level.
func TestFitBoosting_QuantilesHoldTheirShare(t *testing.T) {
	d, fresh := continuous(3000, 5, 7), continuous(4000, 5, 8)
	for _, level := range []float64{0.05, 0.25, 0.5, 0.75, 0.95} {
		r, err := regress.FitBoosting(context.Background(), d, regress.BoostingOptions{
			Trees: 100, Leaves: 6, MinLeaf: 20, Folds: -1,
			Criterion: regress.Quantile, Level: level,
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := regress.Compile(r)
		if err != nil {
			t.Fatal(err)
		}
		below := 0.0
		for i := range fresh.Len() {
			got, err := p.Predict(fresh.Row(i, nil))
			if err != nil {
				t.Fatal(err)
			}
			if fresh.Target[i] <= got.Value {
				below += 1 / float64(fresh.Len())
			}
		}
		if math.Abs(below-level) > 0.05 {
			t.Errorf("share of new targets below the quantile = %.3f, want about %g", below, level)
		}
	}
}
