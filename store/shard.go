package store

import (
	"context"
	"strings"

	"courier/schemas"

	"github.com/go-faster/city"
)

// shard is the part of all rows that one shard of a cluster holds. nil stands for all rows, on a
// single server.
type shard struct {
	shards  *schemas.ShardMap
	index   int // from 0
	migrate func(context.Context) error
}

// shardOf returns the index of the shard for the rows of a key: a job, node or target. It is the
// shard that a Distributed table with the sharding key cityHash64(key) selects.
func shardOf(m *schemas.ShardMap, key string) int {
	slots := uint64(0)
	for _, s := range m.Shards {
		slots += uint64(s.Weight)
	}
	slot := city.CH64([]byte(key)) % slots
	for i, s := range m.Shards {
		if slot < uint64(s.Weight) {
			return i
		}
		slot -= uint64(s.Weight)
	}
	panic("slot beyond the sum of the weights")
}

// owns reports whether the rows of a subject's events belong to the shard. Their key is the second
// token of the subject.
func (s *shard) owns(subject string) bool {
	if s == nil {
		return true
	}
	_, rest, _ := strings.Cut(subject, ".")
	key, _, _ := strings.Cut(rest, ".")
	return shardOf(s.shards, key) == s.index
}

func (s *shard) durables() []schemas.Durable {
	all := schemas.StoreDurables()
	if s == nil {
		return all
	}
	for i := range all {
		all[i] = s.shards.Durable(all[i], s.index)
	}
	return all
}

// number counts from 1. It is 0 on a single server.
func (s *shard) number() int {
	if s == nil {
		return 0
	}
	return s.index + 1
}
