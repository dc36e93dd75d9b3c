// Package courier is the front door of the house: it holds no code, only this
// tour and the test that keeps the picture of the house true.
//
// Courier keeps the deadlines of training jobs on a shared cluster. A job
// request with a latency SLO is answered with the batch size that meets it at
// the highest accuracy; the answer is kept true while the job runs beside
// others. Start reading in this order:
//
//   - schemas: every subject, message, feature, error code and table. The
//     contract; it imports nothing.
//   - regress: the mathematics of learning from examples. Knows no job, no
//     network and no disk.
//   - regress/evidence: predicts time and accuracy from the runs of a model, and
//     corrects drift.
//   - bus: the wire. Carries schemas over NATS; alone decides the fate of a
//     message.
//   - collector, store, trainer, advisor, gateway: the five services. They
//     never import each other: they talk through messages.
//   - services, services/courier: turn the rooms into one program.
//
// The path of one event: the collector publishes a sample or an epoch, the
// event log (JetStream) keeps it, the store turns it into rows, the trainer
// recalls rows as examples and fits a regressor, the advisor loads it and
// answers requests, and the answer goes back into the log.
package courier
