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
	tree     *Tree
	ensemble *leaves.Ensemble
}

// Load reads a file and its manifest for predictions by package leaves. An error wraps ErrBadFile.
func Load(model, manifest []byte) (*File, error) {
	m, err := readManifest(manifest, model)
	if err != nil {
		return nil, fmt.Errorf("load regressor: %w", err)
	}
	tree, err := decode(model, m)
	if err != nil {
		return nil, fmt.Errorf("load regressor of %s: %w", m.Target, err)
	}
	ensemble, err := readByLeaves(model)
	if err != nil {
		return nil, fmt.Errorf("load regressor of %s: %w: leaves: %w", m.Target, ErrBadFile, err)
	}
	return &File{manifest: m, tree: tree, ensemble: ensemble}, nil
}

// readByLeaves must get only files that decode accepted.
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

// Predict returns the prediction for a row in the unit of the target. An error wraps ErrBadRow.
func (f *File) Predict(row []float64) (float64, error) {
	if !f.tree.isRow(row) {
		return 0, fmt.Errorf("%w: %g, want %d finite values", ErrBadRow, row, len(f.tree.features))
	}
	y := f.ensemble.PredictSingle(row, 0)
	if f.manifest.Transform == Log {
		y = math.Exp(y)
	}
	return y, nil
}
