// Package sharing simulates nodes that divide their CPU among trainings, and compares policies by
// completion times, kept deadlines and how soon the losses fall.
//
// It is the simulator of sections 2.7, 2.8 and 5 of the design page resource-policies. CPU that a job
// does not use goes to the others. Simulate plays one node and SimulateCluster several; both are pure
// functions and may be called concurrently.
package sharing

import (
	"math"

	"courier/policy/quality"
)

// TrainingJob is a training on the node. Its loss after a part x of its work is
// FinalLoss + (1 - FinalLoss) exp(-x / Decay).
type TrainingJob struct {
	Name      string
	Arrival   float64 // seconds
	Work      float64 // seconds on the whole node
	FinalLoss float64
	Decay     float64
	Deadline  float64 // seconds after the arrival; 0: none
	// PredictionFactor is the predicted remaining time, divided by the true one. 0: 1.
	PredictionFactor float64
}

// NodeOutcome is the result of a simulation. Seconds count from the arrival of a job.
type NodeOutcome struct {
	Seconds  map[string]float64 // to the end
	Quality  map[string]float64 // to 90 % of the fall of the loss
	Makespan float64            // the end of the last job
}

const (
	tick         = 0.05 // seconds
	qualityRatio = 0.9
)

// sharingJob is the state of a job in the simulation.
type sharingJob struct {
	*TrainingJob
	// qualityWork is the work after which qualityRatio of the fall of the loss is reached; +Inf from
	// then on.
	qualityWork float64

	done     float64 // seconds of work
	share    float64 // of the node
	units    int     // for the deadline policy
	used     float64 // CPU seconds in the window
	lossSum  float64 // loss times seconds in the window
	since    float64 // begin of the window
	windows  int     // complete windows
	last     float64 // mean loss of the last window
	previous float64 // mean loss of the window before
	seconds  float64 // duration of the last window
	cpuRatio float64 // in the last window
	phase    quality.Phase
	start    float64 // on its node, after a move
}

func newSharingJob(j *TrainingJob, now float64) *sharingJob {
	return &sharingJob{TrainingJob: j, qualityWork: j.qualityWork(qualityRatio), since: now}
}

func (j *sharingJob) loss() float64 { return j.lossAfter(j.done) }

// lossAfter returns the loss after some work.
func (j *TrainingJob) lossAfter(work float64) float64 {
	return j.FinalLoss + (1-j.FinalLoss)*math.Exp(-work/j.Work/j.Decay)
}

// qualityWork returns the work after which a part of the fall of the loss is reached.
func (j *TrainingJob) qualityWork(ratio float64) float64 {
	fall := 1 - math.Exp(-1/j.Decay)
	return -math.Log(1-ratio*fall) * j.Decay * j.Work
}

// predicted returns the predicted seconds that the job needs on the whole node.
func (j *sharingJob) predicted() float64 {
	factor := j.PredictionFactor
	if factor == 0 {
		factor = 1
	}
	return (j.Work - j.done) * factor
}

// left returns the seconds to the deadline; +Inf without one.
func (j *sharingJob) left(now float64) float64 {
	if j.Deadline == 0 {
		return math.Inf(1)
	}
	return j.Arrival + j.Deadline - now
}

// A divider divides a node among running jobs.
type divider interface {
	// divide sets the shares of the jobs. It is called whenever a job arrives or ends, and at the
	// time that it returned.
	divide(running []*sharingJob, now float64, isChanged bool) (next float64)
}

// Simulate runs jobs on a node whose speed with n equal jobs is 1 / (1 + contention (n - 1)).
func Simulate(jobs []TrainingJob, s Sharing, contention float64) *NodeOutcome {
	return SimulateCluster(jobs, Cluster{Nodes: 1, Sharing: s}, contention)
}

// node is the state of a node.
type node struct {
	divider   divider
	running   []*sharingJob
	coming    []*sharingJob // they were moved here, and start later
	isChanged bool          // a job arrived or ended since the last division
	review    float64       // time of the next division
}

// finish ends the jobs whose work is done.
func (n *node) finish(o *NodeOutcome, now float64) {
	kept := n.running[:0]
	for _, j := range n.running {
		if j.done < j.Work {
			kept = append(kept, j)
			continue
		}
		o.Seconds[j.Name], o.Makespan = now-j.Arrival, now
		n.isChanged = true
	}
	n.running = kept
}

// divide sets the shares of the jobs if it is time to.
func (n *node) divide(now float64) {
	if n.isChanged || now >= n.review {
		n.review = n.divider.divide(n.running, now, n.isChanged)
		n.isChanged = false
	}
}

// advance runs the jobs for a tick.
func (o *NodeOutcome) advance(running []*sharingJob, now, contention float64) {
	speed := 1 / (1 + contention*(effective(running)-1))
	for _, j := range running {
		j.lossSum += j.loss() * tick
		j.used += j.share * tick
		j.done += j.share * speed * tick
		if j.done >= j.qualityWork {
			o.Quality[j.Name] = now + tick - j.Arrival
			j.qualityWork = math.Inf(1)
		}
	}
}

// effective returns the effective number of jobs: 1 / sum of squared shares.
func effective(running []*sharingJob) float64 {
	sum, squares := 0.0, 0.0
	for _, j := range running {
		sum += j.share
	}
	for _, j := range running {
		part := j.share / sum
		squares += part * part
	}
	return 1 / squares
}
