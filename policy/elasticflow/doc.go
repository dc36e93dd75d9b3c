// Package elasticflow is a baseline: the policy of ElasticFlow (Gu et al., ASPLOS 2023) as its
// published code implements it, and a variant that decides about each arrival separately.
//
// All jobs are planned in order of deadline at their minimum satisfactory share: the smallest number
// of units with which a job, planned backwards from its deadline into the units that are still free,
// completes its work. Arrivals wait for the next round, which is at least a slot after the last. The
// published code refuses all arrivals of a round if any job of the round, running ones included,
// cannot be satisfied. Planning does not foresee pauses.
//
// Left-over units go to jobs without units first. The published code then prefers the job whose
// unit-seconds grow the most per added unit. Its growth is computed for a plan; here it is that of
// the present rates. The variant prefers the job that gains the most speed per added unit, relative
// to its present speed per unit.
package elasticflow
