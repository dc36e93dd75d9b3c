package store

import (
	"context"
	"fmt"

	"courier/schemas"
)

// migrationTable records what was applied. Two programs that migrate at once
// may both record a step; the steps themselves may be repeated.
const migrationTable = `CREATE TABLE IF NOT EXISTS schema_migrations (
    number UInt32,
    name String,
    applied_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree ORDER BY number`

// Migrate waits for the database until ctx ends, makes it if it is absent, and
// brings its tables forward to what this program knows. It may be called at
// every start and by several programs at once. The error is ErrNewer if the
// database is ahead of the program, ErrRefused if waiting cannot help.
func (d *Database) Migrate(ctx context.Context) error {
	all, err := schemas.Migrations()
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	begun := -1
	err = d.retry(ctx, "migrate", func(ctx context.Context) error { return d.migrate(ctx, all, &begun) })
	if err != nil {
		return fmt.Errorf("migrate database %s: %w", d.address, err)
	}
	return nil
}

// migrate applies once what is missing. What it has begun it finishes itself, from the
// step begun on (-1: none), also if another program was faster meanwhile: a view that it
// made anew in between is else left without what a later step says of it.
func (d *Database) migrate(ctx context.Context, all []schemas.Migration, begun *int) error {
	if err := d.connect(ctx); err != nil {
		return err
	}
	if err := d.exec(ctx, "migrate", migrationTable); err != nil {
		return err
	}
	if err := d.reattach(ctx); err != nil {
		return err
	}
	applied, err := d.migration(ctx)
	if err != nil {
		return err
	}
	if applied > len(all) {
		return fmt.Errorf("%w: it has migration %d, the program ends at %d", ErrNewer, applied, len(all))
	}
	if *begun < 0 || *begun > applied {
		*begun = applied
	}
	for _, m := range all[*begun:] {
		for _, statement := range m.Statements {
			if err := d.exec(ctx, "migrate", statement); err != nil {
				return fmt.Errorf("apply %s: %w", m.Name, err)
			}
		}
		if err := d.exec(ctx, "migrate", "INSERT INTO schema_migrations SELECT ?, ?, now64(9, 'UTC')", m.Number, m.Name); err != nil {
			return fmt.Errorf("record %s: %w", m.Name, err)
		}
		*begun = m.Number
		d.log.Info("database migrated", "address", d.address, "migration", m.Name)
	}
	return nil
}

// migration returns the number of the last step that was applied, 0 if none was.
func (d *Database) migration(ctx context.Context) (int, error) {
	var rows []struct {
		Number uint32 `ch:"number"`
	}
	if err := d.Query(ctx, &rows, "SELECT max(number) AS number FROM schema_migrations"); err != nil {
		return 0, err
	}
	if len(rows) != 1 {
		return 0, fmt.Errorf("read schema_migrations: %d rows, want 1", len(rows))
	}
	return int(rows[0].Number), nil
}
