package regress

// ReadByLeaves returns how leaves predicts by the bytes of a file.
func ReadByLeaves(model []byte) (func(row []float64) float64, error) { return readByLeaves(model) }
