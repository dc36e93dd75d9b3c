package regress_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"courier/regress"
)

// badInputs lists the tests for each kind of bad input of a regressor.
// Input that arrives only over the network or in a log is tested in the packages
// that read it.
var badInputs = []struct {
	where, input string
	tests        []string // folder/Test
}{
	{
		"examples", "NaN or infinite feature or target",
		[]string{
			"regress/TestClean_ReportsDroppedExamples", "regress/TestFitForest_RefusesExamples",
		},
	},
	{
		"examples", "time at 0 or below, accuracy outside 0 to 1",
		[]string{
			"regress/TestClean_ReportsDroppedExamples", "regress/TestClean_KeepsRatiosWithinTheirRange",
		},
	},
	{
		"examples", "negative or zero-sum weights",
		[]string{"regress/TestClean_ReportsDroppedExamples", "regress/TestFit_RefusesWeights"},
	},
	{"examples", "more than 5 % bad", []string{"regress/TestClean_RefusesWhenTooManyAreBad"}},
	{
		"examples", "fewer than 20 examples or 5 settings, one setting only",
		[]string{
			"regress/TestFitForest_NeedsEnoughExamples", "regress/TestFit_EveryFamilyNeedsEnoughExamples",
			"services/courier/TestScript",
		},
	},
	{
		"examples", "constant target, constant feature",
		[]string{
			"regress/TestFitForest_DegenerateData", "regress/TestFitBoosting_DegenerateData",
			"regress/TestFormulas_FitDegenerateExamples",
		},
	},
	{
		"examples", "the same job twice, conflicting values",
		[]string{
			"trainer/TestPast_Examples", "store/TestStore_DropsDuplicates",
			"store/TestHistory_ReturnsDuplicatesOnce", "bus/TestPublish_DropsADuplicate",
		},
	},
	{
		"examples", "a run whose figures are not its own",
		[]string{"trainer/TestPast_Examples", "runner/TestEpochFold"},
	},
	{
		"examples", "features that repeat another, 1e308",
		[]string{
			"regress/TestFitForest_DegenerateData", "regress/TestFitBoosting_DegenerateData",
			"regress/TestFormulas_FitDegenerateExamples",
		},
	},
	{"examples", "10^6 distinct values", []string{"regress/TestFit_BinsAMillionDistinctValues"}},
	{
		"settings", "0 trees, depth 0 or over 64, quantile outside 0 to 1",
		[]string{
			"regress/TestFitForest_RefusesSettings", "regress/TestFitBoosting_RefusesSettings",
		},
	},
	{
		"settings", "more folds than settings",
		[]string{
			"regress/TestFitForest_RefusesSettings", "regress/TestSelect_RefusesSettings",
			"regress/TestFit_EveryFamilyRefusesTooManyFolds",
		},
	},
	{"settings", "unknown feature in monotone signs", []string{"services/courier/TestScript"}},
	{
		"file", "truncated, changed by one byte",
		[]string{"regress/TestDecode_RefusesAnyChangedByte"},
	},
	{
		"file",
		"sizes, version, CRLF, cycles, indices, NaN leaves, 2e9 leaves, linear or categorical trees, XGBoost",
		[]string{"regress/TestDecode_NamesLineAndField", "regress/FuzzDecode"},
	},
	{"file", "more trees than memory", []string{"regress/TestDecode_MemoryIsBoundedByTheFile"}},
	{
		"file", "a manifest that does not fit",
		[]string{
			"regress/TestDecode_RefusesManifests", "regress/TestDecode_RefusesBadFormulas",
			"regress/TestCalibration_OwnTablePerLevel",
		},
	},
	{"file", "readers that disagree", []string{"regress/TestAgree_FindsOneWrongLeaf"}},
	{"file", "the champion stays", []string{"advisor/TestAdvisor_RefusesADamagedRegressor"}},
	{
		"request", "NaN, missing or extra feature",
		[]string{
			"regress/TestPredict_RefusesRows", "schemas/TestDecodeRequest_NamesTheWrongField",
			"advisor/TestAdvisor_NamesTheInvalidField", "services/courier/TestScript",
		},
	},
	{
		"request", "feature names of another regressor",
		[]string{"schemas/TestColumns_NameEveryFeature", "services/courier/TestScript"},
	},
	{
		"request", "unseen network, values beyond the examples",
		[]string{
			"regress/TestPredict_MarksExtrapolation",
			"regress/TestSelect_PredictsLeftOutLevels", "services/courier/TestScript",
		},
	},
	{
		"clock", "jobs out of order, replay of old events",
		[]string{
			"trainer/TestPast_Examples", "advisor/TestCluster_ApplyIgnoresOldEvents",
			"advisor/TestCluster_ReplaysToTheSameState",
		},
	},
	{
		"trainer", "cancelled",
		[]string{
			"regress/TestFitForest_StopsWithItsContext",
			"regress/TestFitBoosting_StopsWithItsContext",
			"regress/TestFitGaussian_StopsWithItsContext",
			"regress/TestSelect_StopsWithItsContext",
		},
	},
	{
		"trainer", "killed midway, two at once",
		[]string{
			"services/courier/TestRestart_EachPartKilledMidwayLosesNothing",
			"trainer/TestTrainer_PublishesAMissingPromotion",
			"bus/TestChampion_ChangesByCompareAndSet",
		},
	},
}

// Every test in badInputs exists.
func TestBadInputs_AreAllTested(t *testing.T) {
	texts := map[string]string{}
	for _, row := range badInputs {
		if len(row.tests) == 0 {
			t.Errorf("%s, %s: no test", row.where, row.input)
		}
		for _, test := range row.tests {
			folder, name := filepath.Dir(test), filepath.Base(test)
			if texts[folder] == "" {
				files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					texts[folder] += string(text)
				}
			}
			if !strings.Contains(texts[folder], "func "+name+"(") {
				t.Errorf("%s, %s: test %s does not exist", row.where, row.input, test)
			}
		}
	}
}

// families fits each family with options that make fits fast.
var families = map[string]func(d *regress.Dataset, folds int) (*regress.Regressor, error){
	"forest": func(d *regress.Dataset, folds int) (*regress.Regressor, error) {
		return regress.FitForest(context.Background(), d, regress.ForestOptions{
			Trees:     3,
			MaxDepth:  3,
			Bootstrap: true,
			Folds:     folds,
		})
	},
	"boosting": func(d *regress.Dataset, folds int) (*regress.Regressor, error) {
		return regress.FitBoosting(context.Background(), d, regress.BoostingOptions{
			Trees: 3,
			Folds: folds,
		})
	},
	"law": func(d *regress.Dataset, folds int) (*regress.Regressor, error) {
		return regress.FitLaw(context.Background(), d, regress.LawOptions{Folds: folds})
	},
	"law and trees": func(d *regress.Dataset, folds int) (*regress.Regressor, error) {
		return regress.FitLaw(context.Background(), d, regress.LawOptions{
			Folds:    folds,
			Boosting: &regress.BoostingOptions{Trees: 3},
		})
	},
	"gaussian": func(d *regress.Dataset, folds int) (*regress.Regressor, error) {
		return regress.FitGaussian(context.Background(), d, regress.GaussianOptions{
			Folds:  folds,
			Starts: 1,
		})
	},
	"grid": func(d *regress.Dataset, folds int) (*regress.Regressor, error) {
		_, _, err := regress.SearchForest(context.Background(), d, regress.Grid{
			Trees:    []int{2},
			MaxDepth: []int{2},
		}, regress.ForestOptions{Folds: folds})
		return nil, err
	},
	"select": func(d *regress.Dataset, folds int) (*regress.Regressor, error) {
		r, _, err := regress.Select(context.Background(), d, regress.SelectOptions{
			Folds:    folds,
			Families: []string{regress.FamilyLaw},
			Shuffles: 1,
		})
		return r, err
	},
}

func TestFit_EveryFamilyNeedsEnoughExamples(t *testing.T) {
	oneSetting := paperLike(96, 1)
	for i := range oneSetting.Group {
		oneSetting.Group[i] = 1
	}
	fourSettings := paperLike(96, 1)
	for i := range fourSettings.Group {
		fourSettings.Group[i] = i % 4
	}
	for family, fit := range families {
		for says, d := range map[string]*regress.Dataset{
			"19 examples":         paperLike(19, 1),
			"of 1 configurations": oneSetting,
			"of 4 configurations": fourSettings,
		} {
			if _, err := fit(d, 0); !errors.Is(err, regress.ErrTooFewExamples) ||
				!strings.Contains(err.Error(), says) {
				t.Errorf("%s, %s: %v, want ErrTooFewExamples", family, says, err)
			}
		}
	}
}

func TestFit_EveryFamilyRefusesTooManyFolds(t *testing.T) {
	for family, fit := range families {
		if _, err := fit(paperLike(96, 1), 97); !errors.Is(err, regress.ErrBadOptions) ||
			!strings.Contains(err.Error(), "folds is 97 for 96 configurations") {
			t.Errorf("%s: %v, want ErrBadOptions", family, err)
		}
		if _, err := fit(paperLike(24, 1), 24); err != nil {
			t.Errorf("%s: one fold per configuration: %v", family, err)
		}
	}
}

func TestFit_RefusesWeights(t *testing.T) {
	for says, weight := range map[string]float64{
		"weight of example 5 is -1":   -1,
		"weight of example 5 is NaN":  math.NaN(),
		"weight of example 5 is +Inf": math.Inf(1),
	} {
		d := paperLike(96, 1)
		d.Weight = make([]float64, d.Len())
		for i := range d.Weight {
			d.Weight[i] = 1
		}
		d.Weight[5] = weight
		for family, fit := range families {
			if _, err := fit(d, 0); !errors.Is(err, regress.ErrBadExamples) ||
				!strings.Contains(err.Error(), says) {
				t.Errorf("%s, %s: %v, want ErrBadExamples", family, says, err)
			}
		}
	}
	d := paperLike(96, 1)
	d.Weight = make([]float64, d.Len())
	for family, fit := range families {
		if _, err := fit(d, 0); !errors.Is(err, regress.ErrBadExamples) ||
			!strings.Contains(err.Error(), "weights sum to 0") {
			t.Errorf("%s, weights of 0: %v, want ErrBadExamples", family, err)
		}
	}
}

func TestClean_KeepsRatiosWithinTheirRange(t *testing.T) {
	d := paperLike(96, 1)
	for i := range d.Target {
		d.Target[i] = 0.9
	}
	d.Target[1], d.Target[2], d.Target[3], d.Target[4] = -0.1, 1.1, 0, 1
	kept, dropped, err := d.Clean(0, 1)
	if err != nil || kept.Len() != 94 || len(dropped) != 2 {
		t.Errorf("Clean kept %d of 96 examples, dropped %v, error %v; want 94 and two reasons", kept.Len(),
			dropped, err)
	}
}

// A feature with a million distinct values is binned and predicted well.
func TestFit_BinsAMillionDistinctValues(t *testing.T) {
	skipUnderRace(t)
	const n = 1_000_000
	if testing.Short() {
		t.Skip("a million examples take seconds")
	}
	random := rand.New(rand.NewPCG(1, 1))
	d := &regress.Dataset{
		Features: []regress.Feature{{Name: "x"}},
		Columns:  [][]float64{make([]float64, n)},
		Target:   make([]float64, n),
	}
	for i := range n {
		d.Columns[0][i] = random.Float64()
		d.Target[i] = math.Sin(6*d.Columns[0][i]) + 2
	}
	r, err := regress.FitBoosting(context.Background(), d, regress.BoostingOptions{
		Trees:        30,
		Leaves:       31,
		LearningRate: 0.3,
		Criterion:    regress.Squared,
		Folds:        -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := regress.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	for x := 0.05; x < 1; x += 0.1 {
		if got, err := p.Predict([]float64{x}); err != nil ||
			math.Abs(got.Value-math.Sin(6*x)-2) > 0.02 {
			t.Errorf("Predict(%g) = %g, %v, want %g", x, got.Value, err, math.Sin(6*x)+2)
		}
	}
}
