// Package decide answers questions about jobs: what to run, how long it takes, and whether a promise
// is at risk. It is pure: no network, no clock, no state of its own.
//
// # Use
//
// Ask, AskQueued and AskRunning describe a job and its neighbours as a Question, from the state of the
// cluster. Decide answers it with the regressors in use. Warn compares the answer for a running job
// with its promise. Recall returns the question of a recorded answer, so that a replay can repeat it.
//
// # The path of a question
//
// Data flows through these files in one direction.
//
//  1. ask.go, recall.go: the state of the cluster becomes a question (question.go)
//  2. decide.go: the steps of a decision
//  3. problem.go: what the regressors (regressor.go) know about the question
//  4. alternative.go: the time (simulation.go, pace.go, outlook.go), the accuracy and the evidence
//     (evidence.go) of each alternative
//  5. choose.go, explore.go, reason.go: the best alternative, and why
//  6. effects.go: co-located jobs; menu.go, pareto.go, trial.go, route.go: other ways to run the job
//  7. message.go: the answer in a sentence
//  8. watch.go, risk.go, divergence.go: warnings about running jobs
//
// # Guarantees
//
// The same question and regressors give the same advice, except for its timestamp. Every figure is
// finite or absent. A question shares parts of the state that never change, so the state may change
// meanwhile.
//
// # Test
//
// The fixtures of package advisortest fit regressors on runs of known laws.
package decide
