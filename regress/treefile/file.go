package treefile

import (
	"bufio"
	"bytes"
	"fmt"
	"math"

	"github.com/dmitryikh/leaves"
)

// File is a loaded regressor.
type File struct {
	manifest *Manifest
	ensemble *leaves.Ensemble
}

// Load reads a file and its manifest for predictions by package leaves.
func Load(model, manifest []byte) (*File, error) {
	m, err := readManifest(manifest, model)
	if err != nil {
		return nil, fmt.Errorf("load regressor: %w", err)
	}
	ensemble, err := readByLeaves(model)
	if err != nil {
		return nil, fmt.Errorf("load regressor of %s: leaves: %w", m.Target, err)
	}
	return &File{manifest: m, ensemble: ensemble}, nil
}

// readByLeaves returns an error for a file that package leaves refuses, or on which it panics.
func readByLeaves(model []byte) (e *leaves.Ensemble, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return leaves.LGEnsembleFromReader(bufio.NewReader(bytes.NewReader(model)), false)
}

// Manifest returns the manifest of the file, which must not be changed.
func (f *File) Manifest() *Manifest { return f.manifest }

// Predict returns the prediction for a row in the unit of the target. A row has one finite number
// per feature.
func (f *File) Predict(row []float64) (float64, error) {
	if features := f.manifest.Features; !isRow(row, features) {
		return 0, fmt.Errorf("row is %g, want %d finite values", row, len(features))
	}
	y := f.ensemble.PredictSingle(row, 0)
	if f.manifest.Transform == Log {
		y = math.Exp(y)
	}
	return y, nil
}
