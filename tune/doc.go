// Package tune searches the hyperparameters of a training command by successive halving, and plans
// the CPUs of each stage under a deadline or a budget.
//
// # Use
//
//	t, err := tune.Open(dir, options)        // a new tuning, or one that was interrupted
//	ranking, err := t.Run(ctx, measure, report) // Launcher.Measure runs a trial on this node
//	ranking.WriteText(w)
//
// # Stages and resources
//
// Every trial runs the first stage, and each stage keeps the best one of eta. A stage begins when the
// one before has ended. A segment is one run of the command: a trial in a stage, or a
// probe, which repeats the first epochs of a trial with another number of CPUs to measure their time.
//
// Package tune/halving plans the CPUs of the trials of each stage by the measured times (CE-scaling, Wu
// et al., IPDPS 2023). The bound is kept by upper bounds: no segment starts that would end after it,
// and running ones are stopped before it.
//
// # Order, concurrency, failure
//
// The goroutine of Run owns the state, which follows from the record alone. Each line of the record is
// on disk before the next step, so that a tuning continues after any crash; a segment without an end
// counts as spent until the last line. Segments run concurrently, within the pool of CPUs. A trial
// whose command fails is out.
//
// # Test
//
// Plans and schedules are tested in a bubble of testing/synctest with simulated commands, and the
// Launcher with real processes.
package tune
