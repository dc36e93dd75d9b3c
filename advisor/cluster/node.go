package cluster

import "time"

// Node is the state of a node: its last sample, and the jobs that run on it.
type Node struct {
	Name     string    `json:"name"`
	Cores    uint32    `json:"cores,omitempty"`
	LastSeen time.Time `json:"last_seen,omitzero"` // last sample, by the server's clock

	Changed time.Time   `json:"changed,omitzero"` // when a job last came or left, or its CPUs changed
	Foreign ForeignLoad `json:"foreign,omitzero"`

	Running []*Job       `json:"-"`               // by ID
	Holds   []Hold       `json:"holds,omitempty"` // never changed in place, because snapshots share it
	Load    LoadIntegral `json:"load,omitzero"`
	LastUse uint64       `json:"last_use,omitempty"` // Cluster.uses at its last event
}

// nodeSilence is the age of the last sample at which a node stops receiving new jobs.
const nodeSilence = 30 * time.Second

// maxNodes bounds the nodes in memory. It leaves room for 10,000 live nodes and for the names of
// short-lived pods. If there are more, the least recently used node without running jobs is
// evicted. The next event of the node adds it again.
const maxNodes = 1 << 14
