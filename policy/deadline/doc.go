// Package deadline is the default policy: elastic jobs that are promised a deadline at submission.
//
// Each call plans all admitted jobs in order of deadline on a step function of the free capacity
// (grid). A job gets the smallest constant number of units that completes it in time, on the concave
// hull of its curve: any other course holds more unit-seconds. The plan has four uses:
//
//   - Admission (admit.go). A queued job is admitted if every promise can still be kept and if the
//     job does not take the place of several others. All others are refused at once.
//   - Triage (fill.go). If a promise cannot be kept any more, the plan gives up the job that holds
//     the most unit-seconds before that deadline, so that the fewest jobs are late (Moore and
//     Hodgson 1968). It gets units that no other job needs.
//   - Shares (allocate.go). Each job gets its minimum share, and left-over units go where they save
//     the most unit-seconds later: to the largest speed gained per unit, relative to that at the
//     job's minimum share.
//   - Moments (moment.go). Because all running jobs pause at a moment, new shares are carried out
//     only if they pay back the pauses, or if waiting loses more promises than it saves.
//
// The policy keeps no state between calls. The number of steps of the grid depends on the logarithm
// of the longest window, so the time of a decision grows with the number of jobs only.
package deadline
