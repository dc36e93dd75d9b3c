package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"courier/bus"
	"courier/schemas"
)

// Reshard copies the tables of a cluster to its current shards, and records these as the next
// version of the shard map. It returns nil at once if the recorded map describes the cluster.
//
//	writers of the old map: until the end of the log ─► rows copied by hash ─► counts compared
//	─► writers of the new map begin after the copied rows ─► map recorded ─► readers switched
//
// The old servers must be available, also the ones that have left the cluster. Their databases
// stay. Before the map is recorded, a crash has no effect, and another call begins again. After it,
// a store completes the switch when it starts. The error matches ErrStoreRunning if a store of the
// old map is running.
func Reshard(
	ctx context.Context, b *bus.Bus, o Options, name string, log *slog.Logger,
) error {
	c, err := newCluster(ctx, b, o, name, log, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	// Another call would drop the databases that this one fills.
	err = b.Hold(ctx, schemas.LeaseRepair, schemas.LeaseTTL, c.reshard)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("reshard cluster %s: %w", name, err)
	}
	return nil
}

func (c *Cluster) reshard(ctx context.Context) error {
	old, revision, err := c.bus.ShardMap(ctx)
	if err != nil {
		return err
	}
	if old == nil {
		return errors.New("no shard map is recorded: start a store")
	}
	next, err := c.readShardMap(ctx, nil)
	if err != nil {
		return err
	}
	if old.Difference(next) == "" {
		return nil
	}
	if old.Database != next.Database || old.Cluster != next.Cluster {
		return fmt.Errorf("%w: %s", ErrShardsChanged, old.Difference(next))
	}
	next.Version = old.Version + 1

	from, err := c.openShards(old)
	if err != nil {
		return err
	}
	to, err := c.openShards(next)
	if err != nil {
		return err
	}
	if err := c.finishWriting(ctx, from); err != nil {
		return err
	}
	if err := c.createTables(ctx, next); err != nil {
		return err
	}
	if err := copyAll(ctx, c.log, from, to); err != nil {
		return err
	}
	if err := c.startAfterCopy(ctx, from, to); err != nil {
		return err
	}
	if err := c.bus.SetShardMap(ctx, next, revision); err != nil {
		return err
	}
	c.log.Info("shard map changed", "version", next.Version, "shards", len(next.Shards))
	return c.migrateMap(ctx, next)
}

// finishWriting writes the log to the shards up to its current end.
func (c *Cluster) finishWriting(ctx context.Context, shards []*Database) error {
	for _, d := range shards {
		last := make(map[string]uint64)
		for _, durable := range d.shard.durables() {
			hasReader, err := c.bus.HasReader(ctx, durable)
			if err != nil {
				return err
			}
			if hasReader {
				return fmt.Errorf("%s: %w", durable.Name, ErrStoreRunning)
			}
			if last[durable.Stream], err = c.bus.LastSequence(ctx, durable.Stream); err != nil {
				return err
			}
		}
		v := NewVerifier(c.bus, d, c.log, VerifyOptions{})
		r := &rebuilder{Verifier: v, written: d, options: RebuildOptions{
			MaxMessages: c.options.MaxMessages,
			Progress:    func(string, uint64, uint64) {},
		}}
		if err := r.writeUntil(ctx, last, d.shard.tokenPrefix()); err != nil {
			return err
		}
	}
	return nil
}

// createTables creates the tables of a new map, without rows.
func (c *Cluster) createTables(ctx context.Context, next *schemas.ShardMap) error {
	for _, s := range next.Shards { // what an interrupted call has left
		for _, server := range s.Replicas {
			d, err := c.database(c.entry, []string{server}, "default", nil, nil)
			if err != nil {
				return err
			}
			drop := "DROP DATABASE IF EXISTS " + next.LocalDatabase() + " SYNC"
			if err := d.exec(ctx, "reshard", drop); err != nil {
				return err
			}
		}
	}
	return c.migrateLocal(ctx, next)
}

// copyAll fills the databases of new shards with the rows of old ones, and compares their number and
// checksum. Of each shard it uses the replica that has all rows; see settled.
func copyAll(ctx context.Context, log *slog.Logger, from, to []*Database) error {
	from, endFrom, err := settledAll(ctx, from)
	if err != nil {
		return err
	}
	defer endFrom()
	to, endTo, err := settledAll(ctx, to)
	if err != nil {
		return err
	}
	defer endTo()
	return copyTables(ctx, log, from, to)
}

// settledAll returns Database.settled of each shard.
func settledAll(
	ctx context.Context, shards []*Database,
) (all []*Database, end func(), err error) {
	var ends []func()
	end = func() {
		for _, f := range ends {
			f()
		}
	}
	for _, d := range shards {
		s, endOne, err := d.settled(ctx)
		if err != nil {
			end()
			return nil, nil, err
		}
		all, ends = append(all, s), append(ends, endOne)
	}
	return all, end, nil
}

func copyTables(ctx context.Context, log *slog.Logger, from, to []*Database) error {
	if err := copyRetentions(ctx, from, to); err != nil {
		return err
	}
	for _, t := range copiedTables() {
		for _, d := range to {
			if err := d.copyTable(ctx, t, from); err != nil {
				return fmt.Errorf("copy %s: %w", t.name, err)
			}
		}
		before, err := t.count(ctx, from)
		if err != nil {
			return err
		}
		after, err := t.count(ctx, to)
		if err != nil {
			return err
		}
		if before != after {
			return fmt.Errorf("copy %s: %+v instead of %+v", t.name, after, before)
		}
		log.Info("table copied", "table", t.name, "rows", after.Rows)
	}
	return nil
}

// copyRetentions gives the tables of new shards the retention of the old ones, before they have rows
// that another retention would delete.
func copyRetentions(ctx context.Context, from, to []*Database) error {
	wanted, err := from[0].retentionClauses(ctx)
	if err != nil {
		return err
	}
	for _, d := range from[1:] {
		other, err := d.retentionClauses(ctx)
		if err != nil {
			return err
		}
		if !maps.Equal(wanted, other) {
			return errors.New("the shards keep their rows for different times: " +
				"set one retention by courier store retention")
		}
	}
	for _, d := range to {
		have, err := d.retentionClauses(ctx)
		if err != nil {
			return err
		}
		for table, clause := range wanted {
			if have[table] == clause {
				continue
			}
			change := "REMOVE TTL"
			if clause != "" {
				change = "MODIFY TTL " + clause
			}
			if err := d.exec(ctx, "retention", "ALTER TABLE "+table+" "+change); err != nil {
				return fmt.Errorf("set the retention of %s: %w", table, err)
			}
		}
	}
	return nil
}

// copiedTable is a table or roll-up that Reshard copies.
type copiedTable struct {
	name     string
	key      string // column that determines the shard
	identity string // expression that distinguishes rows
}

// copiedTables returns all tables and roll-ups.
func copiedTables() (all []copiedTable) {
	for _, t := range tables() {
		all = append(all, copiedTable{t.name, t.key, "event_id"})
		for _, u := range rollUps[t.name] {
			all = append(all, copiedTable{u.name, t.key, "toString(" + u.key + ")"})
		}
	}
	return all
}

// tableSum is the number and checksum of the distinct rows of a table.
type tableSum struct {
	Rows     uint64 `ch:"all_rows"`
	Checksum uint64 `ch:"checksum"`
}

// count sums the distinct rows of a table on all shards.
func (t *copiedTable) count(ctx context.Context, shards []*Database) (sum tableSum, err error) {
	for _, d := range shards {
		var rows []tableSum
		err := d.Query(ctx, &rows, fmt.Sprintf("SELECT count() AS all_rows, sum(hash) AS checksum "+
			"FROM (SELECT DISTINCT halfMD5(%s) AS hash FROM %s)", t.identity, t.name))
		if err != nil {
			return sum, err
		}
		for _, r := range rows {
			sum.Rows += r.Rows
			sum.Checksum += r.Checksum
		}
	}
	return sum, nil
}

// copyTable adds the rows of other shards that belong to the shard of d, without its roll-ups,
// which are copied themselves: they may be older than the rows of their table.
func (d *Database) copyTable(ctx context.Context, t copiedTable, from []*Database) error {
	return d.attachSideTable(ctx, t.name, "copied", func(side string) error {
		for _, source := range from {
			statement := fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE %s "+
				"SETTINGS max_partitions_per_insert_block = 0, insert_deduplicate = 0, "+
				"select_sequential_consistency = 0",
				side, source.remote(t.name), d.shard.condition(t.key))
			if err := d.exec(ctx, "reshard "+t.name, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// remote is the SQL table function for a table of a database, on another server.
func (d *Database) remote(table string) string {
	function := "remote"
	if d.options.TLS != nil {
		function = "remoteSecure"
	}
	return fmt.Sprintf("%s(%s, %s, %s, %s, %s)", function,
		quoteSQL(strings.Join(d.options.Addr, "|")), quoteSQL(d.options.Auth.Database),
		quoteSQL(table), quoteSQL(d.options.Auth.Username), quoteSQL(d.options.Auth.Password))
}

// quoteSQL returns a string literal.
func quoteSQL(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// startAfterCopy makes the writers of the new shards begin after the copied rows. The writers of
// the old shards may have ended at different sequences. The range between these is handled like a
// batch that was interrupted: only missing rows are inserted.
func (c *Cluster) startAfterCopy(ctx context.Context, from, to []*Database) error {
	complete, last := make(map[string]uint64), make(map[string]uint64)
	for i, d := range from {
		for _, durable := range d.shard.durables() {
			b, err := c.bus.Backlog(ctx, durable)
			if err != nil {
				return err
			}
			stream := durable.Stream
			if i == 0 {
				complete[stream] = b.Done
			}
			complete[stream] = min(complete[stream], b.Done)
			last[stream] = max(last[stream], b.Done)
		}
	}
	for _, d := range to {
		for _, durable := range d.shard.durables() {
			stream := durable.Stream
			if err := c.bus.StartAfter(ctx, durable, complete[stream], last[stream]); err != nil {
				return err
			}
			if err := d.recordPosition(ctx, stream, complete[stream]); err != nil {
				return err
			}
		}
	}
	return nil
}
