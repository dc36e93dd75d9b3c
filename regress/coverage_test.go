package regress_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"courier/regress"
)

// simulated is a study like the paper's: one surface of times over 96 configurations,
// drawn at random, with noise that grows with the number of jobs.
type simulated struct {
	slope, curve, load float64
	random             *rand.Rand
}

func simulate(random *rand.Rand) simulated {
	return simulated{
		0.75 + 0.2*random.Float64(), 0.1 * random.Float64(), 0.15 + 0.1*random.Float64(), random,
	}
}

// runs measures configurations (numbers below 96) in turn.
func (s simulated) runs(settings []int, n int) *regress.Dataset {
	d := &regress.Dataset{
		Features: []regress.Feature{{Name: "batch"}, {Name: "cpu"}, {Name: "njobs"},
			{
				Name:   "network",
				Levels: []string{"lenet5", "simplenet"},
			}, {Name: "processes"}},
		Columns:    make([][]float64, 5),
		TargetName: "time",
		TargetUnit: "s",
	}
	for i := range n {
		setting := settings[i%len(settings)]
		batch, cpu := []float64{64, 128, 256, 512}[setting%4], []float64{1, 2, 4, 8}[setting/4%4]
		jobs, network := []float64{1, 3, 5}[setting/16%3], float64(setting/48%2)
		log := 6.2 - s.slope*math.Log(batch/64) + s.curve*math.Log(batch/64)*math.Log(cpu) +
			s.load*math.Log(
				cpu,
			)*(jobs-1)/2 +
			0.1*(jobs-1)/2 - 0.2*network - 0.1*network*math.Log(batch/64) + 0.15*(1-network)/cpu
		for f, x := range []float64{batch, cpu, jobs, network, cpu * jobs} {
			d.Columns[f] = append(d.Columns[f], x)
		}
		d.Target = append(d.Target, math.Exp(log+(0.03+0.01*jobs)*s.random.NormFloat64()))
	}
	return d
}

// lookAlike returns a study of four fifths of the configurations, later runs of the same
// configurations, and runs of the remaining fifth.
func lookAlike(runs int, random *rand.Rand) (train, again, fresh *regress.Dataset) {
	s, settings := simulate(random), random.Perm(96)
	return s.runs(settings[:77], runs), s.runs(settings[:77], 154), s.runs(settings[77:], 190)
}

// coverageCase is a family whose coverage is measured, with the number of runs to
// fit and a number of studies that is fast enough for a normal test.
type coverageCase struct {
	name          string
	runs, studies int
	fit           func(d *regress.Dataset) (*regress.Regressor, error)
}

func coverings() []coverageCase {
	forest := regress.ForestOptions{Trees: 60, MaxDepth: 6, Bootstrap: true, Transform: regress.Log}
	boosting := regress.BoostingOptions{
		Trees:        100,
		Leaves:       4,
		LearningRate: 0.1,
		Criterion:    regress.Squared,
		Transform:    regress.Log,
	}
	corrected := regress.LawOptions{
		Transform: regress.Log,
		Boosting: &regress.BoostingOptions{
			Trees:        60,
			Leaves:       8,
			LearningRate: 0.05,
			Criterion:    regress.Squared,
		},
	}
	ctx := context.Background()
	return []coverageCase{
		{
			"forest, 77 runs", 77, 20,
			func(d *regress.Dataset) (*regress.Regressor, error) {
				return regress.FitForest(ctx, d, forest)
			},
		},
		{
			"forest, 231 runs", 231, 10,
			func(d *regress.Dataset) (*regress.Regressor, error) {
				return regress.FitForest(ctx, d, forest)
			},
		},
		{
			"boosting, 77 runs", 77, 40,
			func(d *regress.Dataset) (*regress.Regressor, error) {
				return regress.FitBoosting(ctx, d, boosting)
			},
		},
		{
			"boosting, 231 runs", 231, 20,
			func(d *regress.Dataset) (*regress.Regressor, error) {
				return regress.FitBoosting(ctx, d, boosting)
			},
		},
		{"law, 77 runs", 77, 80, func(d *regress.Dataset) (*regress.Regressor, error) {
			return regress.FitLaw(ctx, d, regress.LawOptions{Transform: regress.Log})
		}},
		{"law, 231 runs", 231, 40, func(d *regress.Dataset) (*regress.Regressor, error) {
			return regress.FitLaw(ctx, d, regress.LawOptions{Transform: regress.Log})
		}},
		{
			"law + boosting, 231 runs", 231, 20,
			func(d *regress.Dataset) (*regress.Regressor, error) {
				return regress.FitLaw(ctx, d, corrected)
			},
		},
		{"gaussian, 77 runs", 77, 20, func(d *regress.Dataset) (*regress.Regressor, error) {
			return regress.FitGaussian(ctx, d, regress.GaussianOptions{
				Transform: regress.Log,
				Starts:    1,
			})
		}},
		{"chosen, 77 runs", 77, 3, func(d *regress.Dataset) (*regress.Regressor, error) {
			r, _, err := regress.Select(ctx, d, regress.SelectOptions{
				Confidence: 0.9,
				Shuffles:   1,
				Transform:  regress.Log,
			})
			return r, err
		}},
	}
}

// share counts the bounds that hold, for each of the two networks.
type share struct{ held, total [2]float64 }

func (s *share) add(t *testing.T, p *regress.Predictor, later *regress.Dataset) {
	t.Helper()
	for i, truth := range later.Target {
		point, err := p.Predict(later.Row(i, nil))
		if err != nil {
			t.Fatal(err)
		}
		bound, promised := p.UpperBound(point, 0.9)
		if !promised {
			t.Fatalf("no bound for %+v", point)
		}
		k := int(later.Columns[3][i])
		if s.total[k]++; truth <= bound {
			s.held[k]++
		}
	}
}

func (s *share) ofNetwork(network int) float64 { return s.held[network] / s.total[network] }

func (s *share) whole() float64 { return (s.held[0] + s.held[1]) / (s.total[0] + s.total[1]) }

// A bound at 0.90 must cover 0.90 to 0.95 of the runs of configurations that were never
// measured, and at least 0.87 for each network: 200 simulated studies
// if COURIER_LONG is set, otherwise fewer, with wider limits. Of
// measured configurations trees cover more; the coverage must not be lower.
func TestUpperBound_CoversSimulatedData(t *testing.T) {
	skipUnderRace(t)
	const deviation = 0.05 // of the share of one study, at most
	long := os.Getenv("COURIER_LONG") != ""
	for _, c := range coverings() {
		t.Run(c.name, func(t *testing.T) {
			studies, doubt := c.studies, 3*deviation/math.Sqrt(float64(c.studies))
			if long {
				studies, doubt = 200, 0
			}
			var known, unknown share
			for study := range uint64(studies) {
				d, again, fresh := lookAlike(c.runs, rand.New(rand.NewPCG(study, 11)))
				r, err := c.fit(d)
				if err != nil {
					t.Fatal(err)
				}
				p, err := regress.Compile(r)
				if err != nil {
					t.Fatal(err)
				}
				if own := r.Manifest.Calibration.Levels != nil; own != (c.runs > 100) {
					t.Fatalf("a table per network = %v, want one from over 100 runs on", own)
				}
				known.add(t, p, again)
				unknown.add(t, p, fresh)
			}
			t.Logf("%d studies: %.4f of new configurations, %.4f and %.4f per network; %.4f of known ones",
				studies, unknown.whole(), unknown.ofNetwork(0), unknown.ofNetwork(1), known.whole())
			if whole := unknown.whole(); whole < 0.90-doubt || whole > 0.95+doubt {
				t.Errorf("coverage of the bound at 0.90 is %.4f, want 0.90 to 0.95", whole)
			}
			for k := range 2 {
				if unknown.ofNetwork(k) < 0.87-doubt {
					t.Errorf("network %d: %.4f, want at least 0.87", k, unknown.ofNetwork(k))
				}
			}
			if known.whole() < 0.90-doubt {
				t.Errorf("coverage of measured configurations is %.4f, want at least 0.90",
					known.whole())
			}
		})
	}
}
