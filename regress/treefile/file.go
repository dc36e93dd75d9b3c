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
	f := &File{manifest: m, tree: tree, ensemble: ensemble}
	if err := f.compare(tree.root(), f.everything()); err != nil {
		return nil, fmt.Errorf("load regressor of %s: %w: %w", m.Target, ErrBadFile, err)
	}
	return f, nil
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

// cell is the set of rows that reach a node or leaf: above low, and at most high.
type cell struct{ low, high []float64 }

// everything returns the cell of the root.
func (f *File) everything() cell {
	var c cell
	for range f.tree.features {
		c.low, c.high = append(c.low, -math.MaxFloat64), append(c.high, math.MaxFloat64)
	}
	return c
}

// compare checks that leaves finds the value of each leaf below a child at two corners of its cell:
// the highest row, where each comparison to the left is an equality, and the lowest row above the
// thresholds to its right.
func (f *File) compare(child int, c cell) error {
	if child >= 0 {
		n := &f.tree.nodes[child]
		return f.compareBoth(n, c)
	}
	lowest := make([]float64, len(c.low))
	for i, x := range c.low {
		lowest[i] = math.Nextafter(x, math.Inf(1))
		if lowest[i] > c.high[i] {
			return nil // no row reaches the leaf
		}
	}
	want := f.tree.leaves[-1-child]
	for _, row := range [][]float64{lowest, c.high} {
		if got := f.ensemble.PredictSingle(row, 0); got != want {
			return fmt.Errorf("row %g: leaves predicts %g, want %g", row, got, want)
		}
	}
	return nil
}

// compareBoth compares both children of a node.
func (f *File) compareBoth(n *node, c cell) error {
	low, high := c.low[n.feature], c.high[n.feature]
	c.high[n.feature] = min(high, n.threshold)
	if err := f.compare(n.left, c); err != nil {
		return err
	}
	c.high[n.feature] = high
	c.low[n.feature] = max(low, n.threshold)
	err := f.compare(n.right, c)
	c.low[n.feature] = low
	return err
}
