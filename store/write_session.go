package store

import (
	"context"
	"crypto/rand"
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
	return d.exec(ctx, "stop the previous writer", statement)
}
