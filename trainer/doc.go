// Package trainer turns the log of jobs into examples, fits a regressor for each target, and
// promotes it. With MethodEvidence, the default of courier trainer, each new fit is promoted
// immediately. With MethodFamilies it is promoted once it has predicted new jobs better than the
// champion.
//
// # Use
//
// New takes a bus and, if there is a database, a History. Run follows the log of jobs. It fits
// when enough new epochs arrived, when jobs drift from their predictions, and when regressor.train
// requests it.
//
// With MethodFamilies a Watch detects drift. The trainer publishes regressor.<target>.drift and
// fits; examples from before the drift get little weight in that fit.
//
// With MethodEvidence each run that ends requests a fit, and drift is corrected without a fit:
// within about a second the served regressor has correction factors from the ended runs, even while
// a fit is running. Each correction that begins, changes or ends is published as
// regressor.<target>.drift. The trainer reads from the log which corrections it has published.
//
// # Files
//
// past_*.go turn events into examples (Past). drift_*.go detect and correct drift. fit_*.go fit
// regressors; learn.go decides what happens to a new one. registry*.go replay the REGRESSOR stream.
// trial*.go compare champion and challenger of MethodFamilies. trainer.go and follow.go connect
// these parts to the bus.
//
// The path of a run that ends:
//
//  1. past_read.go: readJobs reads its events
//  2. follow.go: handleEvent applies them to the Past, and reasonToFit decides whether to fit
//  3. trainer.go: work takes the request, immediately or after the cool-down
//  4. learn.go: learn gets the examples (examples.go) and calls the fit
//  5. fit_evidence.go or fit_families.go: the regressor is fitted
//  6. learn.go: placeCandidate promotes it, tries it as a challenger, or rejects it
//
// Words: a regressor of MethodEvidence has the family "hierarchy". Its manifest holds an
// evidence.ServedHierarchy: the fitted hierarchy and the corrections for drift. The field
// rival of the schemas is the regressor to which another one is compared.
//
// # Memory
//
// There is one Past, owned by the goroutine of follow. A fit requests the examples of its target
// and gets its own slice. Limits bound the past by configuration and in total, Options.Window
// bounds it by age, so memory does not depend on the age of the log. Names of nodes and models are
// kept while a run refers to them, or in LRU maps. At start the trainer reads the database and then
// the log once, one event at a time.
//
// The hardware of a node is a feature if an event of a job reported it; it then holds for other
// jobs there, too. Hardware on which too few jobs ran is marked scarce: predictions for it have no
// bound.
//
// # Order, concurrency, failure
//
// One fit runs at a time, concurrently with reading the log. Events that the database does not have
// yet come from the log, so a lagging database never loses an example. If the log has dropped
// messages, the trainer waits up to a minute for the database.
//
// A promotion stores the files first, changes the champion's key by compare-and-set, then publishes
// regressor.<target>.promoted. A trainer that restarts between the last two steps publishes the
// missing event. A lease lets one trainer run at a time; should two run, the compare-and-set fails
// for the second.
//
// # Observe, test
//
// The metrics courier_trainer_* count fits, examples and skipped events. The manifest in the object
// store describes how a regressor was fitted. Tests run on bustest.
package trainer
