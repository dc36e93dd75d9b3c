package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// migrationTable records the applied migrations. Two processes that migrate at the same time may
// both record one. Applying a migration twice has no effect. The number 0 marks a database that is
// created from its final schema; see schema.startState.
const migrationTable = `CREATE TABLE IF NOT EXISTS schema_migrations (
    number UInt32,
    name String,
    applied_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree ORDER BY number`

// Migrate waits for the database until ctx ends, creates it if it does not exist, and applies
// the migrations that it lacks. An empty database gets the tables that all migrations would leave.
// On a cluster it does so on every server. Migrate may be called at every start and by several
// processes at the same time.
//
// The error matches ErrNewer if the database has migrations that this program does not know,
// ErrTablesDiffer if its tables are those of a single server instead of a cluster, or the other way
// round, and ErrRefused if waiting cannot help.
func (d *Database) Migrate(ctx context.Context) error {
	if d.shard != nil {
		return d.shard.migrate(ctx)
	}
	asIs := func(statement string) ([]string, error) { return []string{statement}, nil }
	own := &migrationTarget{Database: d, translate: asIs, check: d.checkSingle, next: -1}
	return migrate(ctx, []*migrationTarget{own})
}

// migrationTarget is a database to which migrations are applied.
type migrationTarget struct {
	*Database

	// translate returns the statements for this database instead of one for a single server.
	translate func(statement string) ([]string, error)

	// check, if set, is called before the first statement. Its error refuses all migrations.
	check func(context.Context) error

	// next is the index of the first migration that this process has not completed (-1: none
	// started). After a failure the process continues there, even if another process has applied
	// that migration in the meantime: if this process has replaced a view, it must also apply the
	// later migrations that change the view.
	next int

	// isNew is set if the database is created from the final schema; see schema.startState.
	isNew bool
}

// migrate waits for the databases, creates missing ones, and applies the migrations that they lack.
// Each statement runs in all databases before the next one.
func migrate(ctx context.Context, targets []*migrationTarget) error {
	s, err := readSchema()
	if err != nil {
		return err
	}
	first := targets[0]
	err = first.retry(ctx, "migrate", func(ctx context.Context) error {
		return s.applyTo(ctx, targets)
	})
	if err != nil {
		return fmt.Errorf("migrate database %s: %w", first.address, err)
	}
	return nil
}

// applyTo tries once to create the new databases and to apply the missing migrations to the others,
// in each group of databases before the next one. No table changes if a database is refused.
//
// In a group, the new databases come last: the first replica of a table determines the columns that
// ClickHouse accepts for the second, and those of an older version lack some.
func (s *schema) applyTo(ctx context.Context, groups ...[]*migrationTarget) error {
	for _, t := range slices.Concat(groups...) {
		if err := t.startMigrations(ctx, s); err != nil {
			return err
		}
	}
	for _, targets := range groups {
		var existing, created []*migrationTarget
		for _, t := range targets {
			if t.isNew {
				created = append(created, t)
			} else {
				existing = append(existing, t)
			}
		}
		if err := s.upgrade(ctx, existing); err != nil {
			return err
		}
		if err := s.create(ctx, created); err != nil {
			return err
		}
	}
	return nil
}

// upgrade applies the missing migrations.
func (s *schema) upgrade(ctx context.Context, targets []*migrationTarget) error {
	for i, m := range s.migrations {
		var missing []*migrationTarget
		for _, t := range targets {
			if t.next <= i {
				missing = append(missing, t)
			}
		}
		for _, statement := range m.Statements {
			for _, t := range missing {
				if err := t.apply(ctx, statement); err != nil {
					return fmt.Errorf("apply %s: %w", m.Name, err)
				}
			}
		}
		for _, t := range missing {
			if err := t.record(ctx, m); err != nil {
				return fmt.Errorf("record %s: %w", m.Name, err)
			}
		}
	}
	return nil
}

// startMigrations prepares a database, and reads which of the migrations it has and whether it is
// new.
func (t *migrationTarget) startMigrations(ctx context.Context, s *schema) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	if t.check != nil {
		if err := t.check(ctx); err != nil {
			return err
		}
	}
	if err := t.exec(ctx, "migrate", migrationTable); err != nil {
		return err
	}
	if err := t.attachDetached(ctx); err != nil {
		return err
	}
	applied, isNew, err := s.startState(ctx, t.Database)
	if err != nil {
		return err
	}
	if applied > len(s.migrations) {
		return newerError(applied, len(s.migrations))
	}
	t.isNew = isNew
	if !isNew && (t.next < 0 || t.next > applied) {
		t.next = applied
	}
	return nil
}

// apply executes a statement of a migration.
func (t *migrationTarget) apply(ctx context.Context, statement string) error {
	translated, err := t.translate(statement)
	if err != nil {
		return err
	}
	for _, s := range translated {
		if err := t.migrateStatement(ctx, s); err != nil {
			return err
		}
		firstLine, _, _ := strings.Cut(s, "\n")
		t.log.Debug("statement applied", "address", t.address, "statement", firstLine)
	}
	return nil
}

// record records that a migration is applied.
func (t *migrationTarget) record(ctx context.Context, m schemas.Migration) error {
	err := t.exec(ctx, "migrate",
		"INSERT INTO schema_migrations SELECT ?, ?, now64(9, 'UTC')", m.Number, m.Name)
	if err != nil {
		return err
	}
	t.next = m.Number
	t.log.Info("database migrated", "address", t.address, "migration", m.Name)
	return nil
}

// migrationRetries and migrationPause limit how long a statement waits for another store.
const (
	migrationRetries = 20
	migrationPause   = 100 * time.Millisecond
)

// syncReplica waits until this replica of a table has made the changes of the others. The table is that
// of an ALTER statement; isReplicated is false for all others.
func (d *Database) syncReplica(ctx context.Context, statement string) (isReplicated bool, err error) {
	change := alter.FindStringSubmatch(statement)
	if change == nil {
		return false, nil
	}
	var rows []struct {
		N uint64 `ch:"n"`
	}
	err = d.Query(ctx, &rows, "SELECT count() AS n FROM system.replicas "+
		"WHERE database = currentDatabase() AND table = ?", change[1])
	if err != nil || rows[0].N == 0 {
		return false, err
	}
	return true, d.exec(ctx, "migrate", "SYSTEM SYNC REPLICA "+change[1])
}

// migrateStatement executes a statement of a migration. ClickHouse reads the definition of a table
// from a file, and reports a syntax error while another store's migration replaces that file. A
// replica refuses to change a table until it has made the changes of the other replicas.
func (d *Database) migrateStatement(ctx context.Context, statement string) error {
	for attempt := 0; ; attempt++ {
		err := d.exec(ctx, "migrate", statement)
		switch code := serverCode(err); {
		case attempt == migrationRetries:
			return err
		case code == codeReplicaBehind:
			isReplicated, syncErr := d.syncReplica(ctx, statement)
			if !isReplicated || syncErr != nil {
				return errors.Join(err, syncErr)
			}
			continue
		case code != codeSyntax:
			return err
		}
		select {
		case <-time.After(migrationPause):
		case <-ctx.Done():
			return err
		}
	}
}

func newerError(applied, known int) error {
	return fmt.Errorf("%w: it has migration %d, the last one of this program is %d", ErrNewer, applied, known)
}

// checkMigrated returns an error unless the database has exactly the migrations of this program.
func (d *Database) checkMigrated(ctx context.Context) error {
	all, err := schemas.Migrations()
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	applied, err := d.appliedMigration(ctx)
	if err != nil {
		return err
	}
	if applied > len(all) {
		return newerError(applied, len(all))
	}
	if applied < len(all) {
		return fmt.Errorf("the database has %d of %d migrations: start a store to apply the rest",
			applied, len(all))
	}
	return nil
}

// appliedMigration returns the number of the last applied migration, or 0.
func (d *Database) appliedMigration(ctx context.Context) (int, error) {
	var rows []struct {
		Number uint32 `ch:"number"`
	}
	err := d.Query(ctx, &rows, "SELECT max(number) AS number FROM schema_migrations")
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 {
		return 0, fmt.Errorf("read schema_migrations: %d rows, want 1", len(rows))
	}
	return int(rows[0].Number), nil
}
