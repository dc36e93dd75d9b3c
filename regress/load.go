package regress

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/dmitryikh/leaves"
)

// checkedRows is the number of rows that two readers predict before a regressor is used.
const checkedRows = 256

// Load decodes and compiles a regressor's file. It reads the same bytes with package leaves and
// compares the predictions of 256 rows at the thresholds, next to them, and at the corners of the
// support. An error wraps ErrBadFile or ErrDisagree.
func Load(model, manifest []byte) (*Predictor, error) {
	r, err := Decode(model, manifest)
	if err != nil {
		return nil, err
	}
	var other func(row []float64) float64
	var unread error
	var reading sync.WaitGroup
	reading.Go(func() { other, unread = readByLeaves(model) })
	p, err := Compile(r)
	reading.Wait()
	if err != nil {
		return nil, err
	}
	if unread != nil {
		return nil, fmt.Errorf("load regressor of %s: %w", r.Manifest.Target, unread)
	}
	if err := agree(r, p, other); err != nil {
		return nil, fmt.Errorf("load regressor of %s: %w", r.Manifest.Target, err)
	}
	return p, nil
}

// agree compares a compiled regressor with the raw predictions of another reader. Both add in the
// same order, so only fused multiplications may differ; the tolerance grows with the added numbers.
func agree(r *Regressor, p *Predictor, other func(row []float64) float64) error {
	size := 1.0
	for i := range r.trees {
		most := 0.0
		for _, l := range r.trees[i].leaves {
			most = max(most, math.Abs(l.value))
		}
		size += most * r.share()
	}
	rows := checkRows(r)
	found := make([]error, readers())
	parallel(readers(), len(rows), 32, func(run, from, to int) {
		for _, row := range rows[from:to] {
			if found[run] = agreeOn(r, p, other, row, size); found[run] != nil {
				return
			}
		}
	})
	return cmp.Or(found...)
}

// agreeOn compares the predictions for one row.
func agreeOn(
	r *Regressor, p *Predictor, other func(row []float64) float64, row []float64, size float64,
) error {
	ours, raw := p.form.predict(row), other(row)
	if base := r.Manifest.base(); base != nil {
		raw = bounded(raw+base.predict(row), r.Manifest.Transform)
	}
	theirs, tolerance := r.Manifest.Transform.invert(raw), 1e-12*(size+math.Abs(raw))
	if r.Manifest.Transform == Log {
		tolerance *= math.Abs(theirs)
	}
	if !(math.Abs(ours-theirs) <= tolerance) {
		return fmt.Errorf("%w: row %g: predicted %g, package leaves predicts %g", ErrDisagree, row, ours, theirs)
	}
	return nil
}

// readers returns the number of goroutines that read and compare a file.
func readers() int { return min(runtime.GOMAXPROCS(0), 4) }

// checkRows returns rows at which errors would show: the corners of the support, then each
// threshold and its neighbouring numbers, with the other features drawn from theirs.
func checkRows(r *Regressor) [][]float64 {
	features := r.Manifest.Features
	axes := axesOf(&r.ensemble, len(features))
	values := make([][]float64, len(features))
	for f, feature := range features {
		values[f] = []float64{feature.Min, feature.Max}
		for _, t := range axes[f].thresholds {
			values[f] = append(values[f], t, math.Nextafter(t, math.Inf(-1)),
				math.Nextafter(t, math.Inf(1)))
		}
	}
	rows := make([][]float64, checkedRows)
	corners := min(1<<min(len(features), 6), checkedRows/4)
	random := stream(1)
	for i := range rows {
		rows[i] = make([]float64, len(features))
		for f := range features {
			switch {
			case i < corners:
				rows[i][f] = values[f][i>>(f%6)&1]
			case (i-corners)%len(features) == f:
				rows[i][f] = values[f][(i-corners)/len(features)%len(values[f])]
			default:
				rows[i][f] = values[f][random.below(len(values[f]))]
			}
		}
	}
	return rows
}

// readByLeaves reads a file with package leaves, an independent reader, and returns its prediction
// of the transformed target. It must get only files that Decode accepted: leaves loops forever on
// cycles and drops trees whose sizes are missing.
func readByLeaves(model []byte) (predict func(row []float64) float64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: leaves: %v", ErrBadFile, r)
		}
	}()
	e, err := leaves.LGEnsembleFromReader(bufio.NewReader(bytes.NewReader(model)), false)
	if err != nil {
		return nil, fmt.Errorf("%w: leaves: %w", ErrBadFile, err)
	}
	// A file has at least two columns; a row of a single feature is filled up.
	features := e.NFeatures()
	return func(row []float64) float64 {
		wide := make([]float64, features)
		copy(wide, row)
		return e.PredictSingle(wide, 0)
	}, nil
}
