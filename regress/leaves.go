package regress

import (
	"bufio"
	"bytes"
	"fmt"

	"github.com/dmitryikh/leaves"
)

// referee reads a file with leaves, a reader that is not ours, and returns how
// it predicts a row of the transformed target. Only files that Decode accepted
// may come here: leaves loops for ever on cycles and drops trees whose sizes are
// missing.
func referee(model []byte) (predict func(row []float64) float64, err error) {
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
