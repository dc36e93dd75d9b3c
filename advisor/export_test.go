package advisor

// WithDigests returns the regressors as the advisor uses them: with their digests computed once.
func (r Regressors) WithDigests() Regressors {
	r.digestByTarget = r.digests()
	return r
}
