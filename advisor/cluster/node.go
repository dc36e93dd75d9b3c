package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"courier/schemas"
)

// Node is the state of a node: its last sample, and the jobs that run on it.
type Node struct {
	Name     string    `json:"name"`
	Cores    uint32    `json:"cores,omitempty"`
	LastSeen time.Time `json:"last_seen,omitzero"` // last sample, by the server's clock

	Changed time.Time   `json:"changed,omitzero"` // when a job last came or left
	Foreign ForeignLoad `json:"foreign,omitzero"`

	Running []*Job `json:"-"` // by ID
}

// Node returns a node, or nil if it is unknown.
func (c *Cluster) Node(name string) *Node { return c.nodes[name] }

// KnownNodes returns the names of the nodes with known hardware, sorted.
func (c *Cluster) KnownNodes() []string { return slices.Sorted(maps.Keys(c.fleet)) }

// Hardware returns the known hardware of some nodes, in their order.
func (c *Cluster) Hardware(nodes []string) []schemas.Hardware { return c.fleet.Of(nodes) }

// nodeSilence is the age of the last sample at which a node stops receiving new jobs.
const nodeSilence = 30 * time.Second

// maxNodes bounds the nodes in memory. It leaves room for 10,000 live nodes and for the names of
// short-lived pods. If there are more, the least recently used node without running jobs is
// evicted. The next event of the node adds it again.
const maxNodes = 1 << 14

// useNode returns a node, created on first use, and marks it as most recently used.
func (c *Cluster) useNode(name string) *Node {
	n := c.nodes[name]
	if n == nil {
		n = &Node{Name: name}
		c.nodes[name] = n
	}
	if len(n.Running) == 0 {
		c.idleNodes.use(name)
	}
	return n
}

// evictNodes evicts the least recently used idle nodes beyond the limit.
func (c *Cluster) evictNodes() {
	for len(c.nodes) > c.limits.nodes {
		name, ok := c.idleNodes.oldest()
		if !ok {
			return
		}
		c.idleNodes.remove(name)
		delete(c.nodes, name)
		delete(c.fleet, name)
	}
}

// addToNodes adds a running job to its nodes.
func (c *Cluster) addToNodes(j *Job, at time.Time) {
	c.running[j.ID] = j
	for _, name := range j.Setting.Nodes {
		n := c.useNode(name)
		c.idleNodes.remove(name)
		place, _ := slices.BinarySearchFunc(n.Running, j.ID, compareID)
		n.Running, n.Changed = slices.Insert(n.Running, place, j), at
	}
}

// removeFromNodes removes a job from the nodes that it ran on.
func (c *Cluster) removeFromNodes(j *Job, nodes []string, at time.Time) {
	delete(c.running, j.ID)
	for _, name := range nodes {
		n := c.nodes[name]
		n.Changed = at
		n.Running = slices.DeleteFunc(n.Running, func(o *Job) bool { return o == j })
		if len(n.Running) == 0 {
			n.Running = nil
			c.idleNodes.use(name)
		}
	}
}

// Colocated returns the running jobs that share a node with the given nodes, directly or through
// other jobs, sorted by ID. It includes jobs that are about to start, and excludes the job named by
// except.
func (c *Cluster) Colocated(nodes []string, except string, now time.Time) []*Job {
	var all []*Job
	seen := slices.Clone(nodes)
	add := func(j *Job, nodes []string) {
		if j.ID == except || slices.Contains(all, j) {
			return
		}
		all = append(all, j)
		for _, n := range nodes {
			if !slices.Contains(seen, n) {
				seen = append(seen, n)
			}
		}
	}
	for i := 0; i < len(seen); i++ {
		if n := c.nodes[seen[i]]; n != nil {
			for _, j := range n.Running {
				add(j, j.Setting.Nodes)
			}
		}
		for _, j := range c.arrivals.jobsOn(seen[i]) {
			if j.IsExpected(now) {
				add(j, j.Promise.Nodes)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// sample records a sample of a node: its hardware and its foreign load.
func (c *Cluster) sample(e *schemas.Sample, storedAt time.Time) {
	n := c.useNode(e.Node)
	n.Cores, n.LastSeen = e.Cores, storedAt
	before := c.fleet[e.Node]
	c.fleet.Sample(e)
	c.refreshHardware(e.Node, before)
	c.learnForeign(n, e, storedAt)
}

func (c *Cluster) useNodes(names []string) {
	for _, name := range names {
		c.useNode(name)
	}
}

// refreshHardware updates the running jobs of a node and their observed epochs after its hardware
// became known. An advisor that replays the log reaches the same state.
func (c *Cluster) refreshHardware(node string, before schemas.Hardware) {
	if c.fleet[node] == before {
		return
	}
	for _, j := range c.nodes[node].Running {
		// Questions share the slices.
		j.Hardware, j.ObservedEpochs = slices.Clone(j.Hardware), slices.Clone(j.ObservedEpochs)
		for i, n := range j.Setting.Nodes {
			j.Hardware[i] = c.fleet.Complete(n, j.Hardware[i])
		}
		for i := range j.ObservedEpochs {
			l := &j.ObservedEpochs[i]
			l.Load.On = c.fleet.Complete(l.Node, l.Load.On)
		}
	}
}

func compareID(j *Job, id string) int { return cmp.Compare(j.ID, id) }

// Cores returns the cores of a node; 0 if they are unknown.
func (c *Cluster) Cores(node string) int {
	n := c.nodes[node]
	if n == nil {
		return 0
	}
	return int(cmp.Or(n.Cores, c.fleet[node].Cores))
}
