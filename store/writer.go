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

// stopWriter ends what ClickHouse still does for a writer before, which was killed or
// lost its lease. An insert that goes on would meet the rows that this writer makes
// of the same batch, and count twice in a roll-up that is made again meanwhile.
func (d *Database) stopWriter(ctx context.Context) error {
	prefix, _ := ctx.Value(writerKey{}).(string)
	return d.exec(context.WithValue(ctx, writerKey{}, nil), "stop the writer before", fmt.Sprintf("KILL QUERY WHERE startsWith(query_id, '%s') SYNC", prefix))
}
