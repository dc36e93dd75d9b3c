package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"courier/bus"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

type statement struct {
	database *Database
	kind     string // in errors and metrics
	start    time.Time
	cancel   context.CancelFunc
}

// timeoutKey is the context key of a timeout that is longer than the database's.
type timeoutKey struct{}

func (d *Database) timeoutOf(ctx context.Context) time.Duration {
	longer, _ := ctx.Value(timeoutKey{}).(time.Duration)
	return max(d.timeout, longer)
}

// begin starts a statement, with its deadline and settings. The caller must call end.
func (d *Database) begin(
	ctx context.Context, kind string, settings clickhouse.Settings,
) (context.Context, *statement) {
	s := &statement{database: d, kind: kind, start: time.Now()}
	ctx, s.cancel = context.WithTimeout(ctx, d.timeoutOf(ctx))
	if prefix, ok := ctx.Value(writerKey{}).(string); ok {
		ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(prefix+rand.Text()))
	}
	if settings != nil {
		ctx = clickhouse.Context(ctx, clickhouse.WithSettings(settings))
	}
	return ctx, s
}

func (s *statement) end(err error) error {
	s.cancel()
	s.database.metrics.observe(s.kind, time.Since(s.start), err)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", s.kind, s.database.address, classify(err))
	}
	return nil
}

// Codes of ClickHouse errors (src/Common/ErrorCodes.cpp).
const (
	codeSyntax          = 62
	codeUnknownDatabase = 81
	codeQuotaExceeded   = 201
	codeNotInQuorum     = 289 // REPLICA_IS_NOT_IN_QUORUM
	codeReplicaBehind   = 517 // CANNOT_ASSIGN_ALTER
)

// consoleQuota is the quota of store/engine's default user, which is used up at the start.
const consoleQuota = "`courier_console`"

// permanentCodes are errors that a retry of the same statement cannot cure.
var permanentCodes = map[int32]bool{
	16:         true, // NO_SUCH_COLUMN_IN_TABLE
	36:         true, // BAD_ARGUMENTS
	43:         true, // ILLEGAL_TYPE_OF_ARGUMENT
	46:         true, // UNKNOWN_FUNCTION
	47:         true, // UNKNOWN_IDENTIFIER
	50:         true, // UNKNOWN_TYPE
	codeSyntax: true,
	80:         true, // INCORRECT_QUERY
	115:        true, // UNKNOWN_SETTING
	192:        true, // UNKNOWN_USER
	194:        true, // REQUIRED_PASSWORD
	497:        true, // ACCESS_DENIED
	516:        true, // AUTHENTICATION_FAILED
}

func serverCode(err error) int32 {
	var e *clickhouse.Exception
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// classify adds ErrRefused to permanent errors. The one of the quota that package engine names is told from
// those of other quotas by that name.
func classify(err error) error {
	if serverCode(err) == codeQuotaExceeded && strings.Contains(err.Error(), consoleQuota) {
		return fmt.Errorf("%w: the embedded ClickHouse of courier all accepts no statements of the "+
			"default user: name the user courier with its password in the URL; both are in "+
			"clickhouse/credentials.json of the data directory; courier store verify --data finds "+
			"them by itself", ErrRefused)
	}
	if permanentCodes[serverCode(err)] {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// writerKey is the context key of the query ID prefix of a stream's writer.
type writerKey struct{}

// asWriter gives the statements of a stream's writer query IDs with a common prefix.
func (d *Database) asWriter(ctx context.Context, stream string) context.Context {
	prefix := fmt.Sprintf("courier/%s/%s/", d.options.Auth.Database, stream)
	return context.WithValue(ctx, writerKey{}, prefix)
}

// connect connects to the database, and creates it if the server does not have it.
func (d *Database) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	err := d.conn.Ping(ctx)
	if serverCode(err) != codeUnknownDatabase {
		return classify(err)
	}

	o := *d.options
	o.Auth.Database = "default"
	server, err := clickhouse.Open(&o)
	if err != nil {
		return err
	}
	defer server.Close()
	create := "CREATE DATABASE IF NOT EXISTS " + d.options.Auth.Database
	return classify(server.Exec(ctx, create))
}

// Query runs a statement once and appends its rows to dst, a pointer to a slice of structs with
// ch tags. The arguments replace question marks.
func (d *Database) Query(ctx context.Context, dst any, statement string, args ...any) error {
	ctx, query := d.begin(ctx, "query", nil)
	return query.end(d.conn.Select(ctx, dst, statement, args...))
}

func (d *Database) eachRow(
	ctx context.Context, statement string, args []any, visit func(driver.Rows) error,
) error {
	ctx, query := d.begin(ctx, "query", nil)
	rows, err := d.conn.Query(ctx, statement, args...)
	if err == nil {
		defer rows.Close()
		for err == nil && rows.Next() {
			err = visit(rows)
		}
		err = errors.Join(err, rows.Err())
	}
	return query.end(err)
}

func values[T any](ctx context.Context, d *Database, statement string, args ...any) (all []T, err error) {
	err = d.eachRow(ctx, statement, args, func(rows driver.Rows) error {
		var v T
		err := rows.Scan(&v)
		all = append(all, v)
		return err
	})
	return all, err
}

func value[T any](ctx context.Context, d *Database, statement string, args ...any) (v T, err error) {
	all, err := values[T](ctx, d, statement, args...)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%.60s has %d rows, want 1", statement, len(all))
	}
	if err != nil {
		return v, err
	}
	return all[0], nil
}

// Exec runs a statement without a result once. The arguments replace question marks.
func (d *Database) Exec(ctx context.Context, statement string, args ...any) error {
	return d.exec(ctx, "exec", statement, args...)
}

func (d *Database) exec(ctx context.Context, kind, statement string, args ...any) error {
	ctx, running := d.begin(ctx, kind, clickhouse.Settings{"async_insert": 0})
	return running.end(d.conn.Exec(ctx, statement, args...))
}

// retry calls attempt with a growing delay until it succeeds, fails with ErrRefused or
// ErrNewer, or ctx ends. It returns the error of the last attempt.
func (d *Database) retry(ctx context.Context, action string, attempt func(context.Context) error) error {
	const maxDelay = 10 * time.Second
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, maxDelay) {
		err := attempt(ctx)
		if err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrNewer) {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		d.log.Warn("clickhouse is not available yet", "action", action, "address", d.address,
			"retry_seconds", delay.Seconds(), "error", err)
		if bus.Sleep(ctx, delay) != nil {
			return err
		}
	}
}
