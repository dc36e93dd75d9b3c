package cluster

import (
	"slices"
	"time"

	"courier/schemas"
)

// Hold describes the CPUs that a cancelled job keeps on a node. Its command may still compute, because its
// runner has no contact, or has just heard of the cancellation.
type Hold struct {
	JobID string    `json:"job_id"`
	Run   uint32    `json:"run"` // 0: the job had not started
	CPUs  float64   `json:"cpus"`
	Since time.Time `json:"since"` // when the cancellation was stored

	// LastSeen is the time of the job's last event or heartbeat. The hold ends schemas.LostAfter later,
	// when a silent run counts as lost, or with a heartbeat that reports the end.
	LastSeen time.Time `json:"last_seen,omitzero"`
}

func (h *Hold) isOver(now time.Time) bool { return now.Sub(h.LastSeen) > schemas.LostAfter }

// holdOf returns the hold of a job after the event of its end, and the nodes of the hold. There are none
// if the runner reports the end itself, or sends no heartbeats.
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

// HeardAtEnd applies a heartbeat to the holds of its job: it extends them, and the last heartbeat ends
// them. It also records the last heartbeat of a job whose end is not applied yet. It returns the nodes
// whose CPUs are freed.
func (c *Cluster) HeardAtEnd(j *Job, e *schemas.Alive, now time.Time) (freed []string) {
	j.HasLastHeartbeat = j.HasLastHeartbeat || e.Ended && e.Run == j.Run && !j.IsSettled()
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

// ResetHolds extends the holds as if each job had sent a heartbeat when it was cancelled. The advisor calls
// it after a time in which heartbeats could not arrive.
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

// HeldCPUs returns the number of CPUs of a node that are held by jobs which are about to start, or which
// are cancelled and may still compute.
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

// HeldByNode returns HeldCPUs of each node where it is not 0.
func (c *Cluster) HeldByNode(now time.Time) map[string]float64 {
	held := map[string]float64{}
	for name := range c.nodes {
		if cpus := c.HeldCPUs(name, now); cpus > 0 {
			held[name] = cpus
		}
	}
	return held
}
