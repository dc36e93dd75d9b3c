package regress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"courier/regress"
)

// The bars of the study's own runs: 77 of 72 settings, grouped folds, the median
// of 20 shuffles.
func TestSelect_MeetsTheBarsOnTheRecoveredRuns(t *testing.T) {
	d := recovered(t)
	_, all, err := regress.Select(context.Background(), d, regress.SelectOptions{Confidence: 0.9, Shuffles: 2})
	if err != nil {
		t.Fatal(err)
	}
	if all.Candidates[0].Family != regress.FamilyGaussian || all.Winner != all.Candidates[0].Name {
		t.Errorf("winner %s, first candidate %s of family %s, want a Gaussian process", all.Winner, all.Candidates[0].Name, all.Candidates[0].Family)
	}
	if len(all.Baselines) != 2 || all.Baselines[0].MSE.Value < all.Candidates[0].MSE.Value {
		t.Errorf("baselines %+v beat the winner, or are missing", all.Baselines)
	}
	r, report, err := regress.Select(context.Background(), d, regress.SelectOptions{Families: []string{all.Candidates[0].Family}, Confidence: 0.9, Shuffles: 20})
	if err != nil {
		t.Fatal(err)
	}
	j := report.Candidates[0]
	t.Logf("MSE %.0f (%.0f to %.0f), R2 %.4f (%.4f to %.4f), MAPE %.2f %% (%.2f to %.2f), coverage %.3f", j.MSE.Value, j.MSE.Low, j.MSE.High,
		j.R2.Value, j.R2.Low, j.R2.High, 100*j.MAPE.Value, 100*j.MAPE.Low, 100*j.MAPE.High, j.Coverage.Value)
	if j.MSE.Value > 520 || j.R2.Value < 0.985 || j.MAPE.Value > 0.048 {
		t.Errorf("MSE %.0f, R2 %.4f, MAPE %.4f, want at most 520, at least 0.985, at most 0.048", j.MSE.Value, j.R2.Value, j.MAPE.Value)
	}
	// A level between others that was never measured is predicted within 10 %.
	for _, l := range report.Levels {
		if l.Between && l.MAPE > 0.10 {
			t.Errorf("%s %s left out: MAPE %.3f, want at most 0.10", l.Feature, l.Level, l.MAPE)
		}
	}
	if r.Manifest.Scores == nil || len(report.HeldOut) != 77 {
		t.Errorf("%d held out, scores %v", len(report.HeldOut), r.Manifest.Scores)
	}
}

// Signs that are true of the cluster must not cost accuracy.
func TestFitGaussian_SignsCostNothingOnTheRecoveredRuns(t *testing.T) {
	d := recovered(t)
	d.Features[0].Monotone, d.Features[2].Monotone = -1, 1
	d.Features, d.Columns = d.Features[:4], d.Columns[:4] // without processes it has to be told
	var mse []float64
	for seed := range uint64(5) {
		r, err := regress.FitGaussian(context.Background(), d, regress.GaussianOptions{Transform: regress.Log, Seed: seed, Starts: 1})
		if err != nil {
			t.Fatal(err)
		}
		mse = append(mse, r.Manifest.Scores.MSE.Value)
	}
	slices.Sort(mse)
	if mse[2] > 520 {
		t.Errorf("median MSE = %.0f of %.0f, want at most 520", mse[2], mse)
	}
}

func TestSelect_RepeatsItself(t *testing.T) {
	var first []byte
	for _, threads := range []int{1, 2} {
		d := paperLike(96, 1)
		if threads == 2 {
			d = d.Subset(rand.New(rand.NewPCG(1, 1)).Perm(96))
		}
		r, report, err := regress.Select(context.Background(), d, regress.SelectOptions{Shuffles: 1, Threads: threads,
			Families: []string{regress.FamilyForest, regress.FamilyLaw}})
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := r.EncodeManifest()
		if err != nil {
			t.Fatal(err)
		}
		told := append(append(r.EncodeModel(), manifest...), fmt.Sprintf("%+v", report)...)
		if first == nil {
			first = told
		} else if !bytes.Equal(first, told) {
			t.Error("order of examples or threads change the choice")
		}
	}
}

func TestSelect_RefusesSettings(t *testing.T) {
	for _, c := range []struct {
		o    regress.SelectOptions
		says string
	}{
		{regress.SelectOptions{Families: []string{"oracle"}}, `family is "oracle"`},
		{regress.SelectOptions{Confidence: 1}, "confidence is 1"},
		{regress.SelectOptions{Folds: 1}, "folds is 1"},
		{regress.SelectOptions{Folds: -1}, "-1 folds"},
		{regress.SelectOptions{Folds: 200}, "folds is 200 for 96 settings"},
		{regress.SelectOptions{Shuffles: -1}, "-1 shuffles"},
		{regress.SelectOptions{Families: []string{}}, "no family suits"},
		{regress.SelectOptions{Transform: "square"}, `transform is "square"`},
	} {
		_, _, err := regress.Select(context.Background(), paperLike(96, 1), c.o)
		if !errors.Is(err, regress.ErrBadSettings) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Select(%+v) = %v, want ErrBadSettings with %q", c.o, err, c.says)
		}
	}
	if _, _, err := regress.Select(context.Background(), paperLike(12, 1), regress.SelectOptions{}); !errors.Is(err, regress.ErrTooFewExamples) {
		t.Errorf("Select of 12 examples = %v, want ErrTooFewExamples", err)
	}
}

func TestSelect_StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := regress.SelectOptions{Threads: 1, Progress: func(done, planned int) {
		if done == 2 {
			cancel()
		}
		if done > 3 {
			t.Errorf("%d of %d fits done after the end", done, planned)
		}
	}}
	if _, _, err := regress.Select(ctx, paperLike(96, 1), o); !errors.Is(err, context.Canceled) {
		t.Errorf("Select = %v, want canceled", err)
	}
}

// lookAlike makes runs as the study had: the first replications of 96 settings
// around one surface, with noise that grows with the jobs.
func lookAlike(runs int, random *rand.Rand) (train, fresh *regress.Dataset) {
	slope, curve, load := 0.75+0.2*random.Float64(), 0.1*random.Float64(), 0.15+0.1*random.Float64()
	make1 := func(n int, levels bool) *regress.Dataset {
		d := &regress.Dataset{Features: []regress.Feature{{Name: "batch"}, {Name: "cpu"}, {Name: "njobs"},
			{Name: "network", Levels: []string{"lenet5", "simplenet"}}, {Name: "processes"}}, Columns: make([][]float64, 5), TargetName: "time", TargetUnit: "s"}
		for i := range n {
			setting := i % 96
			if !levels {
				setting = random.IntN(96)
			}
			batch, cpu := []float64{64, 128, 256, 512}[setting%4], []float64{1, 2, 4, 8}[setting/4%4]
			jobs, network := []float64{1, 3, 5}[setting/16%3], float64(setting/48%2)
			log := 6.2 - slope*math.Log(batch/64) + curve*math.Log(batch/64)*math.Log(cpu) + load*math.Log(cpu)*(jobs-1)/2 +
				0.1*(jobs-1)/2 - 0.2*network - 0.1*network*math.Log(batch/64) + 0.15*(1-network)/cpu
			for f, x := range []float64{batch, cpu, jobs, network, cpu * jobs} {
				d.Columns[f] = append(d.Columns[f], x)
			}
			d.Target = append(d.Target, math.Exp(log+(0.03+0.01*jobs)*random.NormFloat64()))
		}
		return d
	}
	return make1(runs, true), make1(200, false)
}

// A bound at 0.90 must cover 0.90 to 0.95 of what comes later, and each family
// of networks not under 0.87: 200 simulated studies, 200 later runs of each.
func TestUpperBound_CoversLookAlikeData(t *testing.T) {
	gaussians := 40
	if os.Getenv("COURIER_LONG") != "" {
		gaussians = 200
	}
	for _, c := range []struct {
		name          string
		runs, studies int
		fit           func(d *regress.Dataset) (*regress.Regressor, error)
	}{
		{"gaussian, 96 runs", 96, gaussians, func(d *regress.Dataset) (*regress.Regressor, error) {
			return regress.FitGaussian(context.Background(), d, regress.GaussianOptions{Transform: regress.Log, Starts: 1})
		}},
		{"law, 288 runs", 288, 200, func(d *regress.Dataset) (*regress.Regressor, error) {
			return regress.FitLaw(context.Background(), d, regress.LawOptions{Transform: regress.Log})
		}},
	} {
		var held, total [2]float64
		for study := range uint64(c.studies) {
			d, fresh := lookAlike(c.runs, rand.New(rand.NewPCG(study, 11)))
			r, err := c.fit(d)
			if err != nil {
				t.Fatal(err)
			}
			p, err := regress.Compile(r)
			if err != nil {
				t.Fatal(err)
			}
			if own := r.Manifest.Calibration.Levels != nil; own != (c.runs > 100) {
				t.Fatalf("%s: tables per network: %v", c.name, own)
			}
			for i, truth := range fresh.Target {
				point, err := p.Predict(fresh.Row(i, nil))
				if err != nil {
					t.Fatal(err)
				}
				bound, promised := p.UpperBound(point, 0.9)
				if !promised {
					t.Fatalf("%s: no bound for %+v", c.name, point)
				}
				network := int(fresh.Columns[3][i])
				total[network]++
				if truth <= bound {
					held[network]++
				}
			}
		}
		whole := (held[0] + held[1]) / (total[0] + total[1])
		t.Logf("%s: %.4f of all, %.4f and %.4f per network", c.name, whole, held[0]/total[0], held[1]/total[1])
		if whole < 0.90 || whole > 0.95 {
			t.Errorf("%s: the bound at 0.90 covers %.4f, want 0.90 to 0.95", c.name, whole)
		}
		for network := range held {
			if held[network]/total[network] < 0.87 {
				t.Errorf("%s: network %d: %.4f, want at least 0.87", c.name, network, held[network]/total[network])
			}
		}
	}
}

// A category whose levels differ in spread gets a table of residuals per level,
// and it survives the file.
func TestCalibration_OwnTablePerLevel(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	d, _ := lookAlike(288, random)
	for i := range d.Target {
		if d.Columns[3][i] == 1 {
			d.Target[i] *= math.Exp(0.4 * random.NormFloat64())
		}
	}
	r, err := regress.FitLaw(context.Background(), d, regress.LawOptions{Transform: regress.Log})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := r.EncodeManifest()
	if err != nil {
		t.Fatal(err)
	}
	p, err := regress.Load(r.EncodeModel(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	var width [2]float64
	for network := range width {
		point, err := p.Predict([]float64{128, 2, 3, float64(network), 6})
		if err != nil {
			t.Fatal(err)
		}
		bound, _ := p.UpperBound(point, 0.9)
		width[network] = bound / point.Value
		if probability, _ := p.Probability(point, bound); math.Abs(probability-0.9) > 0.02 {
			t.Errorf("network %d: probability at the bound is %g", network, probability)
		}
	}
	if !(width[1] > 1.3*width[0]) {
		t.Errorf("bound / prediction is %g for the noisy network and %g for the other", width[1], width[0])
	}
	for _, spoil := range []func(c *regress.Calibration){
		func(c *regress.Calibration) { c.Levels.Feature = 0 },
		func(c *regress.Calibration) { c.Levels.Tables = c.Levels.Tables[:1] },
		func(c *regress.Calibration) { c.Levels.Tables[0].Count++ },
		func(c *regress.Calibration) { slices.Reverse(c.Levels.Tables[1].Residuals) },
	} {
		r, err := regress.FitLaw(context.Background(), d, regress.LawOptions{Transform: regress.Log})
		if err != nil {
			t.Fatal(err)
		}
		spoil(&r.Manifest.Calibration)
		manifest, err := r.EncodeManifest()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := regress.Decode(r.EncodeModel(), manifest); !errors.Is(err, regress.ErrBadFile) {
			t.Errorf("Decode of a spoiled calibration = %v", err)
		}
	}
}
