// Package placement chooses the nodes of trainings.
//
// Place puts a new job on a node by the rule of ProCon (Fu et al., IEEE Big Data 2019): the node with
// the least remaining work times crowd. Migrate moves a running job to another node by the rule of
// SpeCon (Mao et al., IEEE Systems Journal 2021). Deadlines do not count: the caller leaves out nodes
// whose jobs would miss one with another neighbour, and sets CanMove only for jobs that have the time.
//
// The functions are pure, do not modify their arguments, and may be called concurrently. Remaining
// times are predictions for the job alone on the node. They need not be numbers: a negative one counts
// as 0, and one that is not a number as infinite.
package placement

import (
	"cmp"
	"math"

	"courier/policy/quality"
)

// Node is a node with its running jobs.
type Node struct {
	Name     string
	CPURatio float64 // CPU in use, divided by the CPU of the node
	Jobs     []Job
}

// Job is a running job.
type Job struct {
	Name string
	// RemainingSeconds is the predicted time that the job still needs alone on the node: P in the
	// paper.
	RemainingSeconds float64

	// Migrate reads the fields below.

	Phase   quality.Phase // of its loss
	CanMove bool          // it has a checkpoint to start from, and is not moving now
}

// remaining returns the remaining seconds of a job as a number that is not negative.
func (j *Job) remaining() float64 {
	if math.IsNaN(j.RemainingSeconds) {
		return math.Inf(1)
	}
	return max(0, j.RemainingSeconds)
}

// PlaceOptions are the options of Place.
type PlaceOptions struct {
	// MaxCPURatio is the CPU ratio above which a node is left out, unless all are: alpha in the paper,
	// whose code has no default. Default: 0.9.
	MaxCPURatio float64
}

// Place returns the index of the node for a new job; -1 if there are no nodes. Of nodes with the same
// score, the one with fewer jobs wins, and then the first one.
func Place(nodes []Node, o PlaceOptions) int {
	limit := cmp.Or(o.MaxCPURatio, 0.9)
	best := -1
	for i := range nodes {
		if nodes[i].CPURatio > limit {
			continue
		}
		if best < 0 || nodes[i].compare(&nodes[best]) < 0 {
			best = i
		}
	}
	if best >= 0 || len(nodes) == 0 {
		return best
	}
	return Place(nodes, PlaceOptions{MaxCPURatio: math.Inf(1)})
}

func (n *Node) compare(other *Node) int {
	return cmp.Or(cmp.Compare(n.score(), other.score()), cmp.Compare(len(n.Jobs), len(other.Jobs)))
}

// score returns n (1 + sum over t of |{j: P_j > t}|). As in the published code, t are the whole seconds
// from 0, so that the sum is that of the remaining seconds, each rounded up.
func (n *Node) score() float64 {
	if len(n.Jobs) == 0 {
		return 0
	}
	sum := 1.0
	for i := range n.Jobs {
		sum += math.Ceil(n.Jobs[i].remaining())
	}
	return float64(len(n.Jobs)) * sum
}
