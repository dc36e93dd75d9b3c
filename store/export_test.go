package store

import (
	"context"
	"reflect"
	"slices"

	"courier/bus"
	"courier/schemas"
)

func (s *Store) Write(ctx context.Context, b bus.Batch) error {
	return s.writer.writeBatch(ctx, b)
}

// Follow consumes one stream with the given handler.
func (s *Store) Follow(ctx context.Context, d schemas.Durable, handle func(context.Context, bus.Batch) error) error {
	return s.consume(ctx, d, handle)
}

func ColumnNames(row any) []string { return columnNames(reflect.TypeOf(row)) }

// SetWindow sets the number of rows that a verifier compares at once.
func (o *VerifyOptions) SetWindow(rows uint64) { o.windowRows = rows }

// Insert inserts rows into a table without a token.
func (d *Database) Insert(ctx context.Context, name string, rows []any) error {
	return d.InsertAs(ctx, name, rows, "")
}

func (d *Database) InsertAs(ctx context.Context, name string, rows []any, token string) error {
	return d.insert(ctx, tableOf(name), rows, token)
}

func tableOf(name string) *eventTable {
	all := tables()
	return all[slices.IndexFunc(all, func(t *eventTable) bool { return t.name == name })]
}

// AsWriter marks the statements of a context as statements of a stream's writer.
func (d *Database) AsWriter(ctx context.Context, stream string) context.Context {
	return d.asWriter(ctx, stream)
}

func (d *Database) LookUp(ctx context.Context, job string, ids []string) error {
	g := &tableRows{table: tableOf("job_epoch")}
	for _, id := range ids {
		g.append(eventRow{id: id, key: job})
	}
	_, err := d.findStored(ctx, g)
	return err
}

// Values returns the rows of a query of one column.
func Values[T any](ctx context.Context, d *Database, statement string, args ...any) ([]T, error) {
	return values[T](ctx, d, statement, args...)
}

func TableNames() []string { return tableNames() }

var ShardOf = shardOf

// MigrateWith is Migrate of a program that knows other migrations.
func (d *Database) MigrateWith(ctx context.Context, all []schemas.Migration) error {
	return d.migrateSingle(ctx, all)
}

// ChangeTable executes a statement of a migration.
func (d *Database) ChangeTable(ctx context.Context, statement string) error {
	return d.migrateStatement(ctx, statement)
}

// MigrateWith is Database.MigrateWith for the databases on each server.
func (c *Cluster) MigrateWith(ctx context.Context, all []schemas.Migration) error {
	local, readers, err := c.targets()
	if err != nil {
		return err
	}
	return migrateTargets(ctx, c.shardMap, all, local, readers)
}

// Durables returns the consumers of the writers of a database.
func (d *Database) Durables() []schemas.Durable { return d.shard.durables() }

// Databases returns the database of each shard.
func (c *Cluster) Databases() []*Database { return c.shards }

func (c *Cluster) ShardMap() *schemas.ShardMap { return c.shardMap }
