// Package elastic simulates elastic training jobs with deadlines on a cluster of GPUs, and compares
// policies by the ratio of kept deadlines.
//
// The rules are strict. A job is revealed at its submission. A number of GPUs that starts or changes
// makes a moment; two moments are at least a slot apart, and running jobs pause at a moment. A job
// is kept if it completes all iterations by its deadline, and the ratio counts all jobs of the
// trace, refused ones included. The format of traces and of throughput tables is the one of
// ElasticFlow (Gu et al., ASPLOS 2023).
//
// Run plays a trace with one policy and returns the schedule, Compare several policies. Verify is a
// second implementation of the rules that reads only the schedule: its ratio must be that of Run.
// Results depend on the inputs alone, except for the measured decision times.
package elastic
