package store

import (
	"fmt"
	"regexp"
	"strings"

	"courier/schemas"
)

// Schema returns the statements that set up an empty database, in order: the ones that Migrate
// runs, with the records of the applied migrations.
//
// With the name of a cluster, the statements set up the cluster: each table is a replicated
// table <name>_local on every shard and a distributed table <name> over them, and the roll-ups
// are on the shards of their rows. All rows of a job, node or target share a shard. The error
// names a migration that cannot be translated for a cluster.
func Schema(cluster string) ([]string, error) {
	all, err := schemas.Migrations()
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	if cluster != "" && !databaseName.MatchString(cluster) {
		return nil, fmt.Errorf("the cluster name %.80q is not 1 to 64 letters, digits and _",
			cluster)
	}
	p := clusterPlanner{cluster: cluster, tables: make(map[string]bool)}
	statements, err := p.translate(migrationTable)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		for _, s := range m.Statements {
			translated, err := p.translate(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			statements = append(statements, translated...)
		}
		statements = append(statements, fmt.Sprintf(
			"INSERT INTO schema_migrations SELECT %d, '%s', now64(9, 'UTC')", m.Number, m.Name))
	}
	return statements, nil
}

// clusterPlanner translates statements for one server into statements for a cluster.
type clusterPlanner struct {
	cluster string          // "" for one server
	tables  map[string]bool // created so far
}

// The forms of statements in migrations. A test of schemas checks that there are no others.
var (
	makeTable = regexp.MustCompile(`(?s)^CREATE TABLE IF NOT EXISTS (\w+) (\(.*\n\)) ` +
		`ENGINE = (\w*MergeTree)(?:\(([^()]*)\))?(.*)$`)
	makeView = regexp.MustCompile(`(?s)^(CREATE (?:OR REPLACE )?(MATERIALIZED )?VIEW ` +
		`(?:IF NOT EXISTS )?\w+)( .*)$`)
	alter    = regexp.MustCompile(`(?s)^ALTER TABLE (\w+)\s+(.*)$`)
	backfill = regexp.MustCompile(`(?s)^INSERT INTO \w+ SETTINGS ` +
		`(insert_deduplication_token = .*)$`)
	firstKey = regexp.MustCompile(`ORDER BY \(?(\w+)`)
	source   = regexp.MustCompile(`\b(TO|FROM) (\w+)`)
)

// local is the name of a table's part on one shard.
func local(table string) string { return table + "_local" }

// translate returns the statements for the cluster.
func (p *clusterPlanner) translate(s string) ([]string, error) {
	if p.cluster == "" {
		return []string{s}, nil
	}
	if m := makeTable.FindStringSubmatch(s); m != nil {
		return p.createTable(m[1], m[2], m[3], m[4], m[5])
	}
	if m := makeView.FindStringSubmatch(s); m != nil {
		rest := m[3]
		if m[2] != "" {
			rest = p.useLocalTables(rest)
		}
		return []string{m[1] + p.onCluster() + rest}, nil
	}
	if m := alter.FindStringSubmatch(s); m != nil {
		return p.alter(m[1], m[2]), nil
	}
	if m := backfill.FindStringSubmatch(s); m != nil { // run once, on the distributed tables
		foreground := "SETTINGS distributed_foreground_insert = 1, "
		return []string{strings.Replace(s, "SETTINGS ", foreground, 1)}, nil
	}
	return nil, fmt.Errorf("cannot translate the statement %.60q for a cluster", s)
}

func (p *clusterPlanner) onCluster() string { return " ON CLUSTER " + p.cluster }

// createTable creates a replicated table and the distributed table over it.
func (p *clusterPlanner) createTable(
	name, columns, engine, arguments, rest string,
) ([]string, error) {
	key := firstKey.FindStringSubmatch(rest)
	if key == nil {
		return nil, fmt.Errorf("%s has no sorting key", name)
	}
	p.tables[name] = true
	if arguments != "" {
		arguments = ", " + arguments
	}
	rest = strings.ReplaceAll(rest,
		"non_replicated_deduplication_window", "replicated_deduplication_window")
	return []string{
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s %s ENGINE = Replicated%s("+
			"'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'%s)%s",
			local(name), p.onCluster(), columns, engine, arguments, rest),
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s ENGINE = Distributed("+
			"%s, currentDatabase(), %[3]s, cityHash64(%[5]s))",
			name, p.onCluster(), local(name), p.cluster, key[1]),
	}, nil
}

// useLocalTables makes a view read and fill the tables of its own shard.
func (p *clusterPlanner) useLocalTables(view string) string {
	return source.ReplaceAllStringFunc(view, func(s string) string {
		word, name, _ := strings.Cut(s, " ")
		if !p.tables[name] {
			return s
		}
		return word + " " + local(name)
	})
}

// alter changes a table on its shards, and the distributed table if that needs the change.
func (p *clusterPlanner) alter(name, change string) []string {
	statement := func(name string) string {
		return "ALTER TABLE " + name + p.onCluster() + " " + p.useLocalTables(change)
	}
	switch {
	case !p.tables[name]:
		return []string{statement(name)} // a view
	case strings.HasPrefix(change, "MODIFY TTL"), strings.HasPrefix(change, "MODIFY SETTING"):
		return []string{statement(local(name))}
	}
	return []string{statement(local(name)), statement(name)}
}
