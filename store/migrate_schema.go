package store

import (
	"fmt"
	"regexp"
	"strings"

	"courier/schemas"
)

// Schema returns the statements that make an empty database what this program
// expects, in order: those that Migrate runs, and the records that it has run them.
// With the name of a cluster they are the same for that: each table is a replicated
// one named …_local on every shard, under a distributed one of the plain name, and
// the roll-ups are made where their rows are. All rows of a job, node or target
// share a shard. The error names a migration that has no form on a cluster.
func Schema(cluster string) ([]string, error) {
	all, err := schemas.Migrations()
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	if cluster != "" && !databaseName.MatchString(cluster) {
		return nil, fmt.Errorf("the cluster's name %.80q is not 1 to 64 letters, digits and _", cluster)
	}
	p := planner{cluster: cluster, tables: make(map[string]bool)}
	statements, err := p.plan(migrationTable)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		for _, s := range m.Statements {
			some, err := p.plan(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			statements = append(statements, some...)
		}
		statements = append(statements, fmt.Sprintf("INSERT INTO schema_migrations SELECT %d, '%s', now64(9, 'UTC')", m.Number, m.Name))
	}
	return statements, nil
}

// planner turns the statements of one node into those of a cluster.
type planner struct {
	cluster string
	tables  map[string]bool // that were made so far
}

// The forms of statements that migrations have; a test of schemas holds them to it.
var (
	makeTable = regexp.MustCompile(`(?s)^CREATE TABLE IF NOT EXISTS (\w+) (\(.*\n\)) ENGINE = (\w*MergeTree)(?:\(([^()]*)\))?(.*)$`)
	makeView  = regexp.MustCompile(`(?s)^(CREATE (?:OR REPLACE )?(MATERIALIZED )?VIEW (?:IF NOT EXISTS )?\w+)( .*)$`)
	alter     = regexp.MustCompile(`(?s)^ALTER TABLE (\w+)\s+(.*)$`)
	backfill  = regexp.MustCompile(`(?s)^INSERT INTO \w+ SETTINGS (insert_deduplication_token = .*)$`)
	firstKey  = regexp.MustCompile(`ORDER BY \(?(\w+)`)
	source    = regexp.MustCompile(`\b(TO|FROM) (\w+)`)
)

// local is the name of a table's part on one shard.
func local(table string) string { return table + "_local" }

// plan returns a statement's form.
func (p *planner) plan(s string) ([]string, error) {
	if p.cluster == "" {
		return []string{s}, nil
	}
	if m := makeTable.FindStringSubmatch(s); m != nil {
		return p.table(m[1], m[2], m[3], m[4], m[5])
	}
	if m := makeView.FindStringSubmatch(s); m != nil {
		rest := m[3]
		if m[2] != "" {
			rest = p.beside(rest)
		}
		return []string{m[1] + p.on() + rest}, nil
	}
	if m := alter.FindStringSubmatch(s); m != nil {
		return p.alter(m[1], m[2]), nil
	}
	if m := backfill.FindStringSubmatch(s); m != nil { // once, through the distributed tables
		return []string{strings.Replace(s, "SETTINGS ", "SETTINGS distributed_foreground_insert = 1, ", 1)}, nil
	}
	return nil, fmt.Errorf("no form on a cluster is known of %.60q", s)
}

func (p *planner) on() string { return " ON CLUSTER " + p.cluster }

// table makes a replicated table and the distributed one over it.
func (p *planner) table(name, columns, engine, arguments, rest string) ([]string, error) {
	key := firstKey.FindStringSubmatch(rest)
	if key == nil {
		return nil, fmt.Errorf("%s has no order", name)
	}
	p.tables[name] = true
	if arguments != "" {
		arguments = ", " + arguments
	}
	return []string{
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s %s ENGINE = Replicated%s('/clickhouse/tables/{shard}/{database}/{table}', '{replica}'%s)%s",
			local(name), p.on(), columns, engine, arguments, strings.ReplaceAll(rest, "non_replicated_deduplication_window", "replicated_deduplication_window")),
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s ENGINE = Distributed(%s, currentDatabase(), %[3]s, cityHash64(%[5]s))", name, p.on(), local(name), p.cluster, key[1]),
	}, nil
}

// beside makes a view read and fill the tables of its own shard.
func (p *planner) beside(view string) string {
	return source.ReplaceAllStringFunc(view, func(s string) string {
		word, name, _ := strings.Cut(s, " ")
		if !p.tables[name] {
			return s
		}
		return word + " " + local(name)
	})
}

// alter changes a table on its shards, and above them where that shows.
func (p *planner) alter(name, change string) []string {
	statement := func(name string) string { return "ALTER TABLE " + name + p.on() + " " + p.beside(change) }
	switch {
	case !p.tables[name]:
		return []string{statement(name)} // a view
	case strings.HasPrefix(change, "MODIFY TTL"), strings.HasPrefix(change, "MODIFY SETTING"):
		return []string{statement(local(name))}
	}
	return []string{statement(local(name)), statement(name)}
}
