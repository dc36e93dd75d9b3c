package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"courier/bus"
	"courier/schemas"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// OpenCluster waits until ctx ends for a server of the URL, and reads the named cluster's shards
// from its servers. The first call for a log and a database of readers, which is the one of the URL,
// records them in the log's key-value bucket. The error matches ErrShardsChanged if they differ from
// the recorded ones, ErrTablesDiffer if the database has tables of a single server, and ErrAddress if
// the options or the cluster's name are invalid.
func OpenCluster(
	ctx context.Context, b *bus.Bus, o Options, name string, log *slog.Logger,
	reg prometheus.Registerer,
) (*Cluster, error) {
	if !databaseName.MatchString(name) {
		return nil, fmt.Errorf("%w: the cluster name %.80q is not 1 to 64 letters, digits and _",
			ErrAddress, name)
	}
	given, err := Open(ctx, o, log, nil)
	if err != nil {
		return nil, err
	}
	defer given.Close()
	c := &Cluster{
		name: name, bus: b, log: log, reg: reg, options: o,
		readers: given.options.Auth.Database,
	}
	c.entry, err = c.database(given, given.options.Addr, "default", nil, nil)
	if err != nil {
		return nil, err
	}
	if err := c.join(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cluster %s: %w", name, err), c.Close())
	}
	return c, nil
}

func (c *Cluster) join(ctx context.Context) error {
	err := c.entry.retry(ctx, "read the shards", func(ctx context.Context) (err error) {
		c.shardMap, err = c.loadShardMap(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for i, s := range c.shardMap.Shards {
		var settings clickhouse.Settings
		if len(s.Replicas) > 1 {
			settings = replicaSettings
		}
		local := c.shardMap.LocalDatabase()
		d, err := c.database(c.entry, s.Replicas, local, settings, c.registerer(i))
		if err != nil {
			return err
		}
		d.shard = &shard{shards: c.shardMap, index: i}
		d.shard.migrate = func(ctx context.Context) error {
			if c.isMigrated(ctx, s.Replicas) {
				return nil // its writers need not wait for the servers of the other shards
			}
			return c.migrateServers(ctx)
		}
		c.shards = append(c.shards, d)
	}
	return nil
}

func (c *Cluster) registerer(shard int) prometheus.Registerer {
	if c.reg == nil {
		return nil
	}
	labels := prometheus.Labels{"shard": strconv.Itoa(shard + 1)}
	return prometheus.WrapRegistererWith(labels, c.reg)
}

// Close closes all connections.
func (c *Cluster) Close() error {
	var failures []error
	for _, d := range c.opened {
		failures = append(failures, d.Close())
	}
	return errors.Join(failures...)
}

// Migrate is Database.Migrate for the servers of the cluster. If a server has all migrations
// already, it does not wait for the others. Otherwise it waits for one server of each shard; Run
// migrates further replicas when they are available.
func (c *Cluster) Migrate(ctx context.Context) error {
	isMigrated := func(s schemas.Shard) bool { return c.isMigrated(ctx, s.Replicas) }
	if slices.ContainsFunc(c.shardMap.Shards, isMigrated) {
		return nil
	}
	return c.migrateServers(ctx)
}

// Run is Store.Run for every shard: each has writers of its own, so that a shard that is
// unavailable does not delay the others.
func (c *Cluster) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := make([]error, len(c.shards))
	var all sync.WaitGroup
	for i, d := range c.shards {
		log := c.log.With("shard", i+1)
		s := New(c.bus, d, log, c.registerer(i), c.options)
		all.Go(func() {
			defer cancel()
			if err := s.Run(ctx); err != nil {
				failures[i] = fmt.Errorf("shard %d: %w", i+1, err)
			}
		})
	}
	all.Go(func() { c.migrateReplicas(ctx) })
	all.Wait()
	return errors.Join(failures...)
}

// Verify compares the log with the tables of every shard; see the function Verify.
func (c *Cluster) Verify(ctx context.Context, o VerifyOptions) (*Report, error) {
	var streams []*StreamReport
	for i, d := range c.shards {
		r, err := Verify(ctx, c.bus, d, o)
		if err != nil {
			return nil, fmt.Errorf("shard %d: %w", i+1, err)
		}
		streams = append(streams, r.Streams...)
	}
	return newReport(streams), nil
}

// Rebuild restores the tables of every shard from the log, one shard after the other; see the
// function Rebuild.
func (c *Cluster) Rebuild(ctx context.Context, o RebuildOptions) error {
	for i, d := range c.shards {
		if err := Rebuild(ctx, c.bus, d, c.log, o); err != nil {
			return fmt.Errorf("shard %d: %w", i+1, err)
		}
	}
	return nil
}
