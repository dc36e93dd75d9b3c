// Package trainer turns the log of jobs into examples, fits a regressor for each target, and
// promotes it.
//
// # Use
//
// New takes a bus and, if there is a database, a History. Run follows the log of jobs. Each run that
// ends requests a fit, as do enough new epochs of running jobs, and regressor.train. A new fit is
// promoted immediately, because it has learned from more runs.
//
// A fit repeats only the models whose runs have changed since the previous one (evidence.Memory), so that
// a run changes answers within seconds of its end, whatever the size of the past. After a restart
// the first fit is complete.
//
// While times drift, a fit multiplies the times of earlier runs by factors from the later ones. Each
// such correction that begins, changes or ends is published as regressor.<target>.drift. The trainer
// reads from the log which corrections it has published.
//
// Fit is the fit alone, a pure function of examples and the previous manifest. Simulations and
// replays use it with a Past.
//
// # Files
//
// The path of a run that ends:
//
//  1. past_read.go: readJobs reads its events
//  2. follow.go: handleEvent applies them to the Past (past*.go), reasonToFit decides whether to fit
//  3. trainer.go: work takes the requests, of a fit immediately or after the cool-down
//  4. learn.go: learn gets the examples (examples.go) and fits (fit*.go)
//  5. promote.go: place stores the files (fit_file.go) and promotes them
//  6. champions.go: loadChampions loads the champion, and publishCorrections publishes what changed
//     (drift_events.go)
//
// follow_registry.go replays the REGRESSOR stream into the registry (registry.go). state.go has the
// types that all of these share.
//
// # Memory
//
// There is one Past, owned by the goroutine of follow. A fit requests the examples of its target
// and gets its own slice. Limits bound the past by configuration and in total, Options.Window
// bounds it by age, so memory does not depend on the age of the log. The hardware of a node is kept
// while a run refers to it. At start the trainer reads the database and then the log once, one event
// at a time.
//
// The hardware of a node is known if an event of a job reported it; it then holds for other jobs
// there, too.
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
