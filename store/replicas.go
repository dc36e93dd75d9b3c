package store

import (
	"context"
	"errors"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// replicaSettings are the settings of all statements in a shard with several replicas. An insert
// succeeds when most replicas have it, so that it survives the loss of one, and a lookup on any
// replica sees all of these inserts. Otherwise an insert fails with TOO_FEW_LIVE_REPLICAS (285),
// UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE (286) or UNKNOWN_STATUS_OF_INSERT (319), and the store
// repeats the same batch with the same token.
var replicaSettings = clickhouse.Settings{
	"insert_quorum":                 "auto",
	"insert_quorum_parallel":        0,
	"insert_quorum_timeout":         10_000, // ms; by default ten minutes, also if the Keeper restarts
	"select_sequential_consistency": 1,
}

// settled returns a database that sees every row which any replica of the shard has: it is on one
// server, which has fetched all parts of the others and which refuse (if not nil) accepts. On a server
// without replicas it is d itself. Call end after the last statement.
func (d *Database) settled(
	ctx context.Context, refuse func(*Database) error,
) (s *Database, end func(), err error) {
	if !d.hasReplicas() {
		return d, func() {}, nil
	}
	var failures []error
	for _, server := range d.options.Addr {
		s, err := d.on([]string{server}, d.options.Auth.Database, settledSettings, nil)
		if err != nil {
			return nil, nil, err
		}
		s.shard, s.metrics, s.isReplica = d.shard, d.metrics, true
		err = s.fetchParts(ctx)
		if err == nil && refuse != nil {
			err = refuse(s)
		}
		if err == nil {
			return s, func() { _ = s.Close() }, nil // its statements have ended
		}
		failures = append(failures, err, s.Close())
		if errors.Is(err, ErrRefused) || ctx.Err() != nil {
			break
		}
	}
	return nil, nil, errors.Join(failures...)
}

// settledSettings differ from replicaSettings. The server has what the others have, so no query needs
// sequential consistency. A deletion waits for its own server only, because another one may be down.
var settledSettings = clickhouse.Settings{
	"select_sequential_consistency": 0,
	"lightweight_deletes_sync":      1,
}

func (d *Database) hasReplicas() bool { return d.shard != nil && len(d.options.Addr) > 1 }

// fetchParts waits until the server has the parts that the other replicas have, except positions,
// which a lost server may have alone; see recordPosition. A wait without an end would stop the
// writers of a shard that can still write.
//
// ClickHouse waits for five minutes by default, also after the client has given up, and a statement
// that ends the wait has no effect before that.
func (d *Database) fetchParts(ctx context.Context) error {
	tables, err := d.replicatedTables(ctx)
	if err != nil {
		return err
	}
	settings := clickhouse.Settings{"receive_timeout": max(1, int(d.timeout.Seconds()))}
	for _, name := range tables {
		if name == positionTable {
			continue
		}
		ctx, running := d.begin(ctx, "wait for parts", settings)
		err := running.end(d.conn.Exec(ctx, "SYSTEM SYNC REPLICA "+name+" LIGHTWEIGHT"))
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *Database) replicatedTables(ctx context.Context) ([]string, error) {
	return values[string](ctx, d,
		"SELECT table FROM system.replicas WHERE database = currentDatabase() ORDER BY table")
}
