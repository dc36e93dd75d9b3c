package regress_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"courier/regress"
)

// formulas fits the families whose manifest has a base function.
var formulas = map[string]func(d *regress.Dataset, seed uint64) (*regress.Regressor, error){
	"gaussian": func(d *regress.Dataset, seed uint64) (*regress.Regressor, error) {
		return regress.FitGaussian(context.Background(), d, regress.GaussianOptions{
			Transform: regress.Log,
			Seed:      seed,
			Starts:    1,
		})
	},
	"law": func(d *regress.Dataset, seed uint64) (*regress.Regressor, error) {
		return regress.FitLaw(context.Background(), d, regress.LawOptions{
			Transform: regress.Log,
			Seed:      seed,
		})
	},
	"law+trees": func(d *regress.Dataset, seed uint64) (*regress.Regressor, error) {
		return regress.FitLaw(context.Background(), d, regress.LawOptions{
			Transform: regress.Log,
			Seed:      seed,
			Forest:    &regress.ForestOptions{Trees: 20, MaxDepth: 3, Bootstrap: true},
		})
	},
	"linear": func(d *regress.Dataset, seed uint64) (*regress.Regressor, error) {
		return regress.FitLaw(context.Background(), d, regress.LawOptions{
			Linear: true,
			Ridge:  -1,
			Seed:   seed,
		})
	},
}

func TestFormulas_SurviveTheirFiles(t *testing.T) {
	for name, fit := range formulas {
		d := paperLike(96, 1)
		r, err := fit(d, 1)
		if err != nil {
			t.Fatal(name, err)
		}
		manifest, err := r.EncodeManifest()
		if err != nil {
			t.Fatal(name, err)
		}
		read, err := regress.Load(r.EncodeModel(), manifest)
		if err != nil {
			t.Fatal(name, err)
		}
		direct, err := regress.Compile(r)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, row := range [][]float64{{64, 1, 1, 0, 1}, {100, 3, 2, 1, 6}, {
			1e308, 1e-300, 0, 1, 1e9,
		}, {-5, -5, -5, 7, -5}} {
			a, err := read.Predict(row)
			b, err2 := direct.Predict(row)
			if err != nil || err2 != nil || a != b {
				t.Errorf("%s: Predict(%g) = %v (%v) of the decoded file, want %v (%v)", name, row, a,
					err, b, err2)
			}
			if name != "linear" && !(a.Value > 0) || math.IsInf(a.Value, 0) {
				t.Errorf("%s: Predict(%g) = %g, want a number above 0", name, row, a.Value)
			}
		}
		if s := r.Manifest.Scores; name != "linear" && s.R2.Value < 0.97 {
			t.Errorf("%s: R2 of held-out configurations = %g, want at least 0.97", name, s.R2.Value)
		}
		row := d.Row(3, nil)
		if n := testing.AllocsPerRun(50, func() {
			if _, err := read.Predict(row); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%s: a prediction makes %g allocations, want 0", name, n)
		}
	}
}

func TestFormulas_AreTheSameInAnyOrder(t *testing.T) {
	for name, fit := range formulas {
		d := paperLike(96, 1)
		r, err := fit(d, 1)
		if err != nil {
			t.Fatal(name, err)
		}
		mixed, err := fit(d.Subset(rand.New(rand.NewPCG(1, 2)).Perm(d.Len())), 1)
		if err != nil {
			t.Fatal(name, err)
		}
		a, err := r.EncodeManifest()
		b, err2 := mixed.EncodeManifest()
		if err != nil || err2 != nil || !bytes.Equal(a, b) || !bytes.Equal(r.EncodeModel(),
			mixed.EncodeModel()) {
			t.Errorf("%s: bytes depend on the order of the examples (%v, %v)", name, err, err2)
		}
	}
}

func TestFormulas_ObeyMonotoneSigns(t *testing.T) {
	if testing.Short() {
		t.Skip("a long computation without goroutines")
	}
	random := rand.New(rand.NewPCG(3, 4))
	for name, fit := range formulas {
		d := paperLike(60, 1)
		d.Features[0].Monotone, d.Features[2].Monotone = -1, 1
		for i := range d.Target { // noise that contradicts the monotone sign
			d.Target[i] *= math.Exp(0.3 * random.NormFloat64())
		}
		r, err := fit(d, 1)
		if err != nil {
			t.Fatal(name, err)
		}
		p, err := regress.Compile(r)
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range d.Len() {
			row := d.Row(i, nil)
			for f, sign := range map[int]float64{0: -1, 2: 1} {
				walk, last := slices.Clone(row), math.NaN()
				for x := 1.0; x <= 512; x *= 1.3 {
					if walk[f] = x; f == 2 {
						walk[f] = 1 + 4*x/512
					}
					point, err := p.Predict(walk)
					if err != nil {
						t.Fatal(err)
					}
					if x > 50 && sign*(point.Value-last) < -1e-3*math.Abs(last) {
						t.Errorf("%s: prediction at %g = %g after %g, want a monotone feature",
							name, walk, point.Value, last)
					}
					last = point.Value
				}
			}
		}
	}
}

func TestFitLaw_FindsTheLaw(t *testing.T) {
	d := &regress.Dataset{
		Features: []regress.Feature{{Name: "batch"}, {Name: "cpu"}},
		Columns:  make([][]float64, 2),
	}
	for _, batch := range []float64{32, 64, 128, 256, 512} {
		for _, cpu := range []float64{1, 2, 4, 8} {
			d.Columns[0], d.Columns[1] = append(d.Columns[0], batch), append(d.Columns[1], cpu)
			d.Target = append(d.Target, 9000*math.Pow(batch, -0.9)*math.Exp(0.5/cpu))
		}
	}
	r, err := regress.FitLaw(context.Background(), d, regress.LawOptions{
		Transform: regress.Log,
		Ridge:     -1,
		Terms:     []string{"log(batch)", "1/cpu"},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := regress.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]float64{{100, 3}, {1024, 12}} {
		want := 9000 * math.Pow(row[0], -0.9) * math.Exp(0.5/row[1])
		if got, err := p.Predict(row); err != nil || math.Abs(got.Value/want-1) > 1e-6 {
			t.Errorf("Predict(%g) = %g, %v, want %g", row, got.Value, err, want)
		}
	}
	if f := r.Manifest.Law.Formula(d.Features); !strings.Contains(f, "log(batch)") ||
		!strings.Contains(f, "1/cpu") {
		t.Errorf("Formula = %q, want log(batch) and 1/cpu in it", f)
	}
}

func TestFitLaw_RefusesTerms(t *testing.T) {
	for _, c := range []struct{ term, says string }{
		{"log(steam)", `there is no feature "steam"`},
		{"1/network", "the feature is a category"},
		{"", `there is no feature ""`},
		{"log(cpus)*nothing", `there is no feature "nothing"`},
	} {
		_, err := regress.FitLaw(context.Background(), paperLike(96, 1),
			regress.LawOptions{Terms: []string{c.term}})
		if !errors.Is(err, regress.ErrBadOptions) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("term %q: %v, want %q", c.term, err, c.says)
		}
	}
}

func TestFormulas_FitDegenerateExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("a long computation without goroutines")
	}
	awkward := map[string]func(d *regress.Dataset){
		"constant feature": func(d *regress.Dataset) {
			for i := range d.Columns[0] {
				d.Columns[0][i] = 7
			}
		},
		"all features constant": func(d *regress.Dataset) {
			for _, c := range d.Columns {
				for i := range c {
					c[i] = 1
				}
			}
		},
		"constant target": func(d *regress.Dataset) {
			for i := range d.Target {
				d.Target[i] = 5
			}
		},
		"huge": func(d *regress.Dataset) { d.Columns[1][3], d.Target[5] = 1e308, 1e300 },
		"weights": func(d *regress.Dataset) {
			d.Weight = slices.Repeat([]float64{1, 1e-9, 1e6}, d.Len()/3)
		},
		"negative": func(d *regress.Dataset) { d.Columns[1][3] = -4 },
		"an example 96 times": func(d *regress.Dataset) {
			for _, c := range d.Columns {
				copy(c[1:50], slices.Repeat(c[:1], 49))
			}
		},
	}
	for name, fit := range formulas {
		for what, spoil := range awkward {
			d := paperLike(96, 1)
			spoil(d)
			r, err := fit(d, 1)
			if err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
				continue
			}
			manifest, err := r.EncodeManifest()
			if err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
				continue
			}
			if _, err := regress.Load(r.EncodeModel(), manifest); err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

func TestDecode_RefusesBadFormulas(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(m *regress.Manifest)
		says  string
	}{
		{"law", func(m *regress.Manifest) { m.Law.Terms[0] = []int{99} }, "term 0 refers to input 99"},
		{
			"law", func(m *regress.Manifest) { m.Law.Coefficients = m.Law.Coefficients[1:] },
			"coefficients",
		},
		{"law", func(m *regress.Manifest) { m.Law.Inputs[0].Width = 0 }, "scale"},
		{"law", func(m *regress.Manifest) { m.Law.Inputs[0].Feature = -1 }, "feature is -1"},
		{"law", func(m *regress.Manifest) { m.Law.Inputs[0].Form = "sin" }, "form is"},
		{"gaussian", func(m *regress.Manifest) { m.Gaussian.Lengths[0] = 0 }, "length 0 is 0"},
		{
			"gaussian", func(m *regress.Manifest) { m.Gaussian.Points[1] = nil },
			"point 1 has 0 numbers",
		},
		{"gaussian", func(m *regress.Manifest) { m.Gaussian.Weights = nil }, "0 weights"},
		{"gaussian", func(m *regress.Manifest) { m.Law = &regress.Law{} }, "want at most one"},
	} {
		r, err := formulas[c.name](paperLike(96, 1), 1)
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(&r.Manifest)
		manifest, err := r.EncodeManifest()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := regress.Decode(r.EncodeModel(), manifest); !errors.Is(err, regress.ErrBadFile) ||
			!strings.Contains(
				err.Error(), c.says,
			) {
			t.Errorf("%s: %v, want ErrBadFile with %q", c.name, err, c.says)
		}
	}
}

func TestFitGaussian_StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := regress.FitGaussian(ctx, paperLike(96, 1), regress.GaussianOptions{}); !errors.Is(
		err, context.Canceled,
	) {
		t.Errorf("FitGaussian = %v, want canceled", err)
	}
}

// The manifest is valid JSON.
func TestFormulas_ManifestIsJSON(t *testing.T) {
	r, err := formulas["gaussian"](paperLike(96, 1), 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.EncodeManifest()
	if err != nil || !json.Valid(b) {
		t.Fatalf("EncodeManifest() = %v, want valid JSON", err)
	}
	if r.Manifest.Family != regress.FamilyGaussian || r.Manifest.Gaussian.Noise <= 0 {
		t.Errorf("family %q with noise %g, want a Gaussian process with noise above 0",
			r.Manifest.Family, r.Manifest.Gaussian.Noise)
	}
}
