package cluster

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// Placement returns the nodes of a request: the nodes that it names, otherwise the live node
// with the fewest processes per CPU that has enough CPUs. Without such a node the result is nil.
func (c *Cluster) Placement(q *schemas.JobRequest, now time.Time) []string {
	if len(q.Nodes) > 0 {
		return q.Nodes
	}
	var best placedNode
	for _, n := range c.nodes {
		if !n.mayPlace(q, now) {
			continue
		}
		if p := c.placed(n, now); best.node == nil || comparePlaced(p, best) < 0 {
			best = p
		}
	}
	if best.node == nil {
		return nil
	}
	return []string{best.node.Name}
}

// maxOtherNodes bounds the nodes that otherNodes returns, and so the time of an admission.
const maxOtherNodes = 16

// OtherNodes returns the nodes, besides the one of its placement, on which a job may be admitted by
// the plan for their CPUs: the least loaded first, at most maxOtherNodes. Only an elastic job may
// start on a node where no job can lend CPUs. A job that names its nodes runs on no others.
func (c *Cluster) OtherNodes(q *schemas.JobRequest, placement []string, now time.Time) []string {
	if len(q.Nodes) > 0 {
		return nil
	}
	var all []placedNode
	for _, n := range c.nodes {
		if slices.Contains(placement, n.Name) || !n.mayPlace(q, now) {
			continue
		}
		if q.Elastic || slices.ContainsFunc(n.Running, (*Job).IsElasticNow) {
			all = append(all, c.placed(n, now))
		}
	}
	slices.SortFunc(all, comparePlaced)
	var names []string
	for _, p := range all[:min(len(all), maxOtherNodes)] {
		names = append(names, p.node.Name)
	}
	return names
}

// placedNode is a node with its processes per CPU. A CPU that foreign work uses counts as a process.
type placedNode struct {
	node *Node
	load float64
}

func comparePlaced(a, b placedNode) int {
	return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.node.Name, b.node.Name))
}

// mayPlace reports whether the node is live and has enough CPUs for a request.
func (n *Node) mayPlace(q *schemas.JobRequest, now time.Time) bool {
	wanted := 0
	if len(q.CPUs) > 0 {
		wanted = int(schemas.Processes(slices.Min(q.WorkerCounts()), uint32(slices.Min(q.CPUs))))
	}
	return int(n.Cores) >= wanted && now.Sub(n.LastSeen) <= nodeSilence
}

// placed returns a node with its load.
func (c *Cluster) placed(n *Node, now time.Time) placedNode {
	load := c.HeldCPUs(n.Name, now) + n.Load.Processes
	return placedNode{n, load/float64(n.Cores) + n.Foreign.CPU.Ratio(now).Or(0)}
}
