package schemas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// KeyShardMaps is the key of the ShardMaps in the bucket INTENTS.
const KeyShardMaps = "shard-maps"

// ShardMaps are the maps of the ClickHouse clusters to which a log is written, by the database of
// their readers. There are two while the number of shards is changed.
type ShardMaps map[string]*ShardMap

// ShardMap says on which servers of a ClickHouse cluster a row is stored. It does not change: other
// shards or weights are those of another map, whose tables are in databases of their own.
type ShardMap struct {
	Cluster  string  `json:"cluster"`  // name in system.clusters
	Database string  `json:"database"` // with the distributed tables, for readers
	Shards   []Shard `json:"shards"`   // in the order of system.clusters
}

// Shard is a group of servers that hold the same rows.
type Shard struct {
	Weight   uint32   `json:"weight"`   // share of the hashes, relative to the other shards
	Replicas []string `json:"replicas"` // host:port of the native protocol
	Macro    string   `json:"macro"`    // value of the macro shard; "" if the servers have none
}

// LocalDatabase is the database with the rows of one shard, on each of its servers.
func (m *ShardMap) LocalDatabase() string { return m.Database + "_local" }

// IsReplicated reports whether any shard has replicas. Its tables then are replicated.
func (m *ShardMap) IsReplicated() bool {
	return slices.ContainsFunc(m.Shards, func(s Shard) bool { return len(s.Replicas) > 1 })
}

// Validate checks a map that was read from a server. A server that is listed twice would hold the
// rows of two shards in one table.
func (m *ShardMap) Validate() error {
	if len(m.Shards) == 0 {
		return errors.New("no shards")
	}
	macros, servers := make(map[string]bool), make(map[string]bool)
	for i, s := range m.Shards {
		if s.Weight == 0 || len(s.Replicas) == 0 {
			return fmt.Errorf("shard %d: weight %d and %d replicas, want at least 1 of each",
				i+1, s.Weight, len(s.Replicas))
		}
		if m.IsReplicated() && (s.Macro == "" || macros[s.Macro]) {
			return fmt.Errorf("shard %d: macro shard is %q, want another value for each shard",
				i+1, s.Macro)
		}
		macros[s.Macro] = true
		for _, server := range s.Replicas {
			if servers[server] {
				return fmt.Errorf("shard %d: server %s is listed twice", i+1, server)
			}
			servers[server] = true
		}
	}
	return nil
}

// Durable returns the durable of a stream with the name of the writer of one shard, counted from 0.
// The intent and the lease of the writer have this name, too.
func (m *ShardMap) Durable(d Durable, shard int) Durable {
	d.Name = fmt.Sprintf("%s-%s-s%d", d.Name, m.Database, shard+1)
	return d
}

// Durables returns the durables of the writers of all shards.
func (m *ShardMap) Durables() (all []Durable) {
	for shard := range m.Shards {
		for _, d := range StoreDurables() {
			all = append(all, m.Durable(d, shard))
		}
	}
	return all
}

// Difference describes how the shards of another map differ, or returns "".
func (m *ShardMap) Difference(other *ShardMap) string {
	switch {
	case m.Cluster != other.Cluster:
		return fmt.Sprintf("cluster %s instead of %s", other.Cluster, m.Cluster)
	case len(m.Shards) != len(other.Shards):
		return fmt.Sprintf("%d shards instead of %d", len(other.Shards), len(m.Shards))
	}
	for i, s := range m.Shards {
		o := other.Shards[i]
		switch {
		case s.Weight != o.Weight:
			return fmt.Sprintf("shard %d has weight %d instead of %d", i+1, o.Weight, s.Weight)
		case !slices.Equal(s.Replicas, o.Replicas):
			return fmt.Sprintf("shard %d is on %s instead of %s", i+1,
				strings.Join(o.Replicas, ", "), strings.Join(s.Replicas, ", "))
		case s.Macro != o.Macro:
			return fmt.Sprintf("shard %d has macro %q instead of %q", i+1, o.Macro, s.Macro)
		}
	}
	return ""
}
