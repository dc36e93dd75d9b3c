package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"courier/schemas"
)

// schema is what this program knows of the tables of a database.
type schema struct {
	migrations []schemas.Migration

	// creation are the statements that create a new database with the tables and views that all
	// migrations leave. Without any, a new database gets all migrations.
	creation []string
}

// readSchema returns the schema of this program.
func readSchema() (*schema, error) {
	all, err := schemas.Migrations()
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return &schema{migrations: all, creation: schemas.CreateStatements()}, nil
}

// name is the name of the last migration.
func (s *schema) name() string { return s.migrations[len(s.migrations)-1].Name }

// markStatement marks a database without tables: it inserts a row with the number 0 and the name of
// the last migration.
func (s *schema) markStatement() string {
	return fmt.Sprintf(`INSERT INTO schema_migrations
SELECT 0, '%s', now64(9, 'UTC')
WHERE (
    SELECT count() FROM system.tables
    WHERE database = currentDatabase() AND name != 'schema_migrations'
) = 0`, s.name())
}

// recordStatement records all migrations of a marked database. It is one insert, so that a database
// has the records of all migrations or of none.
func (s *schema) recordStatement() string {
	var rows []string
	for _, m := range s.migrations {
		rows = append(rows, fmt.Sprintf("    (%d, '%s')", m.Number, m.Name))
	}
	return fmt.Sprintf(`INSERT INTO schema_migrations
SELECT m.1, m.2, now64(9, 'UTC')
FROM (SELECT arrayJoin([
%s
]) AS m)
WHERE (SELECT count() FROM schema_migrations WHERE number = 0 AND name = '%s') > 0`,
		strings.Join(rows, ",\n"), s.name())
}

// statements returns the translated statements that set up a new database.
func (s *schema) statements(translate func(string) ([]string, error)) ([]string, error) {
	all := []string{migrationTable, s.markStatement()}
	for _, statement := range s.creation {
		translated, err := translate(statement)
		if err != nil {
			return nil, err
		}
		all = append(all, translated...)
	}
	return append(all, s.recordStatement()), nil
}

// startState returns the number of the last applied migration, and whether the database is new: it
// has no recorded migrations, and the mark of this schema, which it gets here if it has no tables.
//
// The mark precedes the first table, and is read after the tables. So a process that finds tables
// without the mark knows that migrations create them. A process that finds the mark continues to
// create the tables and views, because the existing ones are in their final form.
//
// If another version of this program was interrupted, the database has the mark of another schema.
// Then its tables may lack columns, which the migrations add.
func (s *schema) startState(
	ctx context.Context, d *Database,
) (applied int, isNew bool, err error) {
	applied, isMarked, err := s.readState(ctx, d)
	if err != nil || applied > 0 || len(s.creation) == 0 {
		return applied, false, err
	}
	if !isMarked {
		if err := d.exec(ctx, "migrate", s.markStatement()); err != nil {
			return 0, false, err
		}
	}
	applied, isMarked, err = s.readState(ctx, d)
	return applied, isMarked && applied == 0, err
}

// readState returns the number of the last applied migration, and whether the database has the mark
// of this schema and no other.
func (s *schema) readState(
	ctx context.Context, d *Database,
) (applied int, isMarked bool, err error) {
	var rows []struct {
		Applied uint32 `ch:"applied"`
		Own     uint64 `ch:"own"`
		Other   uint64 `ch:"other"`
	}
	err = d.Query(ctx, &rows, "SELECT max(number) AS applied, "+
		"countIf(number = 0 AND name = ?) AS own, countIf(number = 0 AND name != ?) AS other "+
		"FROM schema_migrations", s.name(), s.name())
	if err != nil {
		return 0, false, err
	}
	if len(rows) != 1 {
		return 0, false, fmt.Errorf("read schema_migrations: %d rows, want 1", len(rows))
	}
	return int(rows[0].Applied), rows[0].Own > 0 && rows[0].Other == 0, nil
}

// create creates the tables and views of marked databases, and records the migrations.
func (s *schema) create(ctx context.Context, targets []*migrationTarget) error {
	for _, statement := range s.creation {
		for _, t := range targets {
			if err := t.apply(ctx, statement); err != nil {
				return fmt.Errorf("create the tables: %w", err)
			}
		}
	}
	for _, t := range targets {
		if err := s.recordAll(ctx, t); err != nil {
			return fmt.Errorf("record the migrations: %w", err)
		}
	}
	return nil
}

// errOtherMark reports that another version of this program creates the same database.
var errOtherMark = errors.New("another version of this program creates the database")

// recordAll records that a database has all migrations.
func (s *schema) recordAll(ctx context.Context, t *migrationTarget) error {
	if err := t.exec(ctx, "migrate", s.recordStatement()); err != nil {
		return err
	}
	applied, err := t.appliedMigration(ctx)
	if err != nil {
		return err
	}
	if applied != len(s.migrations) {
		return errOtherMark
	}
	t.next = applied
	t.log.Info("database created", "address", t.address, "schema", s.name())
	return nil
}
