package trainer

import (
	"testing"
	"time"

	"courier/regress"
	"courier/schemas"
)

func secondAt(s int64) time.Time { return time.Unix(s, 0).UTC() }

// examplesUntil returns runs of six configurations, one each second up to an instant.
func examplesUntil(last int64) (all []Example) {
	for s := last - 23; s <= last; s++ {
		batch, cpus := uint32(4)<<(2*(s%3)), uint32(1+s%2)
		all = append(all, Example{
			Model: "m",
			Nodes: []string{"a"},
			Features: schemas.Features{
				BatchSize: batch,
				CPUs:      cpus,
				Load:      schemas.Load{ConcurrentJobs: 1, Processes: float64(cpus)},
			},
			Value:  (1 + 8/float64(batch)) / float64(cpus) * (1 + 0.001*float64(s%7)),
			Weight: 1,
			At: secondAt(
				s,
			),
		})
	}
	return all
}

func fittedUntil(t *testing.T, last int64) *loadedRegressor {
	t.Helper()
	r, err := Fit(t.Context(), schemas.TargetEpochTime, examplesUntil(last), Options{Trees: 5})
	if err != nil {
		t.Fatal(err)
	}
	p, err := regress.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Manifest().Examples.Last; !got.Equal(secondAt(last)) {
		t.Fatalf("the last example is at %s, want %s", got, secondAt(last))
	}
	return &loadedRegressor{predictor: p}
}

// A leading challenger stays, unless the drift began after all of its examples.
func TestIsTrialPending_EndsForAChallengerFromBeforeADrift(t *testing.T) {
	champion, challenger := fittedUntil(t, 100), fittedUntil(t, 200)
	tr := &Trainer{trials: map[string]*Trial{}}
	tr.active.Store(&map[string]activeRegressors{
		schemas.TargetEpochTime: {champion: champion, challenger: challenger},
	})
	trial, err := newTrial(schemas.TargetEpochTime, champion.predictor, challenger.predictor)
	if err != nil {
		t.Fatal(err)
	}
	for range earlyJobs {
		trial.groups, trial.covered = append(trial.groups, 0), [2]float64{
			trial.covered[0] + 1, trial.covered[1] + 1,
		}
		trial.losses[0], trial.losses[1] = append(trial.losses[0], 0.2), append(trial.losses[1],
			0.18)
	}
	tr.trials[schemas.TargetEpochTime] = trial
	for _, c := range []struct {
		name string
		from int64
		want bool
	}{{"before it was fitted", 150, true}, {"after", 250, false}} {
		tr.drifts = []knownDrift{{DriftScope{Kind: ScopeAll}, secondAt(c.from), 2}}
		if got := tr.isTrialPending(schemas.TargetEpochTime, true); got != c.want {
			t.Errorf("drift %s: isTrialPending = %t, want %t", c.name, got, c.want)
		}
	}
}

// Growth counts current examples only.
func TestCountCurrent_IgnoresStaleExamples(t *testing.T) {
	tr := &Trainer{drifts: []knownDrift{{DriftScope{ScopeNode, "a"}, secondAt(190), 2}}}
	examples := append(examplesUntil(100), examplesUntil(200)...) // 48, of which 11 after the drift
	if before, now := tr.countCurrent(examples, secondAt(194)); before != 5 || now != 11 {
		t.Errorf("before %d, now %d, want 5 and 11", before, now)
	}
	tr.drifts[0].scope.Name = "b"
	if before, now := tr.countCurrent(examples, secondAt(100)); before != 24 || now != 48 {
		t.Errorf("drift of another node: before %d, now %d, want 24 and 48", before, now)
	}
}

// Runs from before a drift of their scope are not compared.
func TestTrial_ComparesSinceADrift(t *testing.T) {
	trial, err := newTrial(schemas.TargetEpochTime, fittedUntil(t, 100).predictor,
		fittedUntil(t, 200).predictor)
	if err != nil {
		t.Fatal(err)
	}
	trial.drifts = []knownDrift{{DriftScope{ScopeNode, "a"}, secondAt(300), 2}}
	for _, c := range []struct {
		node  string
		begin int64
		want  bool
	}{{"a", 250, false}, {"a", 300, true}, {"b", 250, true}, {"b", 150, false}} {
		r := &run{
			first: 10,
			model: "m",
			span:  schemas.Span{From: secondAt(c.begin), Nodes: []string{c.node}},
		}
		if got := trial.isFair(r, 5); got != c.want {
			t.Errorf("run on %s at %d: isFair = %t, want %t", c.node, c.begin, got, c.want)
		}
	}
}
