// Package evidence predicts the time and the accuracy of training jobs from runs of the same
// model, with the uncertainty of each prediction.
//
// # Use
//
//	r, err := evidence.Fit(ctx, runs, evidence.Options{})  // learn a Regressor
//	b, err := json.Marshal(r)                              // store
//	p, err := evidence.Compile(r)                          // serve by a Predictor
//	t := p.Time(configuration, epochs)                     // a distribution
//	t.Median(), t.Quantile(0.95), t.Probability(600)       // seconds, seconds, 0 to 1
//	t.Support.Promisable()                                 // is there evidence?
//	p.Rest(configuration, done, epochs)                    // of a running job
//	p.Accuracy(configuration, epochs).Mean
//	p.Reaches(configuration, 0.9, epochs)                  // P(accuracy >= 0.9)
//
// # Method
//
// The unit of evidence is the run: a curve of cumulative seconds over its epochs. A configuration has
// a robust location and a variance at the points of a grid of epochs. What is shorter than the longest
// runs of the model continues as these do. Each model and dataset is fitted alone; other models
// contribute only a prior variance of the first epoch at a target, with bounded influence (pool).
//
// A configuration without runs is predicted from its neighbours: the log of its seconds per epoch after
// the first is the sum of a law of the batch size, a Gaussian process and an effect of the
// configuration (Rasmussen, Williams 2006, chapters 2.2 and 2.7), and the shape over the epochs is the
// usual one of the model. A running job is compared with its curve by a Kalman filter.
//
// Accuracy rests on the records of runs: the mean at an epoch, and the distribution of the first epoch
// that reaches a target, with runs that ended before as censored.
//
// Median, bound and probability of a prediction come from one Student-t distribution, so they
// cannot contradict each other. The product of the probabilities of time and accuracy is their
// joint probability.
//
// Sequential tests of the residuals of new runs detect drift: they find the scopes whose times jumped,
// with a factor for each. A fit multiplies the times from before a jump by its factor, or drops them.
// A State is a Regressor in use with its drift, and Update returns the next one. A Memory makes a fit
// repeat only the subjects whose runs have changed.
//
// # Guarantees
//
// Equal runs in any order give equal fits and equal JSON. A Predictor is immutable and safe for
// concurrent use. Support shows where no SLO may be promised: without runs of the model on the node type, outside the
// measured range, or far from any measured configuration.
//
// The package does no I/O and needs no clock.
package evidence
