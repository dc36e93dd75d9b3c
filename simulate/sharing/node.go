// Package sharing simulates a node that divides its CPU among trainings, and reproduces the figures of
// FlowCon: completion times, and how soon the losses fall.
//
// CPU that a job does not use goes to the others. Simulate is a pure function and may be called
// concurrently.
package sharing

import (
	"math"

	"courier/policy"
	"courier/policy/quality"
)

// NodeOutcome is the result of a simulation. Seconds count from the arrival of a job.
type NodeOutcome struct {
	Seconds  map[string]float64 // to the end
	Quality  map[string]float64 // to 90 % of the fall of the loss
	Makespan float64            // the end of the last job
}

type node struct {
	division  division
	running   []*sharingJob
	isChanged bool    // a job arrived or ended since the last division
	review    float64 // time of the next division
}

// Simulate runs jobs on a node whose speed with n equal jobs is 1 / (1 + contention (n - 1)).
func Simulate(jobs []TrainingJob, s Sharing, contention float64) *NodeOutcome {
	o := &NodeOutcome{Seconds: map[string]float64{}, Quality: map[string]float64{}}
	n := &node{division: division{Sharing: s}}
	for now := 0.0; len(o.Seconds) < len(jobs); now += tick {
		n.finish(o, now)
		for i := range jobs {
			if j := &jobs[i]; j.Arrival <= now && j.Arrival > now-tick {
				n.running = append(n.running, newSharingJob(j, now))
				n.isChanged = true
			}
		}
		if len(n.running) > 0 {
			n.divide(now)
			o.advance(n.running, now, contention)
		}
	}
	return o
}

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
		n.review = n.division.divide(n.running, now, n.isChanged)
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

const (
	tick         = 0.05 // seconds
	qualityRatio = 0.9
)

// TrainingJob is a training on the node. Its loss after a part x of its work is
// FinalLoss + (1 - FinalLoss) exp(-x / Decay).
type TrainingJob struct {
	Name      string
	Arrival   float64 // seconds
	Work      float64 // seconds on the whole node
	FinalLoss float64
	Decay     float64
}

type sharingJob struct {
	*TrainingJob
	// qualityWork is the work after which qualityRatio of the fall of the loss is reached; +Inf from
	// then on.
	qualityWork float64

	done    float64 // seconds of work
	share   float64 // of the node
	planned float64 // by the policy; a cap of the share with the published rule
	used    float64 // CPU seconds in the window
	lossSum float64 // loss times seconds in the window
	since   float64 // begin of the window
	reports []policy.LossReport
}

func newSharingJob(j *TrainingJob, now float64) *sharingJob {
	fall := 1 - math.Exp(-1/j.Decay)
	work := -math.Log(1-qualityRatio*fall) * j.Decay * j.Work
	return &sharingJob{TrainingJob: j, qualityWork: work, since: now}
}

func (j *sharingJob) loss() float64 {
	return j.FinalLoss + (1-j.FinalLoss)*math.Exp(-j.done/j.Work/j.Decay)
}

// closeWindow ends the window at an instant, if it is not empty.
func (j *sharingJob) closeWindow(now float64) {
	if seconds := now - j.since; seconds > tick {
		r := policy.LossReport{Seconds: seconds, Loss: j.lossSum / seconds, CPURatio: j.used / seconds}
		j.reports = append(j.reports[max(0, len(j.reports)+1-quality.MaxReports):], r)
		j.since, j.lossSum, j.used = now, 0, 0
	}
}
