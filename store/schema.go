package store

import (
	"fmt"
	"regexp"
	"strings"

	"courier/schemas"
)

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

func createdTables() (all [][]string) {
	for _, m := range schemas.Migrations() {
		for _, s := range m.Statements {
			if table := makeTable.FindStringSubmatch(s); table != nil {
				all = append(all, table)
			}
		}
	}
	return all
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
