// Package anova analyses the variance of a response, such as the seconds of training runs, by the
// factors of a study and their interactions.
//
// # Use
//
//	d, err := anova.FromTable(t, anova.ColumnChoice{Response: "total_seconds",
//		Factors: []string{"batch_size", "cpus"}, Order: 2})
//	r, err := anova.Fit(d.Design)
//	r.Terms[0].F, r.Terms[0].P, r.Terms[0].PartialEta2
//
// # Method
//
// Fit computes a linear model and type II sums of squares: the squares of a term are the decrease
// of the residual squares when the term is added to all terms that do not contain it (Langsrud,
// 2003). A factor has a parameter for each level but the first; a covariate has a slope. The
// definitions are those of statsmodels, and the tests compare all figures with it.
//
// The effect size of a term is partial omega squared, with an interval by inversion of the
// noncentral F distribution (Steiger, 2004). Partial eta squared is the share in the sample, which
// is biased upwards. The residuals are checked by the tests of Shapiro and Wilk (Royston,
// 1995) and of Brown and Forsythe. If they fail, the logarithm of the response is often better.
//
// # Guarantees
//
// Fit refuses what it cannot estimate with an error that names the column and a remedy. A result
// has no NaN: figures that are not known are nil, and Notes gives the reason. All functions are
// pure and may be called concurrently.
package anova
