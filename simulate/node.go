package simulate

import (
	"math"
	"slices"

	"courier/schemas"
)

// runningJob is a running job. It is a plain value, so that copies of it can be simulated ahead.
type runningJob struct {
	job    *Submission
	choice jobCandidate
	epochs uint32  // number of epochs
	epoch  uint32  // current epoch; 0 is the start-up
	left   float64 // remaining part of the epoch, 0 to 1, or remaining seconds of the start-up
	rate   float64 // decrease of left per second, until the next change of the node
	alone  float64 // seconds of an epoch without noise and neighbours

	startedAt, beganAt float64 // start of the run and of the epoch in seconds
	jobSeconds         float64 // integral of the number of jobs on the node over the epoch
	promised           bool
}

type node struct {
	*WorldNode
	now       float64
	jobs      []runningJob // ordered by start
	processes int          // number of processes of all jobs
}

func (w *World) nodes(now float64) []node {
	all := make([]node, len(w.Nodes))
	for i := range w.Nodes {
		all[i] = node{WorldNode: &w.Nodes[i], now: now}
	}
	return all
}

// leastLoaded returns the node with the fewest processes per core among the nodes with enough cores
// for the smallest requested number of CPUs, the first by name.
func leastLoaded(nodes []node, q *schemas.JobRequest) *node {
	var best *node
	for i := range nodes {
		n := &nodes[i]
		if int(n.Cores) < slices.Min(q.CPUs) {
			continue
		}
		if best == nil || n.perCore() < best.perCore() ||
			n.perCore() == best.perCore() && n.Name < best.Name {
			best = n
		}
	}
	return best
}

func (n *node) perCore() float64 { return float64(n.processes) / float64(n.Cores) }

func (n *node) load() NodeLoad {
	return NodeLoad{WorldNode: *n.WorldNode, Jobs: len(n.jobs), Processes: n.processes}
}

func (n *node) copied() node {
	c := *n
	c.jobs = slices.Clone(n.jobs)
	return c
}

func (n *node) start(j *Submission, c jobCandidate, epochs uint32, promised bool) {
	n.jobs = append(n.jobs, runningJob{
		job:       j,
		choice:    c,
		epochs:    epochs,
		left:      j.family.StartupSeconds * j.noise.startup,
		alone:     j.family.EpochSeconds.alone(c.batch, c.cpus),
		startedAt: n.now,
		beganAt:   n.now,
		promised:  promised,
	})
	n.processes += int(c.cpus)
	n.refresh()
}

// refresh recalculates the rates of all jobs after a change of the node.
func (n *node) refresh() {
	for i := range n.jobs {
		n.refreshJob(&n.jobs[i])
	}
}

func (n *node) refreshJob(r *runningJob) {
	r.rate = 1
	if r.epoch > 0 {
		l := &r.job.family.EpochSeconds
		r.rate = 1 / (r.alone * l.contention(
			r.choice.cpus, len(n.jobs), n.processes, n.Cores,
		) * r.job.noise.epochs[r.epoch-1])
	}
}

// next returns the time of the next change of the node, and the index of the job whose start-up or
// epoch ends then; -1 without a change (at infinity).
func (n *node) next() (at float64, which int) {
	at, which = math.Inf(1), -1
	for i := range n.jobs {
		if end := n.now + n.jobs[i].left/n.jobs[i].rate; end < at {
			at, which = end, i
		}
	}
	return at, which
}

// advance moves the time forward to before the next change.
func (n *node) advance(to float64) {
	seconds := to - n.now
	for i := range n.jobs {
		r := &n.jobs[i]
		r.left = max(0, r.left-r.rate*seconds)
		r.jobSeconds += seconds * float64(len(n.jobs))
	}
	n.now = to
}

type change uint8

const (
	startEnded change = iota // a start-up ended
	epochEnded               // an epoch other than the last ended
	jobEnded                 // the last epoch ended
)

// step advances to the next change of the node, which must have one, and applies it. It returns the job
// at that time and the kind of change.
func (n *node) step() (r runningJob, what change) {
	at, which := n.next()
	n.advance(at)
	job := &n.jobs[which]
	if r = *job; r.epoch == r.epochs {
		n.processes -= int(r.choice.cpus)
		n.jobs = slices.Delete(n.jobs, which, which+1)
		n.refresh()
		return r, jobEnded
	}
	job.epoch++
	job.left, job.beganAt, job.jobSeconds = 1, n.now, 0
	n.refreshJob(job)
	if r.epoch == 0 {
		return r, startEnded
	}
	return r, epochEnded
}
