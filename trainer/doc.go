// Package trainer learns: it recalls examples from the past, fits a regressor
// for each target, and puts it in use.
//
// # Use
//
// New takes a bus and, where there is a database, a History; Run follows the
// epochs and fits when enough new ones came, when the last ones no longer are as
// predicted, or when regressor.train asks. Examples and what watches for drift
// are pure (history.go, examples.go, dataset.go; watch.go, cause.go, pagehinkley.go,
// adwin.go). A Watch names what drifted; regressor.<target>.drift says so before the
// fit that follows, in which examples from before the drift weigh little.
//
// By MethodEvidence each run that ends calls for a fit, and drift is corrected without
// one (correct.go): what is served next has the factors that the runs show, within about
// a second, even while a fit computes. regressor.<target>.drift tells of each correction
// that begins, changes or ends (factors.go), by comparing what is served with what the
// log says was told.
//
// # Memory
//
// There is one Past. The goroutine of follow owns it; a fit asks for the examples of
// its target and gets a slice of its own. Limits bound the past by configuration and
// in all, Options.Window by age, so that memory does not depend on the age of the log.
// Names of nodes and models live as long as a run that refers to them, or in maps that
// forget the longest unused. A start reads the database and then the log once, one
// event at a time.
//
// Nodes are features, as far as the log of jobs tells of them: what one job told of
// a node holds for the others there. Values that too few jobs had are marked
// scarce, so that nothing is promised by them.
//
// # Order, concurrency, failure
//
// One fit runs at a time, beside the following. What History returns is completed
// from the log, so that a database that lags costs time, never an example. If the
// log has dropped messages, a start waits up to a minute for the database. A regressor's bytes are stored first, then the champion's key is
// changed by compare-and-set, then regressor.<target>.promoted is published; a
// trainer that dies between the last two repeats the event when it starts. Two
// trainers do double work, and the second to finish is told so by the key.
//
// # Look inside, test
//
// courier_trainer_… count fits, examples and what was refused; the manifest in
// the object store says what a regressor was made of. Tests run on bustest.
package trainer
