package advisor

import "time"

// WithDigests returns the regressors as the advisor uses them: with their digests computed once.
func (r Regressors) WithDigests() Regressors {
	r.digestByTarget = r.digests()
	return r
}

// SharesOf returns the elastic jobs of a node.
func (c *Cluster) SharesOf(node string, now time.Time) *NodeShares { return c.sharesOf(node, now) }
