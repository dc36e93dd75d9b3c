package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"

	"courier/bus"
	"courier/schemas"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/go-faster/city"
	"github.com/prometheus/client_golang/prometheus"
)

// ErrShardsChanged reports that the servers of a cluster describe other shards than the ones by
// which the tables are written.
var ErrShardsChanged = errors.New("the shards of the clickhouse cluster have changed")

// Cluster is a ClickHouse cluster with shards. The rows of each job, node and target are on one
// shard, in a local database. Distributed tables in the database of the readers cover all shards.
//
//	log ─► writer of shard 1 ─► courier_local on shard 1 ─┐
//	    ─► writer of shard 2 ─► courier_local on shard 2 ─┴─► courier on any server ─► readers
type Cluster struct {
	name     string
	bus      *bus.Bus
	entry    *Database // the database default on the servers of the URL
	readers  string    // name of the readers' database
	log      *slog.Logger
	reg      prometheus.Registerer
	options  Options
	shardMap *schemas.ShardMap
	shards   []*Database // by shard

	migrating sync.Mutex // serializes migrations by the writers of this process
	opened    []*Database
}

// database opens a database, which Close closes.
func (c *Cluster) database(
	like *Database, servers []string, name string, settings clickhouse.Settings,
	reg prometheus.Registerer,
) (*Database, error) {
	d, err := like.on(servers, name, settings, reg)
	if err == nil {
		c.opened = append(c.opened, d)
	}
	return d, err
}

// loadShardMap returns the recorded map if it describes the cluster, and records the first one.
func (c *Cluster) loadShardMap(ctx context.Context) (*schemas.ShardMap, error) {
	maps, revision, err := c.bus.ShardMaps(ctx)
	if err != nil {
		return nil, err
	}
	recorded := maps[c.readers]
	current, err := c.readShardMap(ctx, recorded)
	if err != nil {
		return nil, err
	}
	if recorded == nil {
		if err := c.checkReaders(ctx, current); err != nil {
			return nil, err
		}
		maps[c.readers] = current
		return current, c.bus.SetShardMaps(ctx, maps, revision)
	}
	if difference := recorded.Difference(current); difference != "" {
		return nil, fmt.Errorf("%w: %s: restore the configuration of the servers, or fill the tables of "+
			"another database (docs/howto/clickhouse-cluster.md): %w",
			ErrShardsChanged, difference, ErrRefused)
	}
	return recorded, nil
}

// checkReaders is Database.checkReaders for the readers' database on every server of a map.
func (c *Cluster) checkReaders(ctx context.Context, m *schemas.ShardMap) error {
	for _, s := range m.Shards {
		for _, server := range s.Replicas {
			err := c.entry.visit(server, m.Database, func(d *Database) error { return d.checkReaders(ctx) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// readShardMap reads the shards of the cluster from all its servers, which must agree. Of a server
// that is unavailable it takes the macro from the recorded map, if there is one.
func (c *Cluster) readShardMap(ctx context.Context, recorded *schemas.ShardMap) (*schemas.ShardMap, error) {
	m, err := c.shardsAt(ctx, c.entry)
	if err != nil {
		return nil, err
	}
	macros := make([]string, len(m.Shards))
	for i, s := range m.Shards {
		for replica, server := range s.Replicas {
			macro, err := c.checkServer(ctx, server, m)
			switch {
			case err == nil:
			case recorded == nil || i >= len(recorded.Shards) || errors.Is(err, ErrRefused):
				return nil, err
			default:
				c.log.Warn("server of the cluster is not available", "server", server, "error", err)
				macro = recorded.Shards[i].Macro
			}
			if replica > 0 && macro != macros[i] {
				return nil, fmt.Errorf("%w: %s has the macro shard %q, another replica of its shard %q: %w",
					ErrShardsChanged, server, macro, macros[i], ErrRefused)
			}
			macros[i] = macro
		}
	}
	for i, macro := range macros {
		m.Shards[i].Macro = macro
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrRefused)
	}
	return m, nil
}

// shardsAt returns the cluster's shards as one server describes them, without macros.
func (c *Cluster) shardsAt(ctx context.Context, d *Database) (*schemas.ShardMap, error) {
	var servers []struct {
		Shard  uint32 `ch:"shard_num"`
		Weight uint32 `ch:"shard_weight"`
		Host   string `ch:"host_name"`
		Port   uint16 `ch:"port"`
	}
	err := d.Query(ctx, &servers, "SELECT shard_num, shard_weight, host_name, port "+
		"FROM system.clusters WHERE cluster = ? ORDER BY shard_num, replica_num", c.name)
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%s has no cluster %s in its remote_servers: %w",
			d.address, c.name, ErrRefused)
	}
	m := &schemas.ShardMap{Cluster: c.name, Database: c.readers}
	last := uint32(0)
	for _, s := range servers {
		if s.Shard != last {
			m.Shards = append(m.Shards, schemas.Shard{Weight: s.Weight})
			last = s.Shard
		}
		own := &m.Shards[len(m.Shards)-1]
		address := net.JoinHostPort(s.Host, strconv.Itoa(int(s.Port)))
		own.Replicas = append(own.Replicas, address)
	}
	return m, nil
}

// checkServer returns the macro shard of a server, and an error if the server describes other
// shards than m, which has no macros.
func (c *Cluster) checkServer(
	ctx context.Context, server string, m *schemas.ShardMap,
) (macro string, err error) {
	err = c.entry.visit(server, "default", func(d *Database) error {
		own, err := c.shardsAt(ctx, d)
		if err != nil {
			return err
		}
		if difference := m.Difference(own); difference != "" {
			return fmt.Errorf("%w: the configuration of %s differs from the one of %s: %s: %w",
				ErrShardsChanged, server, c.entry.address, difference, ErrRefused)
		}
		macro, err = value[string](ctx, d,
			"SELECT max(substitution) FROM system.macros WHERE macro = 'shard'")
		return err
	})
	return macro, err
}

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
