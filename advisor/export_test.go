package advisor

import (
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// SharesOf returns the elastic jobs of a node.
func SharesOf(c *cluster.Cluster, node string, now time.Time) *NodeShares {
	return sharesOf(c, node, now)
}

// Admit is SharedNodes.Admit for one node.
func (s *NodeShares) Admit(q *decide.Question, r decide.Regressors, now time.Time) *schemas.Advice {
	return SharedNodes{s}.Admit(q, r, now)
}

// MakeRoom is SharedNodes.MakeRoom for one node.
func (s *NodeShares) MakeRoom(q *decide.Question, r decide.Regressors, now time.Time) *schemas.Advice {
	return SharedNodes{s}.MakeRoom(q, r, now)
}

// CanWait is SharedNodes.CanWait for one node.
func (s *NodeShares) CanWait(q *decide.Question, r decide.Regressors, before time.Duration, now time.Time) bool {
	return SharedNodes{s}.CanWait(q, r, before, now)
}
