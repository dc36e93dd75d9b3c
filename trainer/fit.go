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

// Fit fits the regressor of a target by the method of the options.
func Fit(
	ctx context.Context, target string, examples []Example, o Options,
) (*regress.Regressor, error) {
	return fitAfter(ctx, target, examples, nil, o)
}

// fitAfter is Fit after a regressor whose evidence it goes on from; nil: there is none.
func fitAfter(
	ctx context.Context, target string, examples []Example, before *regress.Manifest, o Options,
) (r *regress.Regressor, err error) {
	o = o.withDefaults()
	examples = thin(examples, o.Examples)
	if o.Method == MethodEvidence {
		r, err = fitEvidence(ctx, target, examples, before, o)
	} else {
		r, err = fitFamilies(ctx, target, examples, o)
	}
	if err != nil {
		return nil, err
	}
	complete(r, examples, o)
	return r, nil
}

// complete writes into a manifest what a regressor was fitted on, and by whom.
func complete(r *regress.Regressor, examples []Example, o Options) {
	r.Manifest.Version = o.Version
	r.Manifest.Examples.First, r.Manifest.Examples.Last = times(examples)
}

// fitFamilies fits one regressor for all models. Times are fitted on their logarithm, by whichever
// family predicts unseen settings best at the usual confidence; the accuracy by the paper's forest.
// The time of epochs has columns of foreign load where these lower the error on runs that were held
// out.
func fitFamilies(
	ctx context.Context, target string, examples []Example, o Options,
) (*regress.Regressor, error) {
	d := Dataset(target, examples, foreignColumns(ctx, target, examples)...)
	progress := func(done, planned int) {}
	if o.Progress != nil {
		progress = func(done, planned int) { o.Progress(target, done, planned) }
	}
	if target == schemas.TargetAccuracy {
		return regress.FitForest(ctx, d, regress.ForestOptions{
			Trees: o.Trees, MaxDepth: o.Depth, Criterion: regress.Absolute, Bootstrap: true,
			Seed: o.Seed, Threads: o.Threads, Progress: progress,
		})
	}
	s := regress.SelectOptions{
		Families: timeFamilies, Transform: regress.Log, Confidence: schemas.DefaultConfidence,
		Shuffles: 1, Seed: o.Seed, Threads: o.Threads, Progress: progress,
	}
	if target == schemas.TargetStartup {
		s.MinExamples = startupExamples
	}
	r, _, err := regress.Select(ctx, d, s)
	return r, err
}
