package advisor

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// Node is what is known of a node: what its last sample reports, and what runs on it.
type Node struct {
	Name  string
	Cores uint32
	Heard time.Time // by the server's clock

	running []*Job    // by ID
	changed time.Time // when a job came or left last
	foreign ForeignLoad
}

// nodeSilence is how long after its last sample a node is no place for a job.
const nodeSilence = 30 * time.Second

// mostNodes bounds how many nodes are remembered. There is room for 10,000 live nodes and
// for the names of pods that come and go; beyond it the least recently used node without a
// running job is forgotten, and is known again with its next event.
const mostNodes = 1 << 14

// useNode returns a node, which is made on first use, and notes that it is used now.
func (c *Cluster) useNode(name string) *Node {
	n := c.nodes[name]
	if n == nil {
		n = &Node{Name: name}
		c.nodes[name] = n
	}
	if len(n.running) == 0 {
		c.idleNodes.use(name)
	}
	return n
}

// forgetNodes drops the least recently used nodes beyond the limit. Nodes with running
// jobs are not among the idle ones, and stay.
func (c *Cluster) forgetNodes() {
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

// enter adds a running job to its nodes.
func (c *Cluster) enter(j *Job, at time.Time) {
	c.running[j.ID] = j
	for _, name := range j.Setting.Nodes {
		n := c.useNode(name)
		c.idleNodes.remove(name)
		place, _ := slices.BinarySearchFunc(n.running, j.ID, compareID)
		n.running, n.changed = slices.Insert(n.running, place, j), at
	}
}

// leave takes a job off the nodes that it ran on.
func (c *Cluster) leave(j *Job, nodes []string, at time.Time) {
	delete(c.running, j.ID)
	for _, name := range nodes {
		n := c.nodes[name]
		n.changed = at
		n.running = slices.DeleteFunc(n.running, func(o *Job) bool { return o == j })
		if len(n.running) == 0 {
			n.running = nil
			c.idleNodes.use(name)
		}
	}
}

func compareID(j *Job, id string) int { return cmp.Compare(j.ID, id) }

// beside returns the running jobs that share a node with the given ones, or with
// a job that does, except for one, by ID; those that are about to start count.
func (c *Cluster) beside(nodes []string, except string, now time.Time) []*Job {
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
			for _, j := range n.running {
				add(j, j.Setting.Nodes)
			}
		}
		for _, j := range c.arrivals.on(seen[i]) {
			if j.expected(now) {
				add(j, j.Promise.Nodes)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// place returns the nodes of a request: those that it names, else the live node
// with the fewest processes per processor that has room for the fewest CPUs asked
// for; none if no node is known. A processor that foreign work takes counts as a process.
func (c *Cluster) place(q *schemas.JobRequest, now time.Time) []string {
	if len(q.Nodes) > 0 {
		return q.Nodes
	}
	var best *Node
	var least float64
	wanted := 0
	if len(q.CPUs) > 0 {
		wanted = slices.Min(q.CPUs)
	}
	for _, n := range c.nodes {
		if int(n.Cores) < wanted || now.Sub(n.Heard) > nodeSilence {
			continue
		}
		load := c.arrivals.cpus(n.Name, now)
		if len(n.running) > 0 {
			load += c.tallies[n.Name].procs
		}
		load = load/float64(n.Cores) + n.foreign.CPU.at(now).Or(0)
		if best == nil || load < least || load == least && n.Name < best.Name {
			best, least = n, load
		}
	}
	if best == nil {
		return nil
	}
	return []string{best.Name}
}
