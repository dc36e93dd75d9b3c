package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// migrationTable records the applied migrations. Two processes that migrate at the same time may
// both record one. Applying a migration twice has no effect.
const migrationTable = `CREATE TABLE IF NOT EXISTS schema_migrations (
    number UInt32,
    name String,
    applied_at DateTime64(9, 'UTC')
) ENGINE = ReplacingMergeTree ORDER BY number`

// Migrate waits for the database until ctx ends, creates it if it does not exist, and applies
// the migrations that it lacks. On a cluster it does so on every server. Migrate may be called at
// every start and by several processes at the same time.
//
// The error matches ErrNewer if the database has migrations that this program does not know,
// ErrTablesDiffer if its tables are those of a single server instead of a cluster, or the other way
// round, and ErrRefused if waiting cannot help.
func (d *Database) Migrate(ctx context.Context) error {
	if d.shard != nil {
		return d.shard.migrate(ctx)
	}
	return d.migrateSingle(ctx, schemas.Migrations())
}

func (d *Database) migrateSingle(ctx context.Context, migrations []schemas.Migration) error {
	own := &migrationTarget{Database: d, translate: asIs, check: d.checkSingle, next: -1}
	err := d.retry(ctx, "migrate", func(ctx context.Context) error {
		return applyTo(ctx, migrations, []*migrationTarget{own})
	})
	if err != nil {
		return fmt.Errorf("migrate database %s: %w", d.address, err)
	}
	return nil
}

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
}

// applyTo tries once to apply the missing migrations to groups of databases, one group after the
// other. In a group, each statement runs in all databases before the next one. No table changes if
// a database is refused.
func applyTo(ctx context.Context, migrations []schemas.Migration, groups ...[]*migrationTarget) error {
	for _, t := range slices.Concat(groups...) {
		if err := t.start(ctx, len(migrations)); err != nil {
			return err
		}
	}
	for _, targets := range groups {
		for i, m := range migrations {
			isApplied := func(t *migrationTarget) bool { return t.next > i }
			if err := applyMigration(ctx, m, slices.DeleteFunc(slices.Clone(targets), isApplied)); err != nil {
				return err
			}
		}
	}
	return nil
}

func applyMigration(ctx context.Context, m schemas.Migration, targets []*migrationTarget) error {
	for _, statement := range m.Statements {
		for _, t := range targets {
			if err := t.apply(ctx, statement); err != nil {
				return fmt.Errorf("apply %s: %w", m.Name, err)
			}
		}
	}
	for _, t := range targets {
		if err := t.record(ctx, m); err != nil {
			return fmt.Errorf("record %s: %w", m.Name, err)
		}
	}
	return nil
}

// start prepares a database, and reads which of a number of known migrations it has.
func (t *migrationTarget) start(ctx context.Context, known int) error {
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
	applied, err := t.appliedMigration(ctx)
	if err != nil {
		return err
	}
	if applied > known {
		return newerError(applied, known)
	}
	if t.next < 0 || t.next > applied {
		t.next = applied
	}
	if applied == known {
		return t.checkColumns(ctx)
	}
	return nil
}

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
	n, err := value[uint64](ctx, d, "SELECT count() FROM system.replicas "+
		"WHERE database = currentDatabase() AND table = ?", change[1])
	if err != nil || n == 0 {
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
		if bus.Sleep(ctx, migrationPause) != nil {
			return err
		}
	}
}

func newerError(applied, known int) error {
	return fmt.Errorf("%w: it has migration %d, the last one of this program is %d", ErrNewer, applied, known)
}

func (d *Database) checkMigrated(ctx context.Context) error {
	known := len(schemas.Migrations())
	applied, err := d.appliedMigration(ctx)
	if err != nil {
		return err
	}
	if applied > known {
		return newerError(applied, known)
	}
	if applied < known {
		return fmt.Errorf("the database has %d of %d migrations: start a store to apply the rest",
			applied, known)
	}
	return nil
}

func (d *Database) appliedMigration(ctx context.Context) (int, error) {
	number, err := value[uint32](ctx, d, "SELECT max(number) FROM schema_migrations")
	return int(number), err
}

// Schema returns the statements of all migrations, which create the tables and views of an empty
// database, in order. In a database that has tables, they create the missing ones.
//
// With the name of a cluster, they are the statements that a store runs on every server of a
// cluster with replicas: first for the database with the rows of the server's shard, then for the
// database "courier" of the readers, with a distributed table over each of these tables.
func Schema(cluster string) (all []string, err error) {
	if cluster == "" {
		return translateAll(asIs)
	}
	if !databaseName.MatchString(cluster) {
		return nil, fmt.Errorf("the cluster name %.80q is not 1 to 64 letters, digits and _", cluster)
	}
	m := &schemas.ShardMap{Cluster: cluster, Database: DefaultDatabase}
	m.Shards = []schemas.Shard{{Weight: 1, Replicas: []string{"", ""}}}
	for _, part := range []struct {
		database  string
		translate func(string) ([]string, error)
	}{
		{m.LocalDatabase(), shardTables(m)},
		{m.Database, readerTables(m)},
	} {
		all = append(all, "CREATE DATABASE IF NOT EXISTS "+part.database, "USE "+part.database)
		statements, err := translateAll(part.translate)
		if err != nil {
			return nil, err
		}
		all = append(all, statements...)
	}
	return all, nil
}

// asIs translates the statements for a single server, for which they are written.
func asIs(statement string) ([]string, error) { return []string{statement}, nil }

func translateAll(translate func(string) ([]string, error)) (all []string, err error) {
	for _, m := range schemas.Migrations() {
		for _, s := range m.Statements {
			translated, err := translate(s)
			if err != nil {
				return nil, err
			}
			all = append(all, translated...)
		}
	}
	return all, nil
}

// The forms of statements in migrations. A test of schemas checks that there are no others.
var (
	makeTable = regexp.MustCompile(`(?s)^CREATE TABLE IF NOT EXISTS (\w+) (\(.*\n\)) ` +
		`ENGINE = (\w*MergeTree)(?:\(([^()]*)\))?(.*)$`)
	makeView = regexp.MustCompile(`^CREATE (?:OR REPLACE )?(MATERIALIZED )?VIEW `)
	alter    = regexp.MustCompile(`(?s)^ALTER TABLE (\w+)\s+(.*)$`)
	firstKey = regexp.MustCompile(`ORDER BY \(?(\w+)`)
)

// positionTable is the table of the positions. Each shard has its own rows.
const positionTable = "log_position"

// shardTables returns the translation of migrations for the database of a shard. On a cluster with
// replicas the tables are replicated, and remember the tokens of inserts for a week, which is
// longer than an outage after which a batch is repeated.
func shardTables(m *schemas.ShardMap) func(string) ([]string, error) {
	return func(s string) ([]string, error) {
		table := makeTable.FindStringSubmatch(s)
		if table == nil || !m.IsReplicated() {
			return []string{s}, nil
		}
		name, columns, engine, arguments, rest := table[1], table[2], table[3], table[4], table[5]
		if arguments != "" {
			arguments = ", " + arguments
		}
		const single = "non_replicated_deduplication_window = 1000"
		const replicated = "replicated_deduplication_window = 1000, " +
			"replicated_deduplication_window_seconds = 604800"
		return []string{fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s %s ENGINE = Replicated%s("+
			"'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'%s)%s",
			name, columns, engine, arguments, strings.ReplaceAll(rest, single, replicated))}, nil
	}
}

// readerTables returns the translation of migrations for the database of the readers. It has a
// distributed table over each table of the shards, and the same views over these.
func readerTables(m *schemas.ShardMap) func(string) ([]string, error) {
	return func(s string) ([]string, error) {
		if table := makeTable.FindStringSubmatch(s); table != nil {
			return distribute(m, table[1], table[5])
		}
		if view := makeView.FindStringSubmatch(s); view != nil {
			if view[1] != "" {
				return nil, nil // the shards fill the roll-ups
			}
			return []string{s}, nil
		}
		if change := alter.FindStringSubmatch(s); change != nil {
			for _, local := range []string{"MODIFY TTL", "MODIFY SETTING", "MODIFY QUERY"} {
				if strings.HasPrefix(change[2], local) {
					return nil, nil
				}
			}
			return []string{s}, nil
		}
		return nil, fmt.Errorf("cannot translate the statement %.60q for a cluster", s)
	}
}

// distribute returns the statements that create or replace the distributed table over a table of
// the shards. rest is the definition after the engine.
//
// The position up to which readers have all rows is the lowest one of the shards. A shard that has
// none yet counts as 0.
func distribute(m *schemas.ShardMap, table, rest string) ([]string, error) {
	name, key := table, firstKey.FindStringSubmatch(rest)
	if key == nil {
		return nil, fmt.Errorf("%s has no sorting key", table)
	}
	if table == positionTable {
		name = "shard_position"
	}
	statements := []string{fmt.Sprintf("CREATE OR REPLACE TABLE %s AS %s.%s ENGINE = "+
		"Distributed(%s, %[2]s, %[3]s, cityHash64(%[5]s))",
		name, m.LocalDatabase(), table, m.Cluster, key[1])}
	if table == positionTable {
		statements = append(statements, fmt.Sprintf("CREATE OR REPLACE VIEW %s AS "+
			"SELECT stream, min(position) AS sequence, min(at) AS inserted_at FROM ("+
			"SELECT stream, _shard_num AS shard, max(sequence) AS position, "+
			"max(inserted_at) AS at FROM shard_position GROUP BY stream, shard) "+
			"GROUP BY stream HAVING count() = %d", positionTable, len(m.Shards)))
	}
	return statements, nil
}
