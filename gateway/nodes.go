package gateway

import (
	"cmp"
	"container/list"
	"slices"
	"strings"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Bounds of what is remembered of the nodes.
const (
	maxNodes      = 16_384           // the one that was silent longest makes room
	silence       = 10 * time.Second // a node is live at least that long after a sample
	liveIntervals = 3                // and for that many of its intervals
)

// NodeList answers GET /api/v1/nodes.
type NodeList struct {
	Nodes []NodeStatus `json:"nodes"`          // a page, in the order that was asked for
	Total int          `json:"total"`          // nodes that match, on all pages
	Live  int          `json:"live"`           // of these, the live ones
	Next  string       `json:"next,omitempty"` // after of the next page; absent on the last
}

// NodeStatus is what is known of a node.
type NodeStatus struct {
	Node            string         `json:"node"`
	Live            bool           `json:"live"`             // age_seconds is within patience_seconds
	AgeSeconds      float64        `json:"age_seconds"`      // since its last sample was stored, by the clocks of NATS and the gateway
	PatienceSeconds float64        `json:"patience_seconds"` // how old its last sample may be while it is live
	Sample          schemas.Sample `json:"sample"`           // its last
	Recent          []Point        `json:"recent,omitempty"` // its last minutes, oldest first, where asked for
}

// nodeTable holds the last sample and the recent points of each node. A sample costs the
// same however many nodes there are; readers copy what they return.
type nodeTable struct {
	mu     sync.RWMutex
	byName map[string]*node
	sorted []*node    // by name
	heard  *list.List // of *node, the one that was silent longest first
}

// node is one entry; its fields are guarded by the table's lock.
type node struct {
	name     string
	sample   *schemas.Sample // never changed, as other readers of the event hold it
	storedAt time.Time       // of the sample
	recent   pointRing
	place    *list.Element // in heard
}

func newNodeTable() *nodeTable {
	return &nodeTable{byName: map[string]*node{}, heard: list.New()}
}

func compareName(n *node, name string) int { return strings.Compare(n.name, name) }

// apply takes in a sample and returns the name of the node that made room for it, or "".
func (t *nodeTable) apply(s *schemas.Sample, storedAt time.Time) (evicted string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byName[s.Node]
	if n == nil {
		if len(t.sorted) >= maxNodes {
			evicted = t.evict()
		}
		n = &node{name: strings.Clone(s.Node)}
		n.place = t.heard.PushBack(n)
		t.byName[n.name] = n
		i, _ := slices.BinarySearchFunc(t.sorted, n.name, compareName)
		t.sorted = slices.Insert(t.sorted, i, n)
	}

	n.sample, n.storedAt = s, storedAt
	n.recent.add(s.At, s.CPURatio, s.IOWaitRatio)
	t.heard.MoveToBack(n.place)
	return evicted
}

// evict drops the node that was silent longest and returns its name. t.mu is held.
func (t *nodeTable) evict() string {
	n := t.heard.Remove(t.heard.Front()).(*node)
	delete(t.byName, n.name)
	i, _ := slices.BinarySearchFunc(t.sorted, n.name, compareName)
	t.sorted = slices.Delete(t.sorted, i, i+1)
	return n.name
}

func (t *nodeTable) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.sorted)
}

// nodeQuery says which nodes to list.
type nodeQuery struct {
	names  map[string]bool // exact names; nil: all
	search string          // part of the name; "": all
	live   bool            // only live nodes
	byLoad bool            // sorted by CPU ratio, the highest first; else by name
	after  string          // name of the last node of the previous page; "": the first page
	limit  int             // nodes on a page
	recent time.Duration   // length of the recent points; 0: none
}

func (q *nodeQuery) matches(n *node) bool {
	return (q.names == nil || q.names[n.name]) && strings.Contains(n.name, q.search)
}

// rankedNode is a node with the sort key that it had when it was found.
type rankedNode struct {
	*node
	load float64
}

// list returns a page of nodes. It fails if the pages are sorted by load and after names
// no node.
func (t *nodeTable) list(q *nodeQuery, now time.Time) (NodeList, error) {
	l := NodeList{Nodes: []NodeStatus{}}
	found, err := t.find(q, now, &l)
	if err != nil {
		return l, err
	}

	if len(found) > q.limit {
		found = found[:q.limit]
		l.Next = found[q.limit-1].name
	}

	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, n := range found {
		l.Nodes = append(l.Nodes, n.status(now, q.recent))
	}
	return l, nil
}

// find returns the nodes of the page that follows after, and one more if there is one. It
// counts all that match.
func (t *nodeTable) find(q *nodeQuery, now time.Time, l *NodeList) ([]rankedNode, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var last rankedNode
	if q.byLoad && q.after != "" {
		n := t.byName[q.after]
		if n == nil {
			return nil, schemas.Invalid("after", "no node %s is known now; begin with the first page", q.after)
		}
		last = rankedNode{n, n.load()}
	}

	var found []rankedNode
	for _, n := range t.sorted {
		if !q.matches(n) {
			continue
		}
		live := n.live(now)
		if q.live && !live {
			continue
		}
		l.Total++
		if live {
			l.Live++
		}
		switch r := (rankedNode{n, n.load()}); {
		case q.byLoad && (last.node == nil || compareLoad(r, last) > 0):
			found = insertRanked(found, r, q.limit+1)
		case !q.byLoad && n.name > q.after && len(found) <= q.limit:
			found = append(found, r)
		}
	}
	return found, nil
}

// insertRanked keeps the first most nodes in order of their load.
func insertRanked(found []rankedNode, r rankedNode, most int) []rankedNode {
	if len(found) == most {
		if compareLoad(r, found[most-1]) >= 0 {
			return found
		}
		found = found[:most-1]
	}
	i, _ := slices.BinarySearchFunc(found, r, compareLoad)
	return slices.Insert(found, i, r)
}

// compareLoad sorts by load, the highest first, then by name.
func compareLoad(a, b rankedNode) int {
	if a.load != b.load {
		return cmp.Compare(b.load, a.load)
	}
	return strings.Compare(a.name, b.name)
}

// load is the CPU ratio; nodes that do not measure it come after an idle one.
func (n *node) load() float64 {
	if n.sample.CPURatio == nil {
		return -1
	}
	return *n.sample.CPURatio
}

func (n *node) live(now time.Time) bool { return now.Sub(n.storedAt) <= n.patience() }

// patience is how long after a sample the node still counts as live.
func (n *node) patience() time.Duration {
	return max(silence, time.Duration(liveIntervals*n.sample.IntervalSeconds*float64(time.Second)))
}

// status copies what is known of the node, with the points of the time before now.
func (n *node) status(now time.Time, recent time.Duration) NodeStatus {
	s := NodeStatus{
		Node:            n.name,
		Live:            n.live(now),
		AgeSeconds:      max(0, now.Sub(n.storedAt)).Seconds(),
		PatienceSeconds: n.patience().Seconds(),
		Sample:          *n.sample,
	}
	if recent > 0 {
		s.Recent = n.recent.since(now.Add(-recent))
	}
	return s
}

// applyNode takes a record of NODE into the table. Only the follower of NODE calls it.
func (g *Gateway) applyNode(r bus.Record) {
	s, ok := r.Event.(*schemas.Sample)
	if !ok {
		return
	}
	if evicted := g.nodes.apply(s, r.StoredAt); evicted != "" {
		g.metrics.nodesEvicted.Inc()
		g.nodesFull.Do(func() {
			g.log.Warn("more nodes than are shown; the one that was silent longest makes room",
				"nodes", maxNodes, "first_evicted", evicted)
		})
	}
	g.metrics.nodes.Set(float64(g.nodes.size()))
}
