// Package regress fits regressors and measures how accurate they are. It does not depend on jobs,
// network or disk; its input and output are numbers.
//
// # Use
//
// Examples form a Dataset: a column per Feature, a Target, and the Group of each example. A group
// is a configuration; its replications are examples of the same group. Splits never separate a
// group, because a regressor that has seen one replication predicts the others too well.
//
//	r, err := regress.FitForest(ctx, data, regress.ForestOptions{
//		Trees: 2000, MaxDepth: 6, Bootstrap: true, Transform: regress.Log,
//	})
//	model := r.EncodeModel()                // LightGBM text
//	manifest, err := r.EncodeManifest()     // JSON: ranges, scores, calibration
//	p, err := regress.Load(model, manifest) // elsewhere, later
//	point, err := p.Predict(row)
//	bound, ok := p.UpperBound(point, 0.95)  // holds 19 times of 20
//	chance, ok := p.Probability(point, 600) // P(target <= 600)
//
// # Families
//
// Select compares families on held-out configurations and fits the best:
//
//	r, report, err := regress.Select(ctx, data, regress.SelectOptions{Confidence: 0.9})
//
// FitForest and FitBoosting grow trees. FitLaw fits a formula, optionally with trees that correct
// it. FitGaussian fits a Gaussian process, the best family for some dozens of examples. All return
// a Regressor with the same file format, bounds and Predictor: law and process are part of the
// manifest, and the trees of the file correct them.
//
// Importance, PartialDependence and Paired explain and compare regressors.
//
// # Files
//
// dataset*.go hold examples and folds; tree*.go, forest*.go and boost*.go grow trees; law*.go and
// gaussian*.go fit formulas and processes; calibration*.go and select*.go calibrate and select;
// encode.go, decode.go, manifest.go and load.go read and write files; predictor.go and compile.go
// predict.
//
// # Guarantees
//
// Equal examples in any order and equal options give the same bytes, on any number of threads. A
// fit stops between two trees when its context ends.
//
// Bounds are calibrated: they come from a table of the errors on held-out configurations. If the
// table is too short for the confidence, there is no bound. Outside the support no guarantee holds
// (Prediction.Extrapolated). The second results of UpperBound and Probability report this.
//
// The table holds errors at measured levels. A number between two levels, such as batch size 100
// between 64 and 128, is marked (Prediction.Between). Its bound is widened by its distance to the
// nearest level times the error at held-out levels (Manifest.LeftOut): little for a smooth family,
// much for trees. If no level can be held out, no guarantee holds between levels. A number has
// levels if it has at most 32 values, each in two configurations or more. SelectReport.Levels shows
// the coverage at held-out levels, and Select considers it.
//
// Each line and index of a file is checked. Load also reads the file with an independent reader and
// refuses it if the predictions differ. A Predictor is immutable, safe for concurrent use, and
// allocates nothing.
//
// # Callers
//
// Callers map names of levels to indices (Feature.Level), pass rows in the order of
// Predictor.Features, and treat ErrTooFewExamples as "collect more examples".
//
// # Testing against it
//
// Tests can fit a small forest on a dozen configurations in milliseconds. Seeds make it
// reproducible.
package regress

import (
	"errors"
)

// Errors for errors.Is. Every error caused by an argument wraps one of them and names the field.
var (
	// ErrTooFewExamples reports that there are not enough examples or configurations for a fit.
	ErrTooFewExamples = errors.New("too few examples")
	// ErrBadExamples reports a Dataset that violates a rule of Validate.
	ErrBadExamples = errors.New("bad examples")
	// ErrBadOptions reports options that are out of range.
	ErrBadOptions = errors.New("bad options")
	// ErrBadFile reports a regressor's file or manifest that is damaged or has another format.
	// No part of it may be used.
	ErrBadFile = errors.New("bad regressor file")
	// ErrBadRow reports a row of the wrong length, or with a value that is not finite.
	ErrBadRow = errors.New("bad row")
	// ErrDisagree reports that two readers of one file predict differently; Load refuses such a
	// file.
	ErrDisagree = errors.New("readers of the file disagree")
)
