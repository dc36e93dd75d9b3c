package regress

// ReadByLeaves returns the prediction function that package leaves reads from the bytes of a file.
func ReadByLeaves(model []byte) (func(row []float64) float64, error) { return readByLeaves(model) }
