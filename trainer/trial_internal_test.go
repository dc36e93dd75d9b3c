package trainer

import (
	"math"
	"math/rand/v2"
	"testing"

	"courier/schemas"
)

func TestJudge(t *testing.T) {
	good := func(change func(*schemas.Judgement)) schemas.Judgement {
		p := func(v float64) *float64 { return &v }
		j := schemas.Judgement{
			JudgedLevel:        0.95,
			JudgedJobs:         50,
			JudgedSettings:     6,
			Loss:               p(0.010),
			RivalLoss:          p(0.012),
			LossDifferenceLow:  p(-0.003),
			LossDifferenceHigh: p(-0.001),
			CoverageRatio:      p(0.95),
			RivalCoverageRatio: p(0.95),
		}
		if change != nil {
			change(&j)
		}
		return j
	}
	for _, c := range []struct {
		name string
		j    schemas.Judgement
		want verdict
	}{
		{"a lower loss, and not by luck", good(nil), better},
		{
			"lower by less than it takes", good(func(j *schemas.Judgement) { *j.Loss = 0.0119 }),
			undecided,
		},
		{
			"perhaps by luck", good(func(j *schemas.Judgement) { *j.LossDifferenceHigh = 0.0001 }),
			undecided,
		},
		{
			"its bound fails", good(func(j *schemas.Judgement) { *j.CoverageRatio = 0.90 }),
			undecided,
		},
		{
			"its bound fails, but that of the other fails far more",
			good(func(j *schemas.Judgement) {
				*j.CoverageRatio, *j.RivalCoverageRatio = 0.90, 0.2
			}),
			better,
		},
		{
			"an accuracy has no bound to hold",
			good(func(j *schemas.Judgement) { j.JudgedLevel, *j.CoverageRatio = medianLevel, 0.4 }),
			better,
		},
		{
			"it cannot promise what the other can",
			good(func(j *schemas.Judgement) { j.LostSettings = 1 }), undecided,
		},
		{
			"the same for long",
			good(func(j *schemas.Judgement) { j.LostSettings, j.JudgedJobs = 1, maxJobs }),
			noBetter,
		},
		{"worse, and not by luck", good(func(j *schemas.Judgement) {
			*j.Loss, *j.LossDifferenceLow, *j.LossDifferenceHigh = 0.013, 0.0005, 0.002
		}), noBetter},
		{
			"no better for long",
			good(func(j *schemas.Judgement) { *j.Loss, j.JudgedJobs = 0.0119, maxJobs }),
			noBetter,
		},
		{"nothing was compared", schemas.Judgement{}, undecided},
	} {
		if got, reason := judge(&c.j); got != c.want || reason == "" {
			t.Errorf("%s: judge = %v (%s), want %v", c.name, got, reason, c.want)
		}
	}
}

// randomVerdict returns the verdict of a trial with random losses. The losses of the challenger are
// lower by a factor.
func randomVerdict(random *rand.Rand, jobs, configurations int, factor float64) (r verdict) {
	t := &Trial{level: 0.95, settings: map[string]int{}, nextLookAt: minSettings}
	for n := range jobs {
		loss := [2]float64{math.Exp(0.5*random.NormFloat64() - 4), 0}
		loss[1] = factor * loss[0] * math.Exp(0.2*random.NormFloat64()-0.02)
		name := string(rune('a' + n%configurations))
		if _, met := t.settings[name]; !met {
			t.settings[name] = len(t.settings)
		}
		t.groups = append(t.groups, t.settings[name])
		for i := range 2 {
			t.losses[i] = append(t.losses[i], loss[i])
			if random.Float64() < 0.95 {
				t.covered[i]++
			}
		}
		if r, _, _ = t.verdict(); r != undecided {
			return r
		}
	}
	return r
}

// Equal regressors rarely replace each other; better ones do.
func TestTrial_RarelyPromotesEqualRegressors(t *testing.T) {
	if testing.Short() {
		t.Skip("a question of numbers, not of races")
	}
	random := rand.New(rand.NewPCG(1, 2))
	const plays = 300
	for _, c := range []struct {
		factor    float64
		low, high float64 // range of the share of trials that the challenger wins
	}{{1.02, 0, 0.03}, {1, 0, 0.15}, {1.1, 0, 0.01}, {0.8, 0.9, 1}} {
		won := 0.0
		for range plays {
			if randomVerdict(random, maxJobs, 12, c.factor) == better {
				won += 1.0 / plays
			}
		}
		t.Logf("loss ratio %.2f: challenger won %.3f", c.factor, won)
		if won < c.low || won > c.high {
			t.Errorf("loss ratio %.2f: challenger won %.3f of the trials, want %.2f to %.2f",
				c.factor, won, c.low, c.high)
		}
	}
}

func TestTrial_NeedsSeveralConfigurations(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	won := 0
	for range 100 {
		if randomVerdict(random, minJobs, 1, 1) == better {
			won++
		}
	}
	if won > 5 {
		t.Errorf("with one configuration, %d of 100 equal challengers won, want at most 5",
			won)
	}
}

func TestMeanError(t *testing.T) {
	x := func(model string, batch uint32, value float64) Example {
		return Example{
			Model:    model,
			Features: schemas.Features{BatchSize: batch},
			Value:    value,
			Weight:   1,
		}
	}
	for _, c := range []struct {
		name     string
		examples []Example
		want     float64
	}{
		{
			"each setting by the others of its model",
			[]Example{x("a", 1, 1), x("a", 2, 3), x("b", 1, 10), x("b", 2, 10)}, (4 + 4) / 4.0,
		},
		{
			"a model's only setting by all others",
			[]Example{x("a", 1, 1), x("b", 1, 3), x("b", 2, 3)}, 4 / 3.0,
		},
		{"one setting", []Example{x("a", 1, 1), x("a", 1, 2)}, math.Inf(1)},
	} {
		if got := meanError(c.examples); math.Abs(got-c.want) > 1e-12 && got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWorseThanMean(t *testing.T) {
	x := func(batch uint32, value float64) Example {
		return Example{
			Model:    "m",
			Features: schemas.Features{BatchSize: batch},
			Value:    value,
			Weight:   1,
		}
	}
	noisy := []Example{x(1, 1), x(2, 3), x(3, 2)}
	constant := []Example{x(1, 0.3), x(2, 0.3), x(3, 0.3)}
	for _, c := range []struct {
		name     string
		squared  float64
		examples []Example
		useful   bool
	}{
		{"half the error of the mean", meanError(noisy) / 2, noisy, true},
		{"as good as the mean", meanError(noisy), noisy, true},
		{"worse than the mean", 1.2 * meanError(noisy), noisy, false},
		{"a constant, but for rounding", 1e-33, constant, true},
	} {
		if why := worseThanMean(c.squared, c.examples); (why == "") != c.useful {
			t.Errorf("%s: %q, want useful %v", c.name, why, c.useful)
		}
	}
}
