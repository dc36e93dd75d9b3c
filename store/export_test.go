package store

import (
	"context"
	"reflect"
	"slices"

	"courier/bus"
	"courier/schemas"
)

// Write writes one batch, as Run does for each.
func (s *Store) Write(ctx context.Context, b bus.Batch) error { return s.write(ctx, b) }

// Prepare readies a batch, as while the one before is written.
func (s *Store) Prepare(ctx context.Context, b *bus.Batch) { s.prepare(ctx, b) }

// Ready reports whether an insert of a batch is ready.
func Ready(b bus.Batch) bool {
	a, _ := b.Prepared.(*ahead)
	return a != nil && a.insert != nil
}

// Follow is one stream's part of Run with another handler of its batches.
func (s *Store) Follow(ctx context.Context, d schemas.Durable, handle func(context.Context, bus.Batch) error) error {
	return s.follow(ctx, d, handle)
}

// ColumnNames returns the columns of a row's struct.
func ColumnNames(row any) []string { return columnNames(reflect.TypeOf(row)) }

// SetWindow makes a verifier look at so many rows at once.
func (v *Verifier) SetWindow(rows uint64) { v.options.window = rows }

// Insert writes rows into a table, and nothing else.
func (d *Database) Insert(ctx context.Context, name string, rows []any) error {
	return d.send(ctx, tableOf(name), rows)
}

// InsertAs does it under a token, as a batch's part is written.
func (d *Database) InsertAs(ctx context.Context, name string, rows []any, token string) error {
	i, err := d.prepareInsert(ctx, tableOf(name), rows, token)
	if err != nil {
		return err
	}
	return i.send(ctx)
}

func tableOf(name string) *table {
	all := tables()
	return all[slices.IndexFunc(all, func(t *table) bool { return t.name == name })]
}

// AsWriter names statements as those of a stream's writer.
func (d *Database) AsWriter(ctx context.Context, stream string) context.Context {
	return d.asWriter(ctx, stream)
}
