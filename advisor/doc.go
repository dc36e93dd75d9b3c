// Package advisor decides: a job request comes in, advice goes out; and it
// watches the jobs that run.
//
// # Use
//
// New takes a bus, Run answers job.submit, job.predict, job.status, job.list and
// job.cancel until its context ends. Decide is the thinking alone, for whoever
// wants an answer without a network.
//
// # Order, concurrency, failure
//
// What is known of the jobs is a fold over the JOB stream (cluster.go), built
// again at each start, so that any advisor can be killed and any number may run:
// requests go to one of a queue group, and events carry identities that are
// equal in all of them, so that the log keeps one. The reply to job.submit is
// sent after job.<id>.submitted was recorded. Advice for running jobs goes to the
// stream ADVICE, which no advisor reads: one that starts predicts them again.
// Regressors are taken from the
// bucket of champions, checked, and swapped in at once; a damaged one is refused
// with regressor.<target>.rejected, and the one before stays.
//
// Before the log was read to its end requests wait; with NATS away they fail at
// the asker, who may repeat them: a second job.submit with the same id and body
// gets the first advice.
//
// # Look inside, test
//
// nats micro stats courier-advisor counts requests; courier_advisor_… are its
// metrics. Tests run it on bustest; Decide, apply and silent are pure.
package advisor
