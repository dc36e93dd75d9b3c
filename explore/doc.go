// Package explore measures a training script: it designs a study, runs it, and reports which batch
// size meets which SLO.
//
// # Use
//
//	s, err := explore.Open(dir, options)       // a new study, or one that was interrupted
//	result, err := s.Run(ctx, measure, report) // measure runs one block of concurrent jobs
//	result.WriteText(w)
//
// # Design
//
// A cell is a combination of batch size, CPUs, GPUs and number of concurrent jobs. A block is one
// measurement of a cell: its jobs start together. Each replication has its own random order of
// cells, so that a change of the machine during the study does not look like an effect of a cell.
// The designs full and fractional fix the blocks in advance. The design adaptive
// chooses each block by the expected value of its information, and ends when no block is expected
// to improve the advice.
//
// # Order, failure
//
// Blocks run one after the other. A finished run is appended to runs.csv and epochs.csv before the
// next block starts, and never repeated: a study that was interrupted continues where it stopped.
// Predictions come from package regress/evidence, as in the trainer and the advisor.
package explore
