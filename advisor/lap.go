package advisor

import (
	"math"
	"time"

	"courier/schemas"
)

// tally adds up what ran on a node: the integrals of jobs and processes over time.
type tally struct {
	node                     string
	at                       time.Time
	jobs, procs              float64
	jobSeconds, procsSeconds float64
}

// until moves the tally on to a moment; an earlier one changes nothing.
func (t *tally) until(at time.Time) {
	if seconds := at.Sub(t.at).Seconds(); seconds > 0 {
		if !t.at.IsZero() {
			t.jobSeconds += seconds * t.jobs
			t.procsSeconds += seconds * t.procs
		}
		t.at = at
	}
}

// tallies are those of all nodes.
type tallies map[string]*tally

// change lets a job come (sign 1) to its nodes or leave them (-1).
func (all tallies) change(s *schemas.Setting, sign float64, at time.Time) {
	for _, n := range s.Nodes {
		t := all[n]
		if t == nil {
			t = &tally{node: n}
			all[n] = t
		}
		t.until(at)
		t.jobs += sign
		t.procs += sign * float64(s.CPUs)
	}
}

// prune drops the tallies of nodes on which nothing runs. No mark refers to them any more:
// a job that leaves its nodes loses its mark.
func (all tallies) prune(nodes []string) {
	for _, n := range nodes {
		if t := all[n]; t != nil && t.jobs == 0 {
			delete(all, n)
		}
	}
}

// snapshot notes the integrals of a job's nodes.
func (all tallies) snapshot(nodes []string, at time.Time) []tally {
	var notes []tally
	for _, n := range nodes {
		if t := all[n]; t != nil {
			t.until(at)
			notes = append(notes, *t)
		}
	}
	return notes
}

// between is the load from one snapshot of the same nodes to another: that of
// the node that was the fullest. ok is false if no time passed, or the nodes differ.
func (c *Cluster) between(from, to []tally) (load surroundings, node string, ok bool) {
	if len(from) != len(to) {
		return load, node, false
	}
	for i := range to {
		seconds := to[i].at.Sub(from[i].at).Seconds()
		if seconds <= 0 || to[i].node != from[i].node {
			return load, node, false
		}
		on := c.fleet[to[i].node]
		if procs := (to[i].procsSeconds - from[i].procsSeconds) / seconds; i == 0 ||
			schemas.MoreLoaded(procs, on, load.Processes, load.on) {
			load = surroundings{
				schemas.Load{
					ConcurrentJobs: (to[i].jobSeconds - from[i].jobSeconds) / seconds,
					Processes:      procs,
				},
				on,
			}
			node = to[i].node
		}
	}
	return load, node, len(to) > 0
}

// ownFactor is how much longer a run's epochs take than predicted, and by how
// much they narrow what is uncertain about it. With n epochs the mean of their
// log ratios, each to the batch size that it ran with, is shrunk by n/(n+1): as much of the error is taken to belong to
// the run as to each epoch.
func (m *Member) ownFactor(r *Regressor, code float64, said *memory) (factor, narrow float64) {
	sum, n := 0.0, 0.0
	var on reading
	for i := range m.laps {
		l := &m.laps[i]
		f := schemas.Features{
			BatchSize: l.batch,
			CPUs:      m.Setting.CPUs,
			ModelCode: code,
			Load:      l.load.Load,
			Node:      on.node(r, l.load.on),
		}
		if p, ok := r.predict(&f, said); ok && p.Value > 0 && l.seconds > 0 {
			sum += math.Log(l.seconds / p.Value)
			n++
		}
	}
	if n == 0 {
		return 1, 1
	}
	return math.Exp(sum / (n + 1)), max(leastNarrow, 1/math.Sqrt(n+1))
}

// leastNarrow is what own epochs leave of the uncertainty: jobs that come later
// slow down a job whose epochs are well known, too.
const leastNarrow = 0.5
