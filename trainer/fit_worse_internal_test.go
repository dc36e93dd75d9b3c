package trainer

import (
	"math"
	"strings"
	"testing"
	"time"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// A refit that predicts the last runs of a model worse than what is served leaves this model as it was,
// and says why; other models learn, and so does a model whose runs really changed.
func TestFit_KeepsAModelWhoseRefitIsWorse(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	number := 0
	add := func(to []Example, model string, hour, seconds float64) []Example {
		number++
		s := seconds * (1 + 0.004*float64(number%5-2))
		at := begin.Add(time.Duration(hour * float64(time.Hour)))
		return append(to, epochExamples(model, number, 64, at, s, s*1.002, s*0.998)...)
	}
	median := func(t *testing.T, m *treefile.Manifest, model string) float64 {
		p, err := evidence.Compile(stateOf(m).Regressor)
		if err != nil {
			t.Fatal(err)
		}
		c := evidence.Configuration{
			Model: model, BatchSize: 64, CPUs: 1, NodeLoad: evidence.NodeLoad{ConcurrentJobs: 1},
		}
		return p.Time(c, 1).Median()
	}
	var past []Example
	for hour := range 6 {
		past = add(past, "mlp", float64(hour), 10)
		past = add(past, "other", float64(hour), 20)
	}
	served := fitEpochTimes(t, past, nil)
	for _, test := range []struct {
		name       string
		old, later float64 // seconds of runs of mlp from before the fit that arrive late, and of later ones
		laterRuns  int
		want       float64
		isKept     bool
	}{
		{"false runs", 40, 10, 5, 10, true},
		{"more of the same", 10, 10, 5, 10, false},
		{"drift", 0, 15, 20, 15, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := past
			for i := 0; i < 20 && test.old > 0; i++ {
				all = add(all, "mlp", -100+float64(i), test.old)
			}
			for i := range test.laterRuns {
				all = add(all, "mlp", 10+float64(i), test.later)
			}
			all = add(all, "other", 60, 20)
			all = add(all, "new", 61, 7)
			files := fitFiles(t, schemas.TargetEpochTime, all, served)
			c, err := newCandidate(files, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			why := keptModels(files.Scores)
			if strings.Contains(why, "mlp stays as it was") != test.isKept || strings.Contains(why, "other") {
				t.Errorf("kept: %q, want mlp kept %v, scores %+v", why, test.isKept, files.Scores)
			}
			if test.isKept != (c.fitted.RefitScore < c.fitted.ServedScore-0.1) {
				t.Errorf("scores of the event: %+v", c.fitted)
			}
			file, err := treefile.Load(files.Model, files.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			m := file.Manifest()
			for model, want := range map[string]float64{"mlp": test.want, "other": 20, "new": 7} {
				if got := median(t, m, model); math.Abs(got/want-1) > 0.05 {
					t.Errorf("%s: %g s, want about %g s", model, got, want)
				}
			}
			again := fitFiles(t, schemas.TargetEpochTime, all, m)
			if why := keptModels(again.Scores); strings.Contains(why, "mlp") != test.isKept {
				t.Errorf("the next fit keeps %q, want mlp kept %v", why, test.isKept)
			}
		})
	}
}
