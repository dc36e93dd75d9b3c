package regress_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"courier/regress"
)

// forest fits and loads a small forest.
func forest(
	t *testing.T, d *regress.Dataset, o regress.ForestOptions,
) (*regress.Regressor, *regress.Predictor) {
	t.Helper()
	r, err := regress.FitForest(context.Background(), d, o)
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

func encode(t testing.TB, r *regress.Regressor) (model, manifest []byte) {
	t.Helper()
	manifest, err := r.EncodeManifest()
	if err != nil {
		t.Fatal(err)
	}
	return r.EncodeModel(), manifest
}

func small() regress.ForestOptions {
	return regress.ForestOptions{
		Trees:     60,
		MaxDepth:  6,
		Bootstrap: true,
		Transform: regress.Log,
		Seed:      1,
	}
}

func TestFitForest_FitsItsExamples(t *testing.T) {
	d := paperLike(288, 1)
	r, p := forest(t, d, small())
	if r2 := r.Manifest.Scores.R2; r2.Value < 0.8 || !(r2.Low <= r2.Value && r2.Value <= r2.High) {
		t.Errorf("out-of-fold R2 = %+v, want above 0.8 within its interval", r2)
	}
	for _, c := range r.Manifest.Coverage {
		if c.Ratio.High < c.Level || c.Refused > 0 {
			t.Errorf("coverage of the bound at %g = %+v, want a range that includes it",
				c.Level, c.Ratio)
		}
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
		t.Errorf("mean error on its own examples = %.3f, want under 0.1", sum)
	}
}

func TestFitForest_BytesDependOnExamplesAndSeedOnly(t *testing.T) {
	d := paperLike(120, 2)
	order := rand.New(rand.NewPCG(1, 1)).Perm(d.Len())
	shuffled := d.Subset(order)
	for i := range shuffled.Group { // other numbers for the same configurations
		shuffled.Group[i] = 1000 - shuffled.Group[i]
	}
	o := small()
	o.Threads = 1
	want, wantManifest := encodeFit(t, d, o)
	for name, fit := range map[string]struct {
		data    *regress.Dataset
		threads int
	}{"two threads": {d, 2}, "another order": {
		shuffled, 1,
	}, "five threads, another order": {shuffled, 5}} {
		o.Threads = fit.threads
		model, manifest := encodeFit(t, fit.data, o)
		if !bytes.Equal(model, want) || !bytes.Equal(manifest, wantManifest) {
			t.Errorf("%s: model or manifest differ from the first fit", name)
		}
	}
	o.Seed++
	if model, _ := encodeFit(t, d, o); bytes.Equal(model, want) {
		t.Error("bytes do not depend on the seed")
	}
}

func encodeFit(t *testing.T, d *regress.Dataset, o regress.ForestOptions) (model, manifest []byte) {
	t.Helper()
	r, err := regress.FitForest(context.Background(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, r)
}

func TestFitForest_RefusesSettings(t *testing.T) {
	d := paperLike(96, 1)
	for _, c := range []struct {
		field  string
		change func(o *regress.ForestOptions)
	}{
		{"trees", func(o *regress.ForestOptions) { o.Trees = 0 }},
		{"max_depth", func(o *regress.ForestOptions) { o.MaxDepth = 0 }},
		{"max_depth", func(o *regress.ForestOptions) { o.MaxDepth = 65 }},
		{"min_leaf", func(o *regress.ForestOptions) { o.MinLeaf = -1 }},
		{"features_per_split", func(o *regress.ForestOptions) { o.FeaturesPerSplit = 6 }},
		{"criterion", func(o *regress.ForestOptions) { o.Criterion = "gini" }},
		{"transform", func(o *regress.ForestOptions) { o.Transform = "sqrt" }},
		{"folds", func(o *regress.ForestOptions) { o.Folds = 1 }},
		{"folds is 97 for 96 configurations", func(o *regress.ForestOptions) { o.Folds = 97 }},
		{"threads", func(o *regress.ForestOptions) { o.Threads = -1 }},
	} {
		o := small()
		c.change(&o)
		_, err := regress.FitForest(context.Background(), d, o)
		if !errors.Is(err, regress.ErrBadOptions) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: FitForest = %v, want ErrBadOptions that names the field", c.field, err)
		}
	}
}

func TestFitForest_RefusesExamples(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(d *regress.Dataset)
	}{
		{"feature cpus", func(d *regress.Dataset) { d.Columns[1][7] = math.NaN() }},
		{"feature cpus", func(d *regress.Dataset) { d.Columns[1][7] = math.Inf(1) }},
		{"feature cpus", func(d *regress.Dataset) { d.Columns[1] = d.Columns[1][1:] }},
		{"feature network", func(d *regress.Dataset) { d.Columns[3][0] = 2 }},
		{"feature network", func(d *regress.Dataset) { d.Columns[3][0] = 0.5 }},
		{"feature network", func(d *regress.Dataset) { d.Features[3].Monotone = 1 }},
		{"target of example 3", func(d *regress.Dataset) { d.Target[3] = math.Inf(-1) }},
		{"target 0", func(d *regress.Dataset) { d.Target[3] = 0 }},
		{
			"weight of example 0",
			func(d *regress.Dataset) { d.Weight = make([]float64, d.Len()); d.Weight[0] = -1 },
		},
		{"weights sum to 0", func(d *regress.Dataset) { d.Weight = make([]float64, d.Len()) }},
		{"weight has", func(d *regress.Dataset) { d.Weight = []float64{1} }},
		{"group has", func(d *regress.Dataset) { d.Group = []int{1} }},
		{"name \"a b\"", func(d *regress.Dataset) { d.Features[0].Name = "a b" }},
		{"name is used twice", func(d *regress.Dataset) { d.Features[0].Name = "cpus" }},
		{"monotone is 2", func(d *regress.Dataset) { d.Features[0].Monotone = 2 }},
		{"5 columns for 4 features", func(d *regress.Dataset) { d.Features = d.Features[:4] }},
		{"0 targets", func(d *regress.Dataset) { d.Target = nil }},
	} {
		d := paperLike(96, 1)
		c.change(d)
		_, err := regress.FitForest(context.Background(), d, small())
		if !errors.Is(err, regress.ErrBadExamples) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: FitForest = %v, want ErrBadExamples that names the field", c.name, err)
		}
	}
}

func TestFitForest_NeedsEnoughExamples(t *testing.T) {
	few := paperLike(19, 1)
	oneSetting := paperLike(96, 1)
	for i := range oneSetting.Group {
		oneSetting.Group[i] = 4
	}
	for name, d := range map[string]*regress.Dataset{
		"19 examples of 19 configurations": few,
		"96 examples of 1 configurations":  oneSetting,
	} {
		_, err := regress.FitForest(context.Background(), d, small())
		if !errors.Is(err, regress.ErrTooFewExamples) || !strings.Contains(err.Error(), name) {
			t.Errorf("FitForest = %v, want ErrTooFewExamples with %q", err, name)
		}
	}
	o := small()
	o.MinExamples, o.MinSettings = 3, 2
	r, _ := forest(t, paperLike(3, 1), o)
	if got := r.Manifest.Calibration.Count; got != 3 {
		t.Errorf("3 examples of 3 configurations are calibrated by %d residuals, want 3", got)
	}
	o.MinSettings = 1
	if _, p := forest(t, oneSetting, o); p.Manifest().Scores != nil {
		t.Error("a regressor of one configuration has scores, though nothing could be held out")
	}
}

// degenerate returns examples that can barely be fitted.
func degenerate() map[string]*regress.Dataset {
	constantTarget, constantFeature, single := paperLike(96, 1), paperLike(96, 1), paperLike(96, 1)
	for i := range constantTarget.Target {
		constantTarget.Target[i] = 12.5
		constantFeature.Columns[2][i] = 3
	}
	single.Features, single.Columns = single.Features[:1], single.Columns[:1]
	huge, tiny := paperLike(96, 1), paperLike(96, 1)
	many := paperLike(2000, 1)
	for i := range huge.Target {
		huge.Target[i] *= 1e304
		huge.Columns[0][i] *= 1e305
		tiny.Target[i] *= 1e-300
	}
	for i := range many.Target {
		many.Columns[0][i] += float64(i) / 7
	}
	repeated := paperLike(96, 1)
	for f := range 3 {
		repeated.Features = append(repeated.Features,
			regress.Feature{Name: "again_" + repeated.Features[f].Name})
		repeated.Columns = append(repeated.Columns, repeated.Columns[f])
	}
	return map[string]*regress.Dataset{
		"constant target":       constantTarget,
		"constant feature":      constantFeature,
		"single feature":        single,
		"huge":                  huge,
		"tiny":                  tiny,
		"2000 different values": many,
		"repeated features":     repeated,
	}
}

func TestFitForest_DegenerateData(t *testing.T) {
	for name, d := range degenerate() {
		for _, transform := range []regress.Transform{regress.None, regress.Log} {
			for _, criterion := range []regress.Criterion{regress.Absolute, regress.Squared} {
				o := regress.ForestOptions{
					Trees:     6,
					MaxDepth:  8,
					Bootstrap: true,
					Transform: transform,
					Criterion: criterion,
				}
				r, p := forest(t, d, o)
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

func TestFitForest_IsEquivariantToShiftsOfTheTarget(t *testing.T) {
	d := paperLike(96, 3)
	o := small()
	o.Transform, o.Criterion = regress.None, regress.Squared
	_, p := forest(t, d, o)
	moved := d.Subset(seq(d.Len()))
	for i := range moved.Target {
		moved.Target[i] = 1000 - 4*moved.Target[i]
	}
	_, q := forest(t, moved, o)
	for i := range d.Len() {
		row := d.Row(i, nil)
		a, _ := p.Predict(row)
		b, _ := q.Predict(row)
		if want := 1000 - 4*a.Value; math.Abs(b.Value-want) > 1e-9*math.Abs(want) {
			t.Errorf("row %g: %g, want %g", row, b.Value, want)
		}
	}
}

func seq(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

func TestFitForest_KeepsMonotoneOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for _, criterion := range []regress.Criterion{regress.Absolute, regress.Squared} {
		d := paperLike(192, 4)
		d.Features[0].Monotone, d.Features[2].Monotone = -1, 1
		for i := range d.Target { // noise that an unconstrained tree would fit
			d.Target[i] *= math.Exp(1.5 * random.NormFloat64())
		}
		o := small()
		o.Criterion = criterion
		_, p := forest(t, d, o)
		free := d.Subset(seq(d.Len()))
		free.Features = append([]regress.Feature{}, d.Features...)
		free.Features[0].Monotone, free.Features[2].Monotone = 0, 0
		_, unbound := forest(t, free, o)
		if broken := walk(t, p); broken != 0 {
			t.Errorf("%s: %d steps against the signs of the features, want 0", criterion, broken)
		}
		if walk(t, unbound) == 0 {
			t.Errorf("%s: no step violates the signs without constraints, so the test is void",
				criterion)
		}
	}
}

// walk steps along batch size and concurrent jobs over a grid and counts the
// steps that go up with the first or down with the second.
func walk(t *testing.T, p *regress.Predictor) (broken int) {
	t.Helper()
	predict := func(row ...float64) float64 {
		got, err := p.Predict(row)
		if err != nil {
			t.Fatal(err)
		}
		return got.Value
	}
	for cpus := 1.0; cpus <= 8; cpus++ {
		for network := range 2 {
			for step := range 20 {
				b, j := 40*float64(step), float64(step)/3
				if predict(b+40, cpus, 3, float64(network), 3*cpus) > predict(b, cpus, 3,
					float64(network), 3*cpus) {
					broken++
				}
				if predict(128, cpus, j+0.34, float64(network), 8) < predict(128, cpus, j,
					float64(network), 8) {
					broken++
				}
			}
		}
	}
	return broken
}

func TestFitForest_StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := small()
	o.Trees, o.Threads = 100000, 2
	last := 0
	o.Progress = func(done, planned int) {
		if done != last+1 || planned != 2_200_000 { // a fit, five folds, sixteen levels
			t.Errorf("progress = %d of %d trees after %d, want one more of all planned trees",
				done, planned, last)
		}
		last = done
		cancel()
	}
	if _, err := regress.FitForest(ctx, paperLike(96, 1), o); !errors.Is(err, context.Canceled) {
		t.Errorf("FitForest = %v, want context.Canceled", err)
	}
	if last > 3 {
		t.Errorf("%d trees were grown after cancellation, want at most 2", last-1)
	}
}

// A split without remaining loss ends the search of its node before all features
// are searched. Sums of the other features must not affect the next node.
func TestFitForest_ClearsUnsearchedSums(t *testing.T) {
	d := &regress.Dataset{TargetName: "y", Columns: make([][]float64, 4)}
	for f := range d.Columns {
		d.Features = append(d.Features, regress.Feature{Name: string(rune('a' + f))})
	}
	for i := range 360 { // all levels of a, b, c and d, three times each; b and c have no effect
		row := []float64{
			float64(i % 3), float64(i / 3 % 2), float64(i / 6 % 2), float64(i / 12 % 10),
		}
		for f := range row {
			d.Columns[f] = append(d.Columns[f], row[f])
		}
		d.Target, d.Group = append(d.Target, -row[0]-10*math.Exp(-row[3]/3)), append(d.Group, i%120)
	}
	for _, criterion := range []regress.Criterion{regress.Absolute, regress.Squared} {
		fit := func(threads, trees int) *regress.Regressor {
			r, err := regress.FitForest(context.Background(), d, regress.ForestOptions{
				Trees:     trees,
				MaxDepth:  12,
				Criterion: criterion,
				Seed:      1,
				Threads:   threads,
			})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		one := fit(1, 40)
		if !bytes.Equal(one.EncodeModel(), fit(3, 40).EncodeModel()) {
			t.Errorf("%s: trees depend on the trees that the same thread grew before", criterion)
		}
		p, err := regress.Compile(one)
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Target {
			row := []float64{d.Columns[0][i], d.Columns[1][i], d.Columns[2][i], d.Columns[3][i]}
			if got, err := p.Predict(row); err != nil || math.Abs(got.Value-d.Target[i]) > 1e-9 {
				t.Fatalf("%s: row %v = %v, %v, want %v: it was seen without noise", criterion, row,
					got.Value, err, d.Target[i])
			}
		}
	}
}
