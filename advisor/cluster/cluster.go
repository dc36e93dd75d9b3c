package cluster

import (
	"iter"
	"maps"
	"slices"
	"time"

	"courier/schemas"
)

// Cluster is the state of all jobs and nodes, rebuilt from the event log by Apply. Its size depends
// on the number of live jobs and nodes, not on the age of the log. Several goroutines may read it
// at the same time, but none may read it during a change.
type Cluster struct {
	limits stateLimits

	jobs  map[string]*Job
	order sorted[*Job] // all jobs, by the time of their first event
	ended sorted[*Job] // jobs that may be dropped, by EndOrder
	ends  uint64       // the last EndOrder

	running  map[string]*Job
	waiting  sorted[*Job] // queued jobs, the most urgent first
	arrivals arrivals

	nodes  map[string]*Node
	fleet  schemas.Fleet     // hardware of the nodes
	models map[string]*Model // by schemas.ModelLevel
	uses   uint64            // of nodes and models, to drop the least recently used ones
}

// stateLimits bounds the number of entries of each kind.
type stateLimits struct{ nodes, models, ended int }

// New returns the state before the first event.
func New() *Cluster {
	return &Cluster{
		limits:   stateLimits{nodes: maxNodes, models: maxModels, ended: maxEndedJobs},
		jobs:     map[string]*Job{},
		order:    sorted[*Job]{compare: compareListed},
		ended:    sorted[*Job]{compare: compareEnds},
		running:  map[string]*Job{},
		waiting:  sorted[*Job]{compare: compareUrgency},
		arrivals: newArrivals(),
		nodes:    map[string]*Node{},
		fleet:    schemas.Fleet{},
		models:   map[string]*Model{},
	}
}

// Job returns a job, or nil if it is not in memory. Only Apply may change one that is settled.
func (c *Cluster) Job(id string) *Job { return c.jobs[id] }

// Running returns the running jobs in any order.
func (c *Cluster) Running() iter.Seq[*Job] { return maps.Values(c.running) }

// RunningJobs returns the number of running jobs.
func (c *Cluster) RunningJobs() int { return len(c.running) }

// Admissions returns the whole advice of the admitted jobs that have not started.
func (c *Cluster) Admissions() (all []*schemas.Advice) {
	for _, j := range c.jobs {
		if j.Admission != nil {
			all = append(all, j.Admission)
		}
	}
	return all
}

// CountByState returns the number of jobs in each state.
func (c *Cluster) CountByState() map[schemas.State]int {
	counts := map[schemas.State]int{}
	for _, j := range c.order.all {
		counts[j.State]++
	}
	return counts
}

// CountAtRisk returns the number of running jobs with an active warning.
func (c *Cluster) CountAtRisk() (n int) {
	for _, j := range c.running {
		if j.IsAtRisk() {
			n++
		}
	}
	return n
}

// NewestFirst returns the jobs whose state matches a selection, the newest first. It begins with the
// job that follows the job named by after, or with the newest job if after is empty. known is false
// if the named job is unknown.
func (c *Cluster) NewestFirst(after string, selection schemas.StateSelection) (jobs iter.Seq[*Job], known bool) {
	older := c.order.all
	if after != "" {
		j := c.jobs[after]
		if j == nil {
			return nil, false
		}
		at, _ := c.order.index(j)
		older = older[:at]
	}
	return func(yield func(*Job) bool) {
		for _, j := range slices.Backward(older) {
			if selection.Includes(j.State) && !yield(j) {
				return
			}
		}
	}, true
}

// A running job without heartbeats whose epoch time is unknown counts as lost after this many SLOs
// of silence. Without an SLO it counts as lost after unknownSilence.
const (
	unknownSilenceSLOs = 10
	unknownSilence     = 24 * time.Hour
)

// Silent returns the running jobs that have been silent for longer than their maxSilence.
func (c *Cluster) Silent(now time.Time) []*Job {
	var all []*Job
	for _, j := range c.running {
		if now.Sub(j.LastSeen) > j.maxSilence() {
			all = append(all, j)
		}
	}
	for _, j := range c.waiting.all { // only courier run sends heartbeats for a queued job
		if j.HasHeartbeat && now.Sub(j.LastSeen) > schemas.Silence {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, compareIDs)
	return all
}

// maxSilence returns the silence after which a running job counts as lost: schemas.LostAfter if it
// sends heartbeats, otherwise three times the longest measured or predicted epoch, but at least
// schemas.LostAfter.
func (j *Job) maxSilence() time.Duration {
	if j.HasHeartbeat {
		return schemas.LostAfter
	}
	if epoch := max(j.LongestEpoch, predictedEpoch(j.Advice)); epoch > 0 {
		return max(schemas.LostAfter, 3*epoch)
	}
	if j.HasDeadline() {
		return max(schemas.LostAfter, unknownSilenceSLOs*time.Duration(j.Request.SLO))
	}
	return unknownSilence
}

// predictedEpoch returns the predicted epoch time of an advice, 0 if unknown.
func predictedEpoch(a *AdviceSummary) time.Duration {
	if a == nil || a.PredictedSeconds == nil || a.Epochs == 0 {
		return 0
	}
	seconds := *a.PredictedSeconds / float64(a.Epochs)
	return time.Duration(seconds * float64(time.Second))
}

// Affected returns the running jobs to re-predict after an event: after the last of the epochs that a job
// reported together the job itself, after a start or an end also its co-located jobs.
func (c *Cluster) Affected(e schemas.Event, j *Job, now time.Time) []*Job {
	if j == nil {
		return nil
	}
	jobs := []*Job{j}
	switch e.(type) {
	case *schemas.Started, *schemas.Ended:
		jobs = append(c.Colocated(j.Setting.Nodes, j.ID, now), j)
	case *schemas.Submitted:
		return nil
	case *schemas.Epoch:
		if j.EpochsFollow {
			return nil
		}
	}
	running := jobs[:0:0]
	for _, j := range jobs {
		if j.State == schemas.StateRunning {
			running = append(running, j)
		}
	}
	return running
}
