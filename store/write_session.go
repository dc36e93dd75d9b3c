package store

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// writerKey is the context key of how the queries of a stream's writer are called.
type writerKey struct{}

// asWriter names the statements under a context those of the writer of a stream.
func (d *Database) asWriter(ctx context.Context, stream string) context.Context {
	return context.WithValue(ctx, writerKey{}, fmt.Sprintf("courier/%s/%s/", d.options.Auth.Database, stream))
}

// named gives a statement of a writer its name.
func named(ctx context.Context) context.Context {
	if prefix, is := ctx.Value(writerKey{}).(string); is {
		return clickhouse.Context(ctx, clickhouse.WithQueryID(prefix+rand.Text()))
	}
	return ctx
}

// stopWriter ends the statements that ClickHouse still runs for the writer of ctx's stream:
// those of a previous writer that was killed or lost its lease, and those that this writer
// has given up after a timeout or a lost connection. An insert that went on between a
// table and its roll-ups would be counted twice in a roll-up that is rebuilt meanwhile.
func (d *Database) stopWriter(ctx context.Context) error {
	prefix, is := ctx.Value(writerKey{}).(string)
	if !is {
		return nil // it writes no stream
	}
	statement := fmt.Sprintf("KILL QUERY WHERE startsWith(query_id, '%s') SYNC", prefix)
	return d.exec(context.WithValue(ctx, writerKey{}, nil), "stop the previous writer", statement)
}
