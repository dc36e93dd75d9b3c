package simulate

import (
	"cmp"
	"math"
	"slices"
)

// running is a job on a node. Its state is a value: a copy of it, and of its
// neighbours, can be run ahead without touching the world.
type running struct {
	job    *Job
	choice candidate
	epochs uint32  // that it will run
	epoch  uint32  // that it is in; 0 is the start-up
	left   float64 // of the epoch, as a share; of the start-up, in seconds
	rate   float64 // by what left falls in a second, until something on the node changes
	alone  float64 // seconds of an epoch without noise and neighbours

	startedAt, beganAt float64 // seconds; of the run, of the epoch
	jobSeconds         float64 // integral of the jobs on the node over the epoch
	promised           bool
}

// node is a machine at a moment.
type node struct {
	*Node
	now       float64
	jobs      []running // in the order of their starts
	processes int       // of all jobs
	drifts    []Drift   // of this node, by time
}

func (w *World) nodes(now float64) []node {
	all := make([]node, len(w.Nodes))
	for i := range w.Nodes {
		all[i] = node{Node: &w.Nodes[i], now: now}
		for _, d := range w.Drift {
			if d.Node == "" || d.Node == w.Nodes[i].Name {
				all[i].drifts = append(all[i].drifts, d)
			}
		}
		slices.SortStableFunc(all[i].drifts, func(a, b Drift) int {
			return cmp.Compare(a.AfterSeconds, b.AfterSeconds)
		})
	}
	return all
}

// copied is the node as it is, to be run ahead.
func (n *node) copied() node {
	c := *n
	c.jobs = slices.Clone(n.jobs)
	return c
}

// start puts a job on the node, now.
func (n *node) start(j *Job, c candidate, epochs uint32, promised bool) {
	n.jobs = append(n.jobs, running{
		job:       j,
		choice:    c,
		epochs:    epochs,
		left:      j.family.StartupSeconds * j.luck.startup,
		alone:     j.family.EpochSeconds.alone(c.batch, c.cpus),
		startedAt: n.now,
		beganAt:   n.now,
		promised:  promised,
	})
	n.processes += int(c.cpus)
	n.refresh()
}

// refresh sets every rate anew: something on the node has changed.
func (n *node) refresh() {
	for i := range n.jobs {
		n.refreshJob(&n.jobs[i])
	}
}

// refreshJob sets the rate of one job anew.
func (n *node) refreshJob(r *running) {
	r.rate = 1
	if r.epoch > 0 {
		l := &r.job.family.EpochSeconds
		r.rate = 1 / (r.alone * l.contention(
			r.choice.cpus, len(n.jobs), n.processes, n.Cores,
		) * r.job.luck.epochs[r.epoch-1] * n.drift())
	}
}

// drift is by what the node's epochs are multiplied now.
func (n *node) drift() float64 {
	f := 1.0
	for _, d := range n.drifts {
		if d.AfterSeconds <= n.now {
			f *= d.Factor
		}
	}
	return f
}

// next is when the node changes by itself, and the job whose start-up or epoch
// ends then; -1 if it is a drift that begins, or nothing (at infinity).
func (n *node) next() (at float64, which int) {
	at, which = math.Inf(1), -1
	for _, d := range n.drifts {
		if d.AfterSeconds > n.now {
			at = d.AfterSeconds
			break
		}
	}
	for i := range n.jobs {
		if end := n.now + n.jobs[i].left/n.jobs[i].rate; end < at {
			at, which = end, i
		}
	}
	return at, which
}

// advance lets time pass in which nothing changes.
func (n *node) advance(to float64) {
	seconds := to - n.now
	for i := range n.jobs {
		r := &n.jobs[i]
		r.left = max(0, r.left-r.rate*seconds)
		r.jobSeconds += seconds * float64(len(n.jobs))
	}
	n.now = to
}

// change is what a step brings.
type change uint8

const (
	drifted    change = iota // the node became slower or faster
	startEnded               // a start-up
	epochEnded               // an epoch that was not the last
	jobEnded                 // the last epoch
)

// step goes to the node's next change and carries it out. It returns the job
// that it is about, as it was then.
func (n *node) step() (r running, what change) {
	at, which := n.next()
	n.advance(at)
	if which < 0 {
		n.refresh()
		return r, drifted
	}
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
