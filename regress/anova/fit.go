package anova

// Fit analyses the variance of a design.
func Fit(d Design) (*VarianceAnalysis, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	l, err := newLayout(&d)
	if err != nil {
		return nil, err
	}
	m, err := newModel(l)
	if err != nil {
		return nil, err
	}
	r := m.result()
	if err := m.addTerms(r); err != nil {
		return nil, err
	}
	r.addChecks(&d)
	m.addMeans(r)
	return r, nil
}
