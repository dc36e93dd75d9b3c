package store

import (
	"context"
	"fmt"
)

// restore adds rows to a table without its roll-ups seeing them.
//
// ClickHouse writes a block's token down before it makes the block visible. If
// it is killed between the two, it refuses the repeated block as a copy for
// ever, while the roll-ups take it, under tokens of their own. So a repeated
// batch is looked up once more after its insert, and what is still missing comes
// in as parts of a table that no roll-up reads. It may be repeated at any point.
func (d *Database) restore(ctx context.Context, t *table, rows []any) error {
	side := t.name + "_restored"
	for _, statement := range []string{"DROP TABLE IF EXISTS " + side + " SYNC", "CREATE TABLE " + side + " AS " + t.name} {
		if err := d.exec(ctx, "restore "+t.name, statement); err != nil {
			return err
		}
	}
	insert, done := d.begin(ctx, "restore "+t.name, nil)
	into := *t
	into.insert = insertInto(side, t.row)
	if err := done(d.send(insert, &into, rows)); err != nil {
		return err
	}
	var partitions []struct {
		ID string `ch:"partition_id"`
	}
	err := d.Query(ctx, &partitions, "SELECT DISTINCT partition_id FROM system.parts WHERE database = currentDatabase() AND table = ? AND active", side)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		statement := fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION ID '%s' FROM %s", t.name, p.ID, side)
		if err := d.exec(ctx, "restore "+t.name, statement); err != nil {
			return err
		}
	}
	return d.exec(ctx, "restore "+t.name, "DROP TABLE "+side+" SYNC")
}
