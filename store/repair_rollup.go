package store

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// rollUp is a table that a materialized view fills from another.
type rollUp struct {
	name, view string
	time       string // its column that says when; "" if its rows have no hour of their own
	key        string // of its rows
	of         string // the same of a row of the source
}

// rollUps by the table that they are of. One that is made of another comes after
// it: what it says is computed from what the other then says.
var rollUps = map[string][]rollUp{
	"node_sample": {
		{"node_minute", "node_minute_view", "minute", "(node, minute)", "(node, toStartOfMinute(at))"},
		{"node_hour", "node_hour_view", "hour", "(node, hour)", "(node, toStartOfHour(at))"},
	},
	"job_epoch": {{"job_run", "job_run_view", "", "(job_id, run)", "(job_id, run)"}},
}

// rebuild makes the rows of the roll-ups again that a repeated batch has a part in.
//
// ClickHouse inserts into a table and its roll-ups one after the other. Killed in
// between, or between a roll-up's token and its block, it keeps the one and lacks
// the other, and refuses or skips what is missing for ever. What a roll-up says of
// the minutes of the batch follows from the table alone, so it is thrown away and
// computed anew; whoever dies meanwhile repeats the batch.
//
//	node_sample ─► node_minute: thrown away, computed anew ─► node_hour: counts them twice,
//	                                                          thrown away, computed anew
func (d *Database) rebuild(ctx context.Context, source string, first, last uint64) error {
	for _, r := range rollUps[source] {
		if err := d.rebuildOne(ctx, source, r, first, last); err != nil {
			return err
		}
	}
	return nil
}

// rebuildOne is rebuild of one roll-up.
func (d *Database) rebuildOne(ctx context.Context, source string, r rollUp, first, last uint64) error {
	definition, err := d.definition(ctx, r)
	if err != nil {
		return err
	}
	touched := fmt.Sprintf("%s IN (SELECT %s FROM %s WHERE sequence BETWEEN %d AND %d)", r.key, r.of, source, first, last)
	if err := d.exec(ctx, "rebuild "+r.name, "DELETE FROM "+r.name+" WHERE "+touched); err != nil {
		return err
	}
	insert, end := d.begin(ctx, "rebuild "+r.name, clickhouse.Settings{"insert_deduplicate": 0})
	return end.with(d.conn.Exec(insert, fmt.Sprintf("INSERT INTO %s SELECT * FROM (%s) WHERE %s", r.name, definition, touched)))
}

// definition returns the SELECT that makes a roll-up's rows.
func (d *Database) definition(ctx context.Context, r rollUp) (string, error) {
	var view []struct {
		Select string `ch:"as_select"`
	}
	if err := d.Query(ctx, &view, "SELECT as_select FROM system.tables WHERE database = currentDatabase() AND name = ?", r.view); err != nil {
		return "", err
	}
	if len(view) != 1 || view[0].Select == "" {
		return "", fmt.Errorf("rebuild %s: no view %s", r.name, r.view)
	}
	return view[0].Select, nil
}
