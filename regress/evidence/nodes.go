package evidence

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"
)

const (
	// splitEvidence is the minimum difference of a node, in standard deviations.
	// splitDeviation is the deviation of the factor of a node between configurations.
	splitEvidence  = 6.0
	splitDeviation = 0.1
)

// groupNodes separates nodes of one type whose runs differ, because their hardware is unknown or
// its difference is not visible. For each node type it compares the nodes, the nodes with most runs
// first, configuration by configuration. A node that is clearly faster or slower than all groups
// starts a group; others join the first group that they do not differ from. It returns the nodes that do
// not belong to the first group of their type.
func groupNodes(runs []Run) (split []NodeGroup) {
	nodes := map[nodeKey]nodeRuns{}
	for i := range runs {
		r := &runs[i]
		epochs, _ := r.epochSeconds()
		if r.Node == "" || len(epochs) == 0 {
			continue
		}
		of := nodes[nodeKey{r.Node, r.NodeType}]
		if of == nil {
			of = nodeRuns{}
			nodes[nodeKey{r.Node, r.NodeType}] = of
		}
		of.add(nodeRuns{{r.Configuration, bits.Len(uint(len(epochs)))}: {math.Log(Median(epochs)), 1}})
	}
	keys := slices.SortedFunc(maps.Keys(nodes), func(a, b nodeKey) int {
		return cmp.Or(cmp.Compare(a.nodeType, b.nodeType), cmp.Compare(nodes[b].runs(), nodes[a].runs()),
			cmp.Compare(a.node, b.node))
	})
	type group struct {
		label string
		runs  nodeRuns
	}
	types := map[string][]group{}
	for _, k := range keys {
		groups := types[k.nodeType]
		at := slices.IndexFunc(groups, func(g group) bool { return !nodes[k].differs(g.runs) })
		if at < 0 {
			label := k.nodeType
			if at = len(groups); at > 0 {
				label += "@" + k.node
			}
			groups = append(groups, group{label, nodeRuns{}})
			types[k.nodeType] = groups
		}
		groups[at].runs.add(nodes[k])
		if at > 0 {
			split = append(split, NodeGroup{k.node, k.nodeType, groups[at].label})
		}
	}
	return split
}

// NodeGroup is a node whose runs differ from other nodes with the same known hardware. It
// is fitted as a type of its own.
type NodeGroup struct {
	Node     string `json:"node"`
	NodeType string `json:"node_type,omitempty"` // node type given by the caller
	Group    string `json:"group"`               // node type of its runs in fits
}

// nodeRuns sums the log median epoch seconds of one node.
type nodeRuns map[comparedRuns]logSum

// comparedRuns are runs of a configuration that are compared: of about as many epochs, because the first epochs
// of a run may differ from the later ones.
type comparedRuns struct {
	Configuration
	octave int // of the number of epochs
}

func (c comparedRuns) compare(d comparedRuns) int {
	return cmp.Or(c.Configuration.compare(d.Configuration), cmp.Compare(c.octave, d.octave))
}

type logSum struct{ sum, n float64 }

func (n nodeRuns) runs() (sum float64) {
	for _, t := range n {
		sum += t.n
	}
	return sum
}

// add adds the runs of another node.
func (n nodeRuns) add(o nodeRuns) {
	for c, t := range o {
		own := n[c]
		own.n += t.n
		own.sum += t.sum
		n[c] = own
	}
}

// differs reports whether runs on both nodes take different times.
func (n nodeRuns) differs(o nodeRuns) bool {
	weighted, precision := 0.0, 0.0
	for _, c := range slices.SortedFunc(maps.Keys(n), comparedRuns.compare) {
		a, b := n[c], o[c]
		if b.n == 0 {
			continue
		}
		w := 1 / (runVariance.prior*(1/a.n+1/b.n) + splitDeviation*splitDeviation)
		weighted += w * (a.sum/a.n - b.sum/b.n)
		precision += w
	}
	return precision > 0 && math.Abs(weighted)/math.Sqrt(precision) >= splitEvidence
}

// regrouped returns the runs with the groups of their nodes as node types.
func regrouped(runs []Run, groups []NodeGroup) []Run {
	of := groupMap(groups)
	runs = slices.Clone(runs)
	for i := range runs {
		if g, ok := of[nodeKey{runs[i].Node, runs[i].NodeType}]; ok {
			runs[i].NodeType = g
		}
	}
	return runs
}

type nodeKey struct{ node, nodeType string }

func groupMap(groups []NodeGroup) map[nodeKey]string {
	of := map[nodeKey]string{}
	for _, g := range groups {
		of[nodeKey{g.Node, g.NodeType}] = g.Group
	}
	return of
}
