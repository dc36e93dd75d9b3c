// Package advisor answers job requests with advice, and re-predicts the running jobs after each
// event.
//
// # Use
//
// New takes a bus. Run answers job.submit, job.predict, job.status, job.list, job.cancel and
// job.score until its context ends. Package decide answers the questions; it needs no network.
//
// # Order, concurrency, failure
//
// The state of all jobs (package cluster) is rebuilt from the JOB stream at each start: from the newest
// snapshot and a replay of the later events. Therefore any number of advisors may run, and any of
// them may crash. Requests go to one advisor of a queue group. Events have the same identity in all
// advisors, so that the stream keeps one copy of each.
//
// The reply to job.submit is sent after job.<id>.submitted has been recorded. Advice for running
// jobs goes to the ADVICE stream. No advisor reads that stream; on start, an advisor re-predicts
// the running jobs instead. Regressors come from the bucket CHAMPIONS. A new regressor is validated
// and loaded without pausing requests. If the file is damaged, the advisor publishes
// regressor.<target>.rejected and keeps the previous one.
//
// Requests wait until the replay is complete. While NATS is unreachable they fail, and the caller
// may repeat them: a second job.submit with the same ID and body returns the first advice.
//
// # The path of an event
//
//  1. events.go: an event of the JOB or NODE stream arrives
//  2. cluster/transition.go: Cluster.Apply changes the state of the job
//  3. decide/ask.go, decide/decide.go: the affected jobs are re-predicted
//  4. shares/plan.go: the CPUs of the elastic jobs on their nodes are planned
//  5. advice.go, outbox.go: warnings, and advice that differs enough, go to NATS
//
// # The path of a request
//
//  1. serve.go; owner.go for a person, who may change their own jobs only
//  2. submit.go, cancel.go, status.go: one file for each kind of request
//  3. the answer, or admission.go under a policy, which may queue a job: queue.go starts it later
//  4. log.go: what only the event log knows
//
// # Observe, test
//
// nats micro stats courier-advisor counts requests; the metrics are named courier_advisor_….
// Tests run against the NATS server of package bustest.
package advisor
