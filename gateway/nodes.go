package gateway

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Bounds of what is remembered of the nodes.
const (
	maxNodes      = 1024             // the one silent longest makes room
	recentPoints  = 300              // of each node: ten minutes at the default interval of 2 s
	silence       = 10 * time.Second // a node is live at least that long after a sample
	liveIntervals = 3                // and for that many of its intervals
)

// NodeList answers GET /api/v1/nodes.
type NodeList struct {
	Nodes []NodeStatus `json:"nodes"` // by name
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

// Point is what a sparkline needs of a sample. What was not measured is absent.
type Point struct {
	At          time.Time `json:"at"`
	CPURatio    *float64  `json:"cpu_ratio,omitempty"`     // 0 to 1
	IOWaitRatio *float64  `json:"io_wait_ratio,omitempty"` // 0 to 1
}

// cluster is the last of each node, by name. It is never changed: apply returns
// the next one.
type cluster map[string]node

type node struct {
	sample  schemas.Sample
	heardAt time.Time // when the sample was stored
	recent  []Point   // a window on a growing array; only the newest cluster appends
}

// apply returns the cluster after a sample.
func (c cluster) apply(s *schemas.Sample, storedAt time.Time) cluster {
	next := maps.Clone(c)
	if next == nil {
		next = cluster{}
	}
	recent := append(next[s.Node].recent, Point{At: s.At, CPURatio: s.CPURatio, IOWaitRatio: s.IOWaitRatio})
	if len(recent) > recentPoints {
		recent = recent[len(recent)-recentPoints:] // append moves the window to a new array when this one is full
	}
	next[s.Node] = node{sample: *s, heardAt: storedAt, recent: recent}
	if len(next) > maxNodes {
		delete(next, next.silentLongest())
	}
	return next
}

func (c cluster) silentLongest() string {
	return slices.MinFunc(slices.Collect(maps.Keys(c)), func(a, b string) int { return c[a].heardAt.Compare(c[b].heardAt) })
}

// list returns every node by name, with the points of the time before now.
func (c cluster) list(now time.Time, recent time.Duration) NodeList {
	l := NodeList{Nodes: []NodeStatus{}}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		n := c[name]
		age := max(0, now.Sub(n.heardAt))
		s := NodeStatus{Node: name, Live: age <= n.patience(), AgeSeconds: age.Seconds(), PatienceSeconds: n.patience().Seconds(), Sample: n.sample}
		for _, p := range n.recent {
			if recent > 0 && now.Sub(p.At) <= recent {
				s.Recent = append(s.Recent, p)
			}
		}
		l.Nodes = append(l.Nodes, s)
	}
	return l
}

// patience is how long after a sample the node still counts as live.
func (n node) patience() time.Duration {
	return max(silence, time.Duration(liveIntervals*n.sample.IntervalSeconds*float64(time.Second)))
}

// applyNode carries a record into the cluster. Only the follower of NODE calls it.
func (g *Gateway) applyNode(r bus.Record) {
	if s, ok := r.Event.(*schemas.Sample); ok {
		next := g.nodes.Load().apply(s, r.StoredAt)
		g.nodes.Store(&next)
	}
}

// listNodes answers with the last sample of each node.
func (g *Gateway) listNodes(w http.ResponseWriter, r *http.Request) error {
	query, err := readQuery(r, "recent_seconds")
	if err != nil {
		return err
	}
	seconds, err := readCount(query, "recent_seconds")
	if err != nil {
		return err
	}
	if seconds < 0 || seconds > 3600 {
		return schemas.Invalid("recent_seconds", "%d is not between 0 and 3600", seconds)
	}
	return writeJSON(w, http.StatusOK, g.nodes.Load().list(time.Now(), time.Duration(seconds)*time.Second))
}
