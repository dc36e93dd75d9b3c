package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
)

// Sentinels for errors.Is.
var (
	// ErrAddress reports a URL of ClickHouse, or a file for the connection, that is invalid.
	ErrAddress = errors.New("not an address of ClickHouse")

	// ErrNewer reports a database that a newer version of this program has migrated.
	ErrNewer = errors.New("database is newer than this program")

	// ErrRefused reports an error of ClickHouse that a retry cannot cure: a wrong password, a
	// missing privilege, or a server that does not know the SQL of this program.
	ErrRefused = errors.New("refused by clickhouse")
)

// Options configures the connection to the database and the size of batches.
type Options struct {
	// URL is clickhouse://user:password@host:9000/database or http://…:8123/…. The database is
	// created if it does not exist; default "courier".
	URL string

	MaxMessages int           // of a batch, 1 to schemas.MaxBatchMessages, which is the default
	MaxAge      time.Duration // of the first message of a batch; default one second
	Timeout     time.Duration // of a statement; default 30 seconds, a third of AckWait

	// CAFile holds PEM certificates of the authorities that sign the server's certificate. If
	// set, TLS is required. "" means the authorities of the system, and TLS if the URL has
	// secure=true or https.
	CAFile string

	// PasswordFile holds the password, instead of the URL. Open reads it.
	PasswordFile string
}

// Database is a connection pool to a ClickHouse database.
type Database struct {
	conn    driver.Conn
	options *clickhouse.Options
	address string // URL without user, password and settings
	timeout time.Duration
	log     *slog.Logger
	metrics *databaseMetrics
	shard   *shard // nil: the database has the rows of all keys

	isReplica bool // one server of several replicas; see settled

	reloading sync.Mutex // serializes reloads of tables
}

// Open checks the options and returns a database without connecting to it: each statement
// connects by itself, and Migrate waits until the server is available. If ctx has ended, Open
// fails. Otherwise the error matches ErrAddress. No error and no log line contains the password.
func Open(
	ctx context.Context, o Options, log *slog.Logger, reg prometheus.Registerer,
) (*Database, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d := &Database{address: withoutSecrets(o.URL), timeout: o.Timeout, log: log}
	if d.timeout <= 0 {
		d.timeout = 30 * time.Second
	}
	options, err := parseURL(o.URL)
	if err == nil {
		err = o.addSecrets(options)
	}
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w: %w", d.address, ErrAddress, err)
	}
	options.ReadTimeout = d.timeout // for statements without a deadline
	if options.Protocol == clickhouse.Native {
		options.DialContext = dialBounded(options, d.timeout)
	}
	if d.conn, err = clickhouse.Open(options); err != nil {
		return nil, fmt.Errorf("open database %s: %w: %w", d.address, ErrAddress, err)
	}
	d.options, d.metrics = options, newDatabaseMetrics(reg)
	return d, nil
}

// replicaSettings are the settings of all statements in a shard with several replicas. An insert
// succeeds when most replicas have it, so that it survives the loss of one, and a lookup on any
// replica sees all of these inserts. Otherwise an insert fails with TOO_FEW_LIVE_REPLICAS (285),
// UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE (286) or UNKNOWN_STATUS_OF_INSERT (319), and the store
// repeats the same batch with the same token.
var replicaSettings = clickhouse.Settings{
	"insert_quorum":                 "auto",
	"insert_quorum_parallel":        0,
	"insert_quorum_timeout":         10_000, // ms; by default ten minutes, also if the Keeper restarts
	"select_sequential_consistency": 1,
}

// on returns another database on other servers, with the credentials and settings of d and further
// settings. Statements go to the first server that accepts a connection.
func (d *Database) on(
	servers []string, database string, settings clickhouse.Settings, reg prometheus.Registerer,
) (*Database, error) {
	o := *d.options
	o.Addr, o.Auth.Database = servers, database
	o.Settings = maps.Clone(o.Settings)
	if o.Settings == nil {
		o.Settings = make(clickhouse.Settings)
	}
	maps.Copy(o.Settings, settings)
	o.ConnOpenStrategy = clickhouse.ConnOpenInOrder
	other := &Database{
		options: &o,
		address: fmt.Sprintf("clickhouse://%s/%s", strings.Join(servers, ","), database),
		timeout: d.timeout,
		log:     d.log,
		metrics: newDatabaseMetrics(reg),
	}
	var err error
	if other.conn, err = clickhouse.Open(&o); err != nil {
		return nil, fmt.Errorf("open database %s: %w: %w", other.address, ErrAddress, err)
	}
	return other, nil
}

// Address returns the database's URL without user, password and settings.
func (d *Database) Address() string { return d.address }

// Close closes all connections.
func (d *Database) Close() error { return d.conn.Close() }

// connect connects to the database, and creates it if the server does not have it.
func (d *Database) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	err := d.conn.Ping(ctx)
	if d.options.Protocol == clickhouse.HTTP && err == nil {
		err = d.conn.Exec(ctx, "SELECT 1") // over HTTP, Ping does not check the database
	}
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

// Exec runs a statement without a result once. The arguments replace question marks.
func (d *Database) Exec(ctx context.Context, statement string, args ...any) error {
	return d.exec(ctx, "exec", statement, args...)
}

// exec is Exec with a kind for errors and metrics.
func (d *Database) exec(ctx context.Context, kind, statement string, args ...any) error {
	ctx, running := d.begin(ctx, kind, clickhouse.Settings{"async_insert": 0})
	return running.end(d.conn.Exec(ctx, statement, args...))
}

// retry calls attempt with a growing delay until it succeeds, fails with ErrRefused or
// ErrNewer, or ctx ends. It returns the error of the last attempt.
func (d *Database) retry(
	ctx context.Context, action string, attempt func(context.Context) error,
) error {
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
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}
