// Package simulate is a cluster in a loop: jobs come, rules promise SLOs and choose
// how the jobs run, neighbours slow each other down, and what became of every
// promise is counted against the truth.
//
// # Use
//
//	s := simulate.NewScenario(simulate.DefaultWorld(), 1000, 0.95, 7)
//	outcomes, err := s.Play(ctx, simulate.NewRandom(7), nil)
//	score := simulate.ScoreOf("random", outcomes)
//
// A World says what exists: nodes, kinds of jobs with their true laws, noise,
// arrivals, drift. A Scenario is a world with everything drawn that chance
// decides. A Rule answers requests; it is told the events that a real log would
// hold, as the types of schemas with the clock of the simulation, and sees
// neither laws nor noise. One that is a Watcher warns of promises that it may break,
// and is judged by how early it did. A warm-up history comes first, from which it may learn.
//
// # What is simulated
//
// A job runs on one node: its start-up, then its epochs one after another. The
// seconds of an epoch are
//
//	law(batch size, CPUs) · contention(jobs and processes on the node) · noise(run) · noise(epoch) · drift(node)
//
// and a rate follows from them that changes whenever a neighbour comes or goes,
// in the middle of an epoch, too. No neighbour changes a start-up. A promise
// counts from submission to the end of the last epoch. A refused job is
// withdrawn by its owner and loads nothing.
//
// # Order, determinism
//
// The same world, numbers and seed give the same to the last bit. Every rule
// plays in a copy of its own, because what it chooses changes the load of those
// that follow; noise belongs to the job and the number of its epoch, not to the
// order of draws, so that all rules meet the same. Events come one at a time, in
// the order of simulated time. A Scenario never changes, and may be played by
// several goroutines at once.
//
// # Test
//
// A rule is tested by playing two scenarios whose jobs are equal up to some
// moment: what it advised before must be equal.
package simulate
