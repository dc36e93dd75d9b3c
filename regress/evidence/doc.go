// Package evidence predicts the epoch time and the accuracy of training jobs from runs of the same
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
//	a := p.Accuracy(configuration, epochs)
//	a.Reaches(0.9)                                         // P(accuracy >= 0.9)
//
// # Method
//
// The unit of evidence is the run: fifty epochs of one run are one observation of its
// configuration. Each model and dataset is fitted separately. Other models contribute prior
// variances, never a mean.
//
// The log of the mean epoch seconds of a run is the sum of a law of the batch size, a Gaussian
// process, an effect of the configuration, an effect of the run, and the noise of its epochs
// (mixed-effects model; Rasmussen, Williams 2006, chapters 2.2 and 2.7). A configuration with many
// runs is predicted by its own mean; one without runs is predicted from its neighbours. Accuracy is
// predicted by first-passage times: for each accuracy level, the distribution of the first epoch
// that reaches it, and the probability that it is ever reached (beta-binomial).
//
// Median, bound and probability of a prediction come from one Student-t distribution, so they
// cannot contradict each other. The product of the probabilities of time and accuracy is their
// joint probability.
//
// Drift is corrected in a served predictor by the residuals of new runs: factors for the scopes
// whose times jumped, found by sequential tests, and a slowly changing field. A State is a Regressor
// in use with its drift: Update learns from all known runs, Correct applies new runs without a fit.
//
// # Guarantees
//
// Equal runs in any order give equal fits and equal JSON. A Predictor is immutable and safe for
// concurrent use. It allocates only for the first prediction under a load that no run had. Support
// shows where no SLO may be promised: without runs of the model on the node type, outside the
// measured range, or far from any measured configuration.
//
// The package does no I/O and needs no clock.
package evidence
