package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

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
// old map is running. Reshard waits for other calls, repairs and rebuilds, until ctx ends.
func Reshard(
	ctx context.Context, b *bus.Bus, o Options, name string, log *slog.Logger,
) error {
	c, err := newCluster(ctx, b, o, name, log, nil)
	if err != nil {
		return err
	}
	defer c.Close()

	// Another call would drop the new databases, also after their map was recorded.
	if err := holdRepair(ctx, b, c.reshard); err != nil {
		return fmt.Errorf("reshard cluster %s: %w", name, err)
	}
	return nil
}

// reshard is Reshard while no other process reshards or repairs.
func (c *Cluster) reshard(ctx context.Context) error {
	old, revision, err := c.bus.ShardMap(ctx)
	if err != nil {
		return err
	}
	next, err := c.nextShardMap(ctx, old)
	if err != nil || next == nil {
		return err
	}
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
	if err := c.copyTables(ctx, next, from, to); err != nil {
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

// nextShardMap returns the map that follows the recorded one, or nil if this describes the cluster.
func (c *Cluster) nextShardMap(
	ctx context.Context, old *schemas.ShardMap,
) (*schemas.ShardMap, error) {
	if old == nil {
		return nil, errors.New("no shard map is recorded: start a store")
	}
	next, err := c.readShardMap(ctx, nil)
	if err != nil {
		return nil, err
	}
	difference := old.Difference(next)
	if difference == "" {
		return nil, nil
	}
	if old.Database != next.Database || old.Cluster != next.Cluster {
		return nil, fmt.Errorf("%w: %s", ErrShardsChanged, difference)
	}
	next.Version = old.Version + 1
	return next, nil
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

// copyTables fills new databases of the shards with the rows of the old ones, and compares their
// number and checksum.
func (c *Cluster) copyTables(
	ctx context.Context, next *schemas.ShardMap, from, to []*Database,
) error {
	if err := c.createEmpty(ctx, next); err != nil {
		return err
	}
	from, endReads, err := settledShards(ctx, from)
	if err != nil {
		return err
	}
	defer endReads()
	copies, endCopies, err := settledShards(ctx, to)
	if err != nil {
		return err
	}
	defer endCopies()
	ttls, err := longestTTLs(ctx, from)
	if err != nil {
		return err
	}
	for _, d := range copies {
		if err := d.setTTLs(ctx, ttls); err != nil {
			return err
		}
	}
	for _, t := range copiedTables() {
		t.ttl = ttls[t.name]
		sum, err := t.copyRows(ctx, from, copies)
		if err != nil {
			return fmt.Errorf("copy %s: %w", t.name, err)
		}
		c.log.Info("table copied", "table", t.name, "rows", sum.Rows)
	}
	return fetchCopies(ctx, to)
}

// fetchCopies waits until each replica of the shards has the parts of the others: after the switch,
// readers may ask any of them.
func fetchCopies(ctx context.Context, shards []*Database) error {
	for _, d := range shards {
		for _, server := range d.options.Addr {
			if err := d.fetchPartsAt(ctx, server); err != nil {
				return err
			}
		}
	}
	return nil
}

// createEmpty creates the databases of a map's shards, in place of those that an interrupted call
// has left.
func (c *Cluster) createEmpty(ctx context.Context, next *schemas.ShardMap) error {
	for _, s := range next.Shards {
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

// copiedTable is a table or roll-up that Reshard copies.
type copiedTable struct {
	name     string
	key      string // column that determines the shard
	identity string // expression that distinguishes rows
	ttl      string // of the new table; "": none
}

// copiedTables returns all tables and roll-ups.
func copiedTables() (all []copiedTable) {
	for _, t := range tables() {
		all = append(all, copiedTable{name: t.name, key: t.key, identity: "event_id"})
		for _, u := range rollUps[t.name] {
			identity := "toString(" + u.key + ")"
			all = append(all, copiedTable{name: u.name, key: t.key, identity: identity})
		}
	}
	return all
}

// tableSum is the number and checksum of the distinct rows of a table.
type tableSum struct {
	Rows     uint64 `ch:"all_rows"`
	Checksum uint64 `ch:"checksum"`
}

// comparedMargin is longer than the copy of a table takes. ClickHouse may delete rows that expire in
// this time from the old or the new table, so they are copied, but not compared.
const comparedMargin = 24 * time.Hour

// copyRows copies the rows of the table to the new shards, and returns their sum. The error reports
// sums that differ.
func (t *copiedTable) copyRows(
	ctx context.Context, from, to []*Database,
) (sum tableSum, err error) {
	keptUntil := time.Now().Add(comparedMargin)
	for _, d := range to {
		if err := d.copyTable(ctx, *t, from); err != nil {
			return sum, err
		}
	}
	before, err := t.count(ctx, from, keptUntil)
	if err != nil {
		return sum, err
	}
	if sum, err = t.count(ctx, to, keptUntil); err == nil && sum != before {
		err = fmt.Errorf("%+v instead of %+v", sum, before)
	}
	return sum, err
}

// count sums the distinct rows of a table on all shards that do not expire until a time.
func (t *copiedTable) count(
	ctx context.Context, shards []*Database, keptUntil time.Time,
) (sum tableSum, err error) {
	isKept := "1"
	if t.ttl != "" {
		isKept = fmt.Sprintf("(%s) > toDateTime(%d)", t.ttl, keptUntil.Unix())
	}
	for _, d := range shards {
		var rows []tableSum
		err := d.Query(ctx, &rows, fmt.Sprintf(
			"SELECT count() AS all_rows, sum(hash) AS checksum "+
				"FROM (SELECT DISTINCT halfMD5(%s) AS hash FROM %s WHERE %s)",
			t.identity, t.name, isKept))
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

// copyTable adds the rows of the old shards that belong to the shard of d, without its roll-ups,
// which are copied themselves: they may be older than the rows of their table.
func (d *Database) copyTable(ctx context.Context, t copiedTable, from []*Database) error {
	return d.attachSideTable(ctx, t.name, "copied", func(side string) error {
		for _, source := range from {
			statement := fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE %s "+
				"SETTINGS max_partitions_per_insert_block = 0, insert_deduplicate = 0",
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
