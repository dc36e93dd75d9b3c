// Package treefile stores a regressor as a regression tree in LightGBM's text format, next to a
// manifest in JSON.
//
// # Use
//
//	tree, err := treefile.Grow(features, points)         // one leaf per distinct point
//	model, manifest, err := tree.Encode(treefile.Manifest{Target: "epoch_time"})
//	file, err := treefile.Load(model, manifest)          // elsewhere, later
//	seconds, err := file.Predict(row)                    // by package leaves
//
// A tree is a table of predictions: at the row of a point it returns the value of the point, between
// points the value of a near one. LightGBM and package leaves read the file.
//
// # Files
//
// tree.go grows a tree, encode.go writes it, manifest.go describes it, and file.go loads it for
// predictions.
//
// # Guarantees
//
// Equal points in any order give the same bytes. Load refuses a file without the digest of its
// manifest, so that package leaves never gets a damaged one: it loops forever on cycles. A File is
// immutable and safe for concurrent use.
//
// The package does no I/O.
package treefile
