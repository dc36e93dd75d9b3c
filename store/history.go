package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"courier/schemas"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// History reads the events of jobs from the tables.
type History struct {
	database *Database
	slots    chan struct{} // limits concurrent readers, which hold three connections each
}

// maxReaders is the number of concurrent calls of Events for which there are connections.
const maxReaders = 3

// ErrReplicaBehind reports that a replica lacks rows that most replicas of its shard have. They
// arrive soon, unless the replica cannot fetch them.
var ErrReplicaBehind = errors.New("a replica lacks rows of the other replicas")

// historySettings make the queries of one history read the same replica of each shard: the first one
// that is available, which is the one that the store writes to. They fail if it lacks the last insert
// that most replicas have. Settings of a single server do not matter.
var historySettings = clickhouse.Settings{
	"load_balancing":                "in_order",
	"prefer_localhost_replica":      0,
	"use_hedged_requests":           0,
	"select_sequential_consistency": 1,
}

// NewHistory returns a history of a database.
func NewHistory(d *Database) *History {
	return &History{database: d, slots: make(chan struct{}, maxReaders)}
}

// Events calls yield with the started, epoch and ended events of jobs with a timestamp of at
// least since (zero: all), in the order of the log, each event once, with its Sequence. The
// events are complete up to a sequence: a missing event has a higher sequence than all others.
// If yield returns an error, Events returns it. The error matches ErrReplicaBehind if a replica
// cannot have all events.
func (h *History) Events(ctx context.Context, since time.Time, yield func(schemas.Event) error) error {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(historySettings))
	until, err := h.database.Position(ctx, schemas.StreamJob)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	cursors := []*eventCursor{
		{table: "job_started", newEvent: func() schemas.Event { return new(schemas.Started) }},
		{table: "job_epoch", newEvent: func() schemas.Event { return new(schemas.Epoch) }},
		{table: "job_ended", newEvent: func() schemas.Event { return new(schemas.Ended) }},
	}
	for _, c := range cursors {
		defer c.close()
		if err := c.open(ctx, h.database, since, until); err != nil {
			return fmt.Errorf("read history: %w", err)
		}
	}
	return merge(cursors, yield)
}

func merge(cursors []*eventCursor, yield func(schemas.Event) error) error {
	for {
		var first *eventCursor
		for _, c := range cursors {
			if c.event != nil && (first == nil ||
				c.event.Stamped().Sequence < first.event.Stamped().Sequence) {
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

type eventCursor struct {
	table    string
	newEvent func() schemas.Event

	rows  driver.Rows
	event schemas.Event // the current event; nil at the end

	cancel  context.CancelFunc // ends the query
	timeout time.Duration      // of each wait for rows
	silence *time.Timer        // calls cancel if rows do not arrive in time
}

// maxQuery bounds the query of a cursor. Without a deadline of its context, clickhouse-go reads the
// whole result of a query within its ReadTimeout, however much that is.
const maxQuery = 24 * time.Hour

func (c *eventCursor) open(ctx context.Context, d *Database, since time.Time, until uint64) error {
	var from int64
	if since.After(time.Unix(0, 0)) {
		from = since.UnixNano()
	}
	columns := strings.Join(columnNames(reflect.TypeOf(c.newEvent()).Elem()), ", ")
	statement := fmt.Sprintf("SELECT %s FROM %s "+
		"WHERE at >= fromUnixTimestamp64Nano(?, 'UTC') AND sequence <= ? "+
		"ORDER BY sequence LIMIT 1 BY event_id", columns, c.table)

	ctx, c.cancel = context.WithTimeout(ctx, maxQuery)
	c.timeout, c.silence = d.timeout, time.AfterFunc(d.timeout, c.cancel)
	start := time.Now()
	rows, err := d.conn.Query(ctx, statement, from, until)
	if err == nil {
		c.rows = rows
		err = c.next()
	}
	d.metrics.observe("history", time.Since(start), err)
	if serverCode(err) == codeNotInQuorum {
		err = fmt.Errorf("%w: %w", ErrReplicaBehind, err)
	}
	if err != nil {
		return fmt.Errorf("query %s at %s: %w", c.table, d.address, classify(err))
	}
	return nil
}

func (c *eventCursor) next() error {
	c.event = nil
	c.silence.Reset(c.timeout)
	hasRow := c.rows.Next()
	inTime := c.silence.Stop()
	if err := c.rows.Err(); err != nil && !inTime {
		return fmt.Errorf("read %s: no rows for %s: %w", c.table, c.timeout, err)
	} else if err != nil {
		return fmt.Errorf("read %s: %w", c.table, err)
	}
	if !hasRow {
		return nil
	}
	event := c.newEvent()
	if err := c.rows.ScanStruct(event); err != nil {
		return fmt.Errorf("read %s: %w", c.table, err)
	}
	c.event = event
	return nil
}

// close ends the query. It does not read the rest of the result.
func (c *eventCursor) close() {
	if c.cancel != nil {
		c.silence.Stop()
		c.cancel()
	}
	if c.rows != nil {
		_ = c.rows.Close() // next has returned any error of the query
	}
}
