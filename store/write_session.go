package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// writerKey is the context key of the query ID prefix of a stream's writer.
type writerKey struct{}

// asWriter marks the statements of a context as statements of the writer of a stream: their
// query IDs get a common prefix.
func (d *Database) asWriter(ctx context.Context, stream string) context.Context {
	prefix := fmt.Sprintf("courier/%s/%s/", d.options.Auth.Database, stream)
	return context.WithValue(ctx, writerKey{}, prefix)
}

// withQueryID gives a writer's statement its query ID.
func withQueryID(ctx context.Context) context.Context {
	if prefix, ok := ctx.Value(writerKey{}).(string); ok {
		return clickhouse.Context(ctx, clickhouse.WithQueryID(prefix+rand.Text()))
	}
	return ctx
}

// stopWriter ends the running statements of the writer of ctx's stream. They may belong to a
// previous writer that crashed or lost its lease, or to this writer after a timeout or a lost
// connection. If an insert continued after its table and before its roll-ups, a roll-up that is
// rebuilt in the meantime would count its rows twice.
func (d *Database) stopWriter(ctx context.Context) error {
	prefix, ok := ctx.Value(writerKey{}).(string)
	if !ok {
		return nil // not a writer
	}
	statement := fmt.Sprintf("KILL QUERY WHERE startsWith(query_id, '%s') SYNC", prefix)
	ctx = context.WithValue(ctx, writerKey{}, nil)
	if !d.hasReplicas() {
		return d.exec(ctx, "stop the previous writer", statement)
	}
	return d.execOnReplicas(ctx, "stop the previous writer", statement)
}

// execOnReplicas executes a statement on every replica of a shard. It fails if no replica is
// available, or one that is available refuses the statement.
func (d *Database) execOnReplicas(ctx context.Context, kind, statement string) error {
	var failures []error
	for _, server := range d.options.Addr {
		replica, err := d.on([]string{server}, "default", nil, nil)
		if err == nil {
			err = replica.exec(ctx, kind, statement)
			_ = replica.Close() // the statement has ended
		}
		if errors.Is(err, ErrRefused) {
			return err
		}
		if err != nil {
			d.log.Warn("replica is not available", "action", kind, "server", server, "error", err)
			failures = append(failures, err)
		}
	}
	if len(failures) == len(d.options.Addr) {
		return errors.Join(failures...)
	}
	return nil
}
