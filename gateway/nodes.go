package gateway

import (
	"slices"
	"strings"
	"sync"
	"time"

	"courier/schemas"
)

// Bounds of the node table.
const (
	maxNodes      = 16_384           // a new node evicts the node with the oldest sample
	minLiveAge    = 10 * time.Second // minimum time that a node is live after a sample
	liveIntervals = 3                // minimum number of sampling intervals that a node is live
)

// NodeList is the response of GET /api/v1/nodes.
type NodeList struct {
	Nodes []NodeStatus `json:"nodes"`          // a page, by name
	Total int          `json:"total"`          // number of matching nodes on all pages
	Live  int          `json:"live"`           // number of live nodes among them
	Next  string       `json:"next,omitempty"` // parameter after of the next page; absent on the last
}

// NodeStatus describes a node.
type NodeStatus struct {
	Node string `json:"node"`
	// Live reports whether age_seconds is at most patience_seconds.
	Live bool `json:"live"`
	// AgeSeconds is the time since the last sample was stored, by the clocks of NATS and gateway.
	AgeSeconds float64 `json:"age_seconds"`
	// PatienceSeconds is the maximum age of the last sample of a live node.
	PatienceSeconds float64 `json:"patience_seconds"`
	// ClockLagSeconds is how far the node's clock is behind that of NATS, negative if it is ahead;
	// absent below a second.
	ClockLagSeconds *float64 `json:"clock_lag_seconds,omitempty"`
	// Sample is the last sample.
	Sample schemas.Sample `json:"sample"`
	// Recent holds the points of the requested time, oldest first.
	Recent []Point `json:"recent,omitempty"`
}

// nodeTable holds the last sample and the recent points of each node. Readers get copies.
type nodeTable struct {
	mu     sync.RWMutex
	byName map[string]*tableNode
}

// tableNode is an entry of the table, whose lock guards the fields.
type tableNode struct {
	name     string
	sample   *schemas.Sample // immutable: other readers of the event share it
	storedAt time.Time       // of the sample
	clock    clockLag
	recent   recentPoints
}

func newNodeTable() *nodeTable { return &nodeTable{byName: map[string]*tableNode{}} }

// apply adds a sample and returns the name of the node that was evicted for it, or "".
func (t *nodeTable) apply(s *schemas.Sample, storedAt time.Time) (evicted string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byName[s.Node]
	if n == nil {
		if len(t.byName) >= maxNodes {
			evicted = t.evict()
		}
		n = &tableNode{name: strings.Clone(s.Node)}
		t.byName[n.name] = n
	}

	n.sample, n.storedAt = s, storedAt
	n.clock.add(storedAt.Sub(s.At), storedAt)
	n.recent.add(s.At, s.CPURatio, s.IOWaitRatio)
	return evicted
}

// evict deletes the node with the oldest sample and returns its name. The caller holds t.mu.
func (t *nodeTable) evict() string {
	var oldest *tableNode
	for _, n := range t.byName {
		if oldest == nil || n.storedAt.Before(oldest.storedAt) {
			oldest = n
		}
	}
	delete(t.byName, oldest.name)
	return oldest.name
}

// skew returns how far the clock of any live node is ahead of that of NATS, and behind it. Both are at
// least 0.
func (t *nodeTable) skew(now time.Time) (ahead, behind time.Duration) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, n := range t.byName {
		if n.live(now) {
			ahead, behind = max(ahead, -n.clock.lag()), max(behind, n.clock.lag())
		}
	}
	return ahead, behind
}

// nodeQuery selects the nodes to list.
type nodeQuery struct {
	names  map[string]bool // exact names; nil: all
	search string          // part of the name; "": all
	live   bool            // only live nodes
	after  string          // name of the last node of the previous page; "": first page
	limit  int             // nodes per page
	recent time.Duration   // time covered by the recent points; 0: none
}

func (q *nodeQuery) matches(n *tableNode) bool {
	return (q.names == nil || q.names[n.name]) && strings.Contains(n.name, q.search)
}

// list returns a page of nodes, by name.
func (t *nodeTable) list(q *nodeQuery, now time.Time) NodeList {
	t.mu.RLock()
	defer t.mu.RUnlock()
	l := NodeList{Nodes: []NodeStatus{}}
	var found []*tableNode // after the last one
	for _, n := range t.byName {
		live := n.live(now)
		if !q.matches(n) || q.live && !live {
			continue
		}
		l.Total++
		if live {
			l.Live++
		}
		if n.name > q.after {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b *tableNode) int { return strings.Compare(a.name, b.name) })
	if len(found) > q.limit {
		found = found[:q.limit]
		l.Next = found[q.limit-1].name
	}
	for _, n := range found {
		l.Nodes = append(l.Nodes, n.status(now, q.recent))
	}
	return l
}

func (n *tableNode) live(now time.Time) bool { return now.Sub(n.storedAt) <= n.patience() }

// patience returns the maximum age of the last sample of a live node.
func (n *tableNode) patience() time.Duration {
	intervals := liveIntervals * n.sample.IntervalSeconds * float64(time.Second)
	return max(minLiveAge, time.Duration(intervals))
}

// status returns the status of the node with the points of the given time before now.
func (n *tableNode) status(now time.Time, recent time.Duration) NodeStatus {
	s := NodeStatus{
		Node: n.name, Live: n.live(now), AgeSeconds: max(0, now.Sub(n.storedAt)).Seconds(),
		PatienceSeconds: n.patience().Seconds(), ClockLagSeconds: n.clock.seconds(), Sample: *n.sample,
	}
	if recent > 0 {
		s.Recent = n.recent.since(now.Add(-recent))
	}
	return s
}
