package regress

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// All forms predict exactly like the trees, also at thresholds and
// at neighbouring numbers.
func TestCompile_FormsAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	forms := make(map[bool]int)
	for i := range 40 {
		d := randomDataset(random, 20+random.IntN(200))
		o := ForestOptions{
			Trees:       1 + random.IntN(30),
			MaxDepth:    1 + random.IntN(9),
			Bootstrap:   true,
			Seed:        uint64(i),
			Folds:       -1,
			MinSettings: 1,
		}
		r, err := FitForest(context.Background(), d, o)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(r)
		if err != nil {
			t.Fatal(err)
		}
		walked := flatten(&r.ensemble, r.Manifest.Transform)
		filled := completed(&r.ensemble, axesOf(&r.ensemble, len(d.Features)), r.Manifest.Transform)
		if forms[filled != nil]++; filled == nil && o.MaxDepth < 5 {
			t.Errorf("case %d: trees of depth %d are not completed", i, o.MaxDepth)
		}
		flown := interleave(&r.ensemble, axesOf(&r.ensemble, len(d.Features)), r.Manifest.Transform)
		for _, row := range checkRows(r) {
			want := r.predict(row)
			if got := p.form.predict(row); got != want {
				t.Fatalf("case %d: %T predicts %v for %g, the trees %v", i, p.form, got, row, want)
			}
			if got := walked.predict(row); got != want {
				t.Fatalf("case %d: flat trees predict %v for %g, want %v", i, got, row, want)
			}
			if filled != nil && filled.predict(row) != want {
				t.Fatalf("case %d: complete trees predict %v for %g, want %v", i,
					filled.predict(row), row, want)
			}
			if got := flown.predict(row); got != want {
				t.Fatalf("case %d: interleaved trees predict %v for %g, want %v", i, got, row,
					want)
			}
		}
	}
}

func TestCompile_ChoosesTheForm(t *testing.T) {
	r := example()
	p, err := Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	if table, ok := p.form.(*table); !ok || len(table.cells) != 4 {
		t.Errorf("two thresholds compile to %T, want a table of 4 cells", p.form)
	}
	random := rand.New(rand.NewPCG(15, 16))
	wide := &Dataset{
		Features: []Feature{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Columns:  make([][]float64, 3),
	}
	for range 2000 {
		for f := range wide.Columns {
			wide.Columns[f] = append(wide.Columns[f], random.Float64())
		}
		wide.Target = append(wide.Target, random.Float64())
	}
	big, err := FitForest(context.Background(), wide, ForestOptions{
		Trees:     10,
		MaxDepth:  10,
		Folds:     -1,
		Bootstrap: true,
		Criterion: Squared,
	})
	if err != nil {
		t.Fatal(err)
	}
	if p, err = Compile(big); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.form.(*interleavedTrees); !ok {
		t.Errorf("three continuous features compile to %T, want trees in flight", p.form)
	}
}

func TestCompile_RefusesNonFinitePredictions(t *testing.T) {
	r := example()
	r.Manifest.Transform = Log
	r.trees[0].leaves[0].value = 2000 // the mean of both trees is 1090: e^1090 is too much
	if _, err := Compile(r); !errors.Is(err, ErrBadFile) {
		t.Errorf("Compile = %v, want ErrBadFile", err)
	}
}

func TestAgree_FindsOneWrongLeaf(t *testing.T) {
	r := example()
	p, err := Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	wrong := example()
	wrong.trees[0].leaves[2].value = math.Nextafter(538, 539) + 1e-8
	if err := agree(r, p, wrong.ensemble.predict); !errors.Is(err, ErrDisagree) {
		t.Errorf("agree = %v, want ErrDisagree", err)
	}
	wrong = example()
	wrong.trees[0].nodes[1].threshold = math.Nextafter(2.5, 2)
	if err := agree(r, p, wrong.ensemble.predict); !errors.Is(err, ErrDisagree) {
		t.Errorf("agree = %v, want ErrDisagree for a threshold that is one step off", err)
	}
}
