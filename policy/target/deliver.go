// Package target divides a node among trainings by the targets of their clients.
//
// Deliver implements TRADL (IEEE HPEC 2019): a job has a first, softer target besides its end. Once its
// accuracy reaches that target, the model is delivered, and the training goes on with what other jobs
// leave. Deadlines do not count. Deliver is a pure function, does not modify its arguments, and may be
// called concurrently.
package target

import (
	"cmp"
	"math"
)

// Job is a training on the node.
type Job struct {
	// Accuracy is the best one so far, from 0 to 1, so that a delivered model stays delivered.
	Accuracy float64
	// FirstTarget is the accuracy at which the model is delivered. 0: the job has no first target,
	// and gets what others leave.
	FirstTarget float64
}

func (j *Job) isDelivered() bool { return j.Accuracy >= j.FirstTarget }

// Options of Deliver.
type Options struct {
	// Floor divides the smallest share: 1 / (Floor * jobs). Default: 2, and bounded to 1.1 to 8 (resource
	// policies, section 2.4).
	Floor float64
}

// Bounds of Options.Floor.
const (
	leastFloor = 1.1
	mostFloor  = 8
)

// floor returns the smallest share of n jobs.
func (o *Options) floor(n int) float64 {
	beta := min(max(cmp.Or(o.Floor, 2), leastFloor), mostFloor)
	if math.IsNaN(beta) {
		beta = 2
	}
	return 1 / (beta * float64(n))
}

// Deliver returns the share of the node of each job. The shares sum to 1. Delivered jobs have the floor,
// and the others divide the rest equally; if all jobs are delivered, or none, the shares are equal. A
// share changes only if a job comes, ends or is delivered.
func Deliver(jobs []Job, o Options) []float64 {
	n := len(jobs)
	delivered := 0
	for i := range jobs {
		if jobs[i].isDelivered() {
			delivered++
		}
	}
	shares := make([]float64, n)
	for i := range jobs {
		switch {
		case delivered == 0 || delivered == n:
			shares[i] = 1 / float64(n)
		case jobs[i].isDelivered():
			shares[i] = o.floor(n)
		default:
			shares[i] = (1 - float64(delivered)*o.floor(n)) / float64(n-delivered)
		}
	}
	return shares
}
