// Package regress learns functions from examples and says how sure it is of
// them. It knows no job, no network and no disk: numbers in, numbers out.
//
// # Use
//
// Examples are a Dataset: a column per Feature, a Target, and for each example
// the Group that it belongs to. A group is a setting; measuring it again gives
// examples of the same group, and no split ever separates them, because a
// regressor that has seen one replication predicts the others too well.
//
//	r, err := regress.FitForest(ctx, data, regress.ForestOptions{Trees: 2000, MaxDepth: 6, Bootstrap: true, Transform: regress.Log})
//	model := r.EncodeModel()                // LightGBM text
//	manifest, err := r.EncodeManifest()     // JSON: ranges, scores, calibration
//	p, err := regress.Load(model, manifest) // elsewhere, later
//	point, err := p.Predict(row)
//	bound, ok := p.UpperBound(point, 0.95)  // stays under it 19 times of 20
//	chance, ok := p.Probability(point, 600) // of at most 600
//
// # Families
//
// Select compares them on settings held out and fits the best:
//
//	r, report, err := regress.Select(ctx, data, regress.SelectOptions{Confidence: 0.9})
//
// FitForest and FitBoosting grow trees. FitLaw fits a formula, with or without
// trees that correct it; FitGaussian a Gaussian process, the best of all where there
// are some dozens of examples. All of them are a Regressor, with the same file,
// bounds and Predictor: what a law or a process knows lies in the manifest, and the
// file's trees correct it.
//
// Importance, PartialDependence and Paired explain and compare.
//
// # Promises
//
// Equal examples in any order and equal options give the same bytes, on any
// number of threads. A fit stops between two trees when its context ends.
//
// A bound is no wish of the model: it is read from a table of how far
// predictions missed settings that were not learnt from. Where the table is too
// short for the confidence there is no bound, and beyond the examples no promise
// (Prediction.Extrapolated); the second results of UpperBound and Probability
// say so.
//
// The table knows settings made of measured levels. A number between two of
// them, a batch size of 100 where 64 and 128 were measured, is marked
// (Prediction.Between), and its bound is widened by its distance from the nearest
// level times what the regressor missed levels by that were left out
// (Manifest.LeftOut): little for a smooth family, much for trees. Where none could
// be left out nothing is promised. A number has levels where at most 32 values
// occur, each in two settings or more; a load that was measured in fractions has
// none. Report.Levels tells how bounds held without a level, and Select looks at it.
//
// A file is believed only after each line and index was checked; Load also reads
// it with another program's reader and refuses it where the two disagree. A
// Predictor never changes, serves any number of goroutines and allocates
// nothing.
//
// # Callers
//
// Callers turn names of levels into indices (Feature.Level), pass rows in the
// order of Predictor.Features, and treat ErrTooFewExamples as "gather more", not
// as a failure.
//
// # Testing against it
//
// Fit a small forest on a dozen settings: that takes milliseconds, and no double
// is needed. Seeds make it repeatable.
package regress

import (
	"errors"
)

// The errors that callers tell apart with errors.Is. Every error of the package
// that is caused by what was handed in wraps one of them and names the field.
var (
	// ErrTooFewExamples says that there is not enough to learn from: the caller
	// should gather examples, not trust a regressor.
	ErrTooFewExamples = errors.New("too few examples")
	// ErrBadExamples says that a Dataset breaks a rule that Validate checks.
	ErrBadExamples = errors.New("bad examples")
	// ErrBadSettings says that options are out of range.
	ErrBadSettings = errors.New("bad settings")
	// ErrBadFile says that a regressor's file or manifest is damaged, foreign or
	// hostile. Nothing of it may be used.
	ErrBadFile = errors.New("bad regressor file")
	// ErrBadRow says that a row to predict has the wrong length or a value that
	// is not a finite number.
	ErrBadRow = errors.New("bad row")
	// ErrDisagree says that two readers of one file predict differently; Load
	// refuses such a file.
	ErrDisagree = errors.New("readers of the file disagree")
)
