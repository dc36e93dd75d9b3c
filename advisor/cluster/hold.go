package cluster

import (
	"slices"
	"time"

	"courier/schemas"
)

// Hold is the CPUs of a cancelled job on a node. Its command may still compute, because its runner has no
// contact, or has just heard of the cancellation.
type Hold struct {
	JobID string    `json:"job_id"`
	Run   uint32    `json:"run"` // 0: it had not started
	CPUs  float64   `json:"cpus"`
	Since time.Time `json:"since"` // when the cancellation was stored

	// LastSeen is the time of the last heartbeat. The hold ends schemas.LostAfter later, as a silent run
	// is lost then, or with a heartbeat that reports the end.
	LastSeen time.Time `json:"last_seen,omitzero"`
}

func (h *Hold) isOver(now time.Time) bool { return now.Sub(h.LastSeen) > schemas.LostAfter }

// holdOf returns what a job holds after the event of its end, and on which nodes: none if its runner
// reports the end itself, or sends no heartbeats.
func holdOf(j *Job, e *schemas.Ended, storedAt time.Time) (h Hold, nodes []string) {
	if e.Outcome != schemas.EventCancelled || e.ExitCode != nil || !j.HasHeartbeat || j.HasLastHeartbeat {
		return h, nil
	}
	h = Hold{JobID: j.ID, Run: j.Run, Since: storedAt, LastSeen: j.LastSeen}
	switch {
	case j.State == schemas.StateRunning:
		h.CPUs, nodes = j.ProcessesPerNode(), j.Setting.Nodes
	case j.IsExpected(storedAt):
		h.CPUs, nodes = j.promisedCPUs(), j.Promise.Nodes
	}
	return h, nodes
}

// hold adds a hold, and drops those that are over.
func (n *Node) hold(h Hold, now time.Time) {
	isOver := func(o Hold) bool { return o.isOver(now) }
	n.Holds = append(slices.DeleteFunc(slices.Clone(n.Holds), isOver), h)
}

// HeardAtEnd takes a heartbeat of a cancelled job, whose hold goes on, and the last heartbeat of any job. It
// returns the nodes whose CPUs are freed.
func (c *Cluster) HeardAtEnd(j *Job, e *schemas.Alive, now time.Time) (freed []string) {
	if e.Ended && e.Run == j.Run && !j.IsSettled() {
		j.HasLastHeartbeat = true
	}
	nodes := j.Setting.Nodes
	if j.Promise != nil {
		nodes = slices.Concat(nodes, j.Promise.Nodes)
	}
	isOf := func(h Hold) bool { return h.JobID == j.ID && h.Run <= e.Run }
	for _, name := range nodes {
		n := c.nodes[name]
		if n == nil {
			continue
		}
		i := slices.IndexFunc(n.Holds, isOf)
		if i < 0 {
			continue
		}
		n.Holds = slices.Clone(n.Holds)
		if n.Holds[i].LastSeen = now; e.Ended {
			n.Holds, freed = slices.Delete(n.Holds, i, i+1), append(freed, name)
		}
	}
	return freed
}

// ResetHolds takes the cancellation of each hold for its last heartbeat, because later ones could not
// arrive.
func (c *Cluster) ResetHolds() {
	for _, n := range c.nodes {
		n.Holds = slices.Clone(n.Holds)
		for i, h := range n.Holds {
			if h.LastSeen.Before(h.Since) {
				n.Holds[i].LastSeen = h.Since
			}
		}
	}
}

// HeldCPUs returns the number of CPUs of a node that jobs hold which do not run: they are about to start,
// or are cancelled and may still compute.
func (c *Cluster) HeldCPUs(node string, now time.Time) float64 {
	sum := c.arrivals.cpus(node, now)
	if n := c.nodes[node]; n != nil {
		for _, h := range n.Holds {
			if !h.isOver(now) {
				sum += h.CPUs
			}
		}
	}
	return sum
}
