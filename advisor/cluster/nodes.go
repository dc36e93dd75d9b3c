package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"courier/schemas"
)

// Node returns a node, or nil if it is unknown.
func (c *Cluster) Node(name string) *Node { return c.nodes[name] }

// KnownNodes returns the names of the nodes with known hardware, sorted.
func (c *Cluster) KnownNodes() []string { return slices.Sorted(maps.Keys(c.fleet)) }

// Hardware returns the known hardware of some nodes, in their order.
func (c *Cluster) Hardware(nodes []string) []schemas.Hardware { return c.fleet.Of(nodes) }

// useNode returns a node, created on first use, and marks it as most recently used.
func (c *Cluster) useNode(name string) *Node {
	n := c.nodes[name]
	if n == nil {
		n = &Node{Name: name, Load: LoadIntegral{Node: name}}
		c.nodes[name] = n
	}
	c.uses++
	n.LastUse = c.uses
	return n
}

func (c *Cluster) useNodes(names []string) {
	for _, name := range names {
		c.useNode(name)
	}
}

// addToNodes adds a running job to its nodes.
func (c *Cluster) addToNodes(j *Job, at time.Time) {
	c.running[j.ID] = j
	for _, name := range j.Setting.Nodes {
		n := c.useNode(name)
		n.add(j)
		n.Changed = at
		n.Load.change(1, float64(j.Setting.Processes()), at)
	}
}

// add adds a job to the running ones.
func (n *Node) add(j *Job) {
	place, _ := slices.BinarySearchFunc(n.Running, j, compareIDs)
	n.Running = slices.Insert(n.Running, place, j)
}

// removeFromNodes removes a job from its nodes, on which it ran with some setting.
func (c *Cluster) removeFromNodes(j *Job, ran *schemas.Setting, at time.Time) {
	delete(c.running, j.ID)
	for _, name := range ran.Nodes {
		n := c.useNode(name)
		n.Running = slices.DeleteFunc(n.Running, func(o *Job) bool { return o == j })
		n.Changed = at
		n.Load.change(-1, float64(ran.Processes()), at)
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
		for _, j := range c.arrivals.on(seen[i], now) {
			add(j, j.Promise.Nodes)
		}
	}
	slices.SortFunc(all, compareIDs)
	return all
}

// Cores returns the cores of a node; 0 if they are unknown.
func (c *Cluster) Cores(node string) int {
	n := c.nodes[node]
	if n == nil {
		return 0
	}
	return int(cmp.Or(n.Cores, c.fleet[node].Cores))
}

// Foreign returns the foreign load of some nodes, in their order.
func (c *Cluster) Foreign(nodes []string, now time.Time) []schemas.Foreign {
	loads := make([]schemas.Foreign, len(nodes))
	for i, name := range nodes {
		if n := c.nodes[name]; n != nil {
			loads[i] = schemas.Foreign{CPU: n.Foreign.CPU.Ratio(now), IOWait: n.Foreign.IOWait.Ratio(now)}
		}
	}
	return loads
}

// ForeignOf returns the current foreign load of the nodes of a running job. If the last epoch was
// shorter than foreignWindow, it is a newer measurement than the mean, and is used instead.
func (c *Cluster) ForeignOf(j *Job, now time.Time) []schemas.Foreign {
	loads := c.Foreign(j.Setting.Nodes, now)
	if len(j.ObservedEpochs) == 0 || len(loads) != 1 || now.Sub(j.ProgressAt) > foreignStale {
		return loads
	}
	last := &j.ObservedEpochs[len(j.ObservedEpochs)-1]
	if last.Seconds > foreignWindow.Seconds() {
		return loads
	}
	if r := last.Load.ForeignCPURatio; r.Known {
		loads[0].CPU = r
	}
	if r := last.Load.ForeignIOWaitRatio; r.Known {
		loads[0].IOWait = r
	}
	return loads
}

// useModel returns the model of a level, created on first use, and marks it as most recently used.
func (c *Cluster) useModel(level string) *Model {
	m := c.models[level]
	if m == nil {
		m = &Model{}
		c.models[level] = m
	}
	c.uses++
	m.LastUse = c.uses
	return m
}

// Model returns the model and dataset of a request, or the zero value if they are unknown.
func (c *Cluster) Model(q *schemas.JobRequest) Model {
	if m := c.models[schemas.ModelLevel(q.Model, q.Dataset)]; m != nil {
		return *m
	}
	return Model{}
}
