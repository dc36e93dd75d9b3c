package store

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"courier/schemas"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// History reads the events of jobs back.
type History struct {
	database *Database
	turns    chan struct{} // each Events holds three connections; too many at once would wait for each other
}

// NewHistory returns a history over a database.
func NewHistory(d *Database) *History { return &History{database: d, turns: make(chan struct{}, 3)} }

// Events calls yield with the started, epoch and ended events of jobs that
// happened at since or later (zero: all), in the order of the log, each event
// once, with its Sequence. They are complete up to some place in the log: an
// event that is missing comes after all that were yielded. An error of yield
// ends it and is returned.
func (h *History) Events(ctx context.Context, since time.Time, yield func(schemas.Event) error) error {
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	until, err := h.database.Position(ctx, schemas.StreamJob)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	cursors := []*cursor{
		{table: "job_started", fresh: func() (schemas.Event, *schemas.Stamp) { e := new(schemas.Started); return e, &e.Stamp }},
		{table: "job_epoch", fresh: func() (schemas.Event, *schemas.Stamp) { e := new(schemas.Epoch); return e, &e.Stamp }},
		{table: "job_ended", fresh: func() (schemas.Event, *schemas.Stamp) { e := new(schemas.Ended); return e, &e.Stamp }},
	}
	for _, c := range cursors {
		defer c.close()
		if err := c.open(ctx, h.database, since, until); err != nil {
			return fmt.Errorf("read history: %w", err)
		}
	}
	return merge(cursors, yield)
}

// merge yields the cursors' events by sequence.
func merge(cursors []*cursor, yield func(schemas.Event) error) error {
	for {
		var first *cursor
		for _, c := range cursors {
			if c.event != nil && (first == nil || c.stamp.Sequence < first.stamp.Sequence) {
				first = c
			}
		}
		if first == nil {
			return nil
		}
		if err := yield(first.event); err != nil {
			return err
		}
		if err := first.next(); err != nil {
			return fmt.Errorf("read history: %w", err)
		}
	}
}

// cursor walks the rows of one table.
type cursor struct {
	table string
	fresh func() (schemas.Event, *schemas.Stamp)

	rows  driver.Rows
	event schemas.Event // the next one, nil at the end
	stamp *schemas.Stamp
}

// open asks for the table's rows up to a sequence and reads the first.
func (c *cursor) open(ctx context.Context, d *Database, since time.Time, until uint64) error {
	event, _ := c.fresh()
	var from int64
	if since.After(time.Unix(0, 0)) {
		from = since.UnixNano()
	}
	statement := fmt.Sprintf("SELECT %s FROM %s WHERE at >= fromUnixTimestamp64Nano(?, 'UTC') AND sequence <= ? ORDER BY sequence LIMIT 1 BY event_id",
		strings.Join(columnNames(reflect.TypeOf(event).Elem()), ", "), c.table)
	start := time.Now()
	rows, err := d.conn.Query(ctx, statement, from, until)
	if err == nil {
		c.rows = rows
		err = c.next()
	}
	d.metrics.observe("history", time.Since(start), err)
	if err != nil {
		return fmt.Errorf("query %s at %s: %w", c.table, d.address, refused(err))
	}
	return nil
}

// next reads the next row.
func (c *cursor) next() error {
	c.event, c.stamp = nil, nil
	if !c.rows.Next() {
		if err := c.rows.Err(); err != nil {
			return fmt.Errorf("read %s: %w", c.table, err)
		}
		return nil
	}
	event, stamp := c.fresh()
	if err := c.rows.ScanStruct(event); err != nil {
		return fmt.Errorf("read %s: %w", c.table, err)
	}
	c.event, c.stamp = event, stamp
	return nil
}

func (c *cursor) close() {
	if c.rows != nil {
		_ = c.rows.Close() // an error of the query was seen by next
	}
}
