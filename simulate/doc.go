// Package simulate simulates clusters in which rules decide how jobs with SLOs run. Jobs arrive, a
// rule promises SLOs and chooses batch sizes and CPUs, and co-located jobs slow each other down.
// Afterwards every promise is compared with the true outcome.
//
// # Use
//
//	s := simulate.NewScenario(simulate.DefaultWorld(), 1000, 0.95, 7)
//	outcomes, err := s.Play(ctx, simulate.NewRandom(7), nil)
//	score := simulate.ScoreOf("random", outcomes)
//
// A World describes nodes, families of jobs with their true laws, noise, arrivals and drift. A
// Scenario is a World with all random numbers drawn. A Rule answers requests. It receives the
// events of a real log, as types of schemas with simulated times, and sees neither laws nor noise.
// A Rule that is a Watcher also warns of promises at risk, and its warnings are scored. A warm-up
// history precedes the scored submissions, so that rules can learn from it.
//
// # Model
//
// A job runs on one node: first its start-up, then its epochs. The duration of an epoch is
//
//	law(batch size, CPUs) · contention(jobs and processes on the node) · noise(run) · noise(epoch) · drift(node)
//
// The rate of progress follows from this duration and changes whenever a neighbour starts or ends,
// also within an epoch. Neighbours do not change a start-up. An SLO applies to the time from
// submission to the end of the last epoch. A refused job is withdrawn and causes no load.
//
// # Order, determinism
//
// The same world, numbers and seed give identical results. Every rule plays in its own copy of the
// world, because its choices change the load of later jobs. Noise belongs to a job and an epoch
// number, not to the order of draws, so that all rules meet the same noise. Events come one at a
// time, in the order of simulated time. A Scenario is immutable, and several goroutines may play
// it.
//
// # Test
//
// A test that a rule does not look ahead plays two scenarios whose jobs are equal up to some time;
// the advice before that time must be equal.
package simulate
