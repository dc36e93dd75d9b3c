package sharing

import (
	"math"
	"math/rand/v2"
	"strconv"

	"courier/policy/placement"
)

// Cluster is a number of equal nodes, on each of which a job could use the whole CPU.
type Cluster struct {
	Nodes     int
	Sharing   Sharing // on each node
	Placement Placement
	// Migration moves running jobs by policy/placement; nil: they stay. It observes their losses
	// itself, so that the nodes must not share by RuleQuality.
	Migration *placement.MigrateOptions
	Seed      uint64 // of random choices
}

// Placement is what chooses the node of a new job.
type Placement string

// Placements.
const (
	// PlacementFewest chooses the node with the fewest jobs, at random among equal ones. So does the
	// default scheduler of Kubernetes if the jobs request no CPU.
	PlacementFewest    Placement = ""
	PlacementRandom    Placement = "random"     // any node
	PlacementLeastWork Placement = "least work" // the least predicted remaining work
	PlacementProCon    Placement = "procon"     // policy/placement
)

// cluster is the state of a cluster.
type cluster struct {
	Cluster
	nodes  []*node
	random *rand.Rand
	review float64 // time of the next decision about running jobs
}

// SimulateCluster runs jobs on nodes whose speed with n equal jobs is 1 / (1 + contention (n - 1)).
func SimulateCluster(jobs []TrainingJob, cl Cluster, contention float64) *NodeOutcome {
	o := &NodeOutcome{Seconds: map[string]float64{}, Quality: map[string]float64{}}
	c := &cluster{Cluster: cl, random: rand.New(rand.NewPCG(cl.Seed, 1))}
	for range cl.Nodes {
		c.nodes = append(c.nodes, &node{divider: cl.Sharing.divider()})
	}
	for now := 0.0; len(o.Seconds) < len(jobs); now += tick {
		for _, n := range c.nodes {
			n.finish(o, now)
			n.restart(now)
		}
		for i := range jobs {
			if j := &jobs[i]; j.Arrival <= now && j.Arrival > now-tick {
				c.place(newSharingJob(j, now))
			}
		}
		if c.Migration != nil && now >= c.review {
			c.migrate(now)
		}
		for _, n := range c.nodes {
			if len(n.running) > 0 {
				n.divide(now)
				o.advance(n.running, now, contention)
			}
		}
	}
	return o
}

// place puts a new job on a node.
func (c *cluster) place(j *sharingJob) {
	n := c.nodes[c.choose()]
	n.running = append(n.running, j)
	n.isChanged = true
}

// choose returns the index of the node for a new job.
func (c *cluster) choose() int {
	switch c.Placement {
	case PlacementProCon:
		return placement.Place(c.view(), placement.PlaceOptions{})
	case PlacementLeastWork:
		return c.least((*node).predicted)
	case PlacementRandom:
		return c.random.IntN(len(c.nodes))
	}
	return c.least(func(n *node) float64 { return float64(len(n.jobs())) })
}

// least returns the index of the node with the least value, at random among equal ones.
func (c *cluster) least(value func(*node) float64) int {
	best, least := 0, math.Inf(1)
	for _, i := range c.random.Perm(len(c.nodes)) {
		if v := value(c.nodes[i]); v < least {
			best, least = i, v
		}
	}
	return best
}

// predicted returns the predicted remaining work of the jobs.
func (n *node) predicted() float64 {
	sum := 0.0
	for _, j := range n.jobs() {
		sum += j.predicted()
	}
	return sum
}

// view returns the nodes as a policy sees them. A node with a job uses all of its CPU.
func (c *cluster) view() []placement.Node {
	nodes := make([]placement.Node, len(c.nodes))
	for i, n := range c.nodes {
		nodes[i].Name = strconv.Itoa(i)
		if len(n.running) > 0 {
			nodes[i].CPURatio = 1
		}
		for k, j := range n.jobs() {
			nodes[i].Jobs = append(nodes[i].Jobs, placement.Job{
				Name:             j.Name,
				RemainingSeconds: j.predicted(),
				Phase:            j.phase,
				CanMove:          k < len(n.running),
			})
		}
	}
	return nodes
}
