package store

import (
	"testing"

	"courier/schemas"
)

// The shard of a key depends on nothing but the key and the weights.
func TestShard_OwnsSubjects(t *testing.T) {
	m := &schemas.ShardMap{Shards: []schemas.Shard{{Weight: 1}, {Weight: 1}}}
	for subject, owner := range map[string]int{
		"node.node-0.sample":          1,
		"node.node-1.sample":          0,
		"job.node-1.started":          0,
		"regressor.node-0.trained":    1,
		"node.node-1":                 0,
		"node.node-6.sample.trailing": 0,
	} {
		for i := range m.Shards {
			s := &shard{shards: m, index: i}
			if got := s.owns(subject); got != (i == owner) {
				t.Errorf("shard %d owns %s: %v, want shard %d to own it", i, subject, got, owner)
			}
		}
	}
	if !(*shard)(nil).owns("node.any.sample") {
		t.Error("a single server does not own a node")
	}
}
