package trainer

import (
	"context"

	"courier/regress"
	"courier/schemas"
)

// timeFamilies are compared for the targets that are times: the paper's forest,
// and the laws, which are right between and beyond the settings that were run. A
// Gaussian process is as good, but needs minutes at some thousand epochs.
var timeFamilies = []string{regress.FamilyForest, regress.FamilyLaw, regress.FamilyLawTrees}

// startupExamples are enough for a start-up time: a run has but one, and most
// depend on little but the program.
const startupExamples = 10

// Fit fits the regressor of a target. Times are fitted on their logarithm, by
// whichever family predicts unseen settings best at the usual confidence; the
// accuracy by the paper's forest.
func Fit(ctx context.Context, target string, examples []Example, o Options) (*regress.Regressor, error) {
	o = o.withDefaults()
	examples = thin(examples, o.Examples)
	d := Dataset(target, examples)
	progress := func(done, planned int) {}
	if o.Progress != nil {
		progress = func(done, planned int) { o.Progress(target, done, planned) }
	}
	var r *regress.Regressor
	var err error
	if target == schemas.TargetAccuracy {
		r, err = regress.FitForest(ctx, d, regress.ForestOptions{Trees: o.Trees, MaxDepth: o.Depth, Criterion: regress.Absolute, Bootstrap: true, Seed: o.Seed, Threads: o.Threads, Progress: progress})
	} else {
		s := regress.SelectOptions{Families: timeFamilies, Transform: regress.Log, Confidence: schemas.DefaultConfidence, Shuffles: 1, Seed: o.Seed, Threads: o.Threads, Progress: progress}
		if target == schemas.TargetStartup {
			s.MinExamples = startupExamples
		}
		r, _, err = regress.Select(ctx, d, s)
	}
	if err != nil {
		return nil, err
	}
	r.Manifest.Version = o.Version
	r.Manifest.Examples.First, r.Manifest.Examples.Last = times(examples)
	return r, nil
}
