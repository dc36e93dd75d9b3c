// Package courier holds no code, only this tour and the tests of the whole repository, such as the
// import graph.
//
// Courier keeps the deadlines of training jobs on a shared cluster. It answers a job request that
// has a latency SLO with the batch size that meets the SLO at the highest accuracy. While the job
// runs, it re-predicts the job after every epoch. Read the packages in this order:
//
//   - schemas: all subjects, messages, features, error codes and tables. It is the contract and
//     imports nothing.
//   - regress/treefile: stores a regressor as a tree that LightGBM and package leaves read.
//   - regress/baseline: fits simple regressors to compare with, and scores predictions;
//     regress/leastsquares: fits linear functions.
//   - regress/evidence: predicts time and accuracy from the runs of a model, and corrects drift.
//   - bus: sends and receives the messages of schemas over NATS, and decides whether to acknowledge
//     a message, to deliver it again, or to make it a dead letter.
//   - collector, store, trainer, advisor, gateway: the five services. They never import each other;
//     they exchange messages.
//   - policy and its sub-packages: decide which jobs are admitted and how many units each holds, as
//     pure functions of a view of the cluster.
//   - runner: runs a training job and publishes its epochs.
//   - services, services/local, services/courier: the process runtime, all services in one process,
//     and the program.
//   - explore, tune, simulate, replay, report, importer, demo: tools that the program offers as
//     sub-commands.
//   - clients/python: the client for training scripts in Python.
//
// One event takes this path. The collector publishes a sample, or the runner an epoch. The event
// log (JetStream) keeps it, and the store writes it to a table. The trainer follows the log, too: at
// its start it reads older events from the database. It turns events into examples and fits a
// regressor. The advisor loads the regressor, answers requests, and publishes each answer to the
// log.
package courier
