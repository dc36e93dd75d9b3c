package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"courier/bus"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
)

// Sentinels for errors.Is.
var (
	// ErrAddress says that the URL of ClickHouse cannot be used as it is.
	ErrAddress = errors.New("not an address of ClickHouse")
	// ErrNewer says that the database was migrated by a newer program.
	ErrNewer = errors.New("database is newer than this program")
	// ErrRefused says that ClickHouse answered, and that trying again cannot help:
	// a wrong password, a missing right, or a server that does not know our SQL.
	ErrRefused = errors.New("refused by clickhouse")
)

// Options says where the database is and how batches are made.
type Options struct {
	URL         string        // clickhouse://user:password@host:9000/database or http://…:8123/…; the database is made if absent, default "courier"
	MaxMessages int           // messages in one batch, 1 to schemas.MaxBatchMessages, the default
	MaxAge      time.Duration // of a batch's first message before the batch is written; default one second
	Timeout     time.Duration // of one statement; default 30 seconds, a third of the durables' AckWait

	CAFile       string // certificates in PEM of the authorities that sign the server's; given, nothing but TLS is spoken. "": those of the system, and TLS where the URL says secure=true or https
	PasswordFile string // holds the password, in place of one in the URL; read when the database is opened
}

// DefaultDatabase is used where the URL names none.
const DefaultDatabase = "courier"

// Database is a connection pool to one ClickHouse database.
type Database struct {
	conn    driver.Conn
	options *clickhouse.Options
	address string // its URL without user, password and settings
	timeout time.Duration
	log     *slog.Logger
	metrics *databaseMetrics

	reloading sync.Mutex // held while a table is loaded again
}

// Open checks the options and returns a database without calling it: each
// statement connects by itself, and Migrate waits until it is there. ctx is that
// of the caller's start. The error is ErrAddress; no error and no log line ever
// carries the password.
func Open(ctx context.Context, o Options, log *slog.Logger, reg prometheus.Registerer) (*Database, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d := &Database{address: address(o.URL), timeout: o.Timeout, log: log}
	if d.timeout <= 0 {
		d.timeout = 30 * time.Second
	}
	options, err := parse(o.URL)
	if err == nil {
		err = o.secrets(options)
	}
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w: %w", d.address, ErrAddress, err)
	}
	options.ReadTimeout = d.timeout // of one answer's next bytes, where a question has no deadline
	if d.conn, err = clickhouse.Open(options); err != nil {
		return nil, fmt.Errorf("open database %s: %w: %w", d.address, ErrAddress, err)
	}
	d.options, d.metrics = options, newDatabaseMetrics(reg)
	return d, nil
}

var databaseName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// parse reads the URL and adds what every statement needs.
func parse(url string) (*clickhouse.Options, error) {
	scheme, _, _ := strings.Cut(url, "://")
	switch scheme {
	case "clickhouse", "tcp", "http", "https":
	default:
		return nil, errors.New("it does not begin with clickhouse://, tcp://, http:// or https://")
	}
	if scheme == "https" && !strings.Contains(url, "secure=") {
		separator := "?"
		if strings.Contains(url, "?") {
			separator = "&"
		}
		url += separator + "secure=true"
	}
	options, err := clickhouse.ParseDSN(url)
	if err != nil { // may quote what it could not read, and that may be the password
		return nil, errors.New("host, port or settings cannot be read (special characters of user and password are written as %xx)")
	}
	if options.Auth.Database == "" {
		options.Auth.Database = DefaultDatabase
	}
	if !databaseName.MatchString(options.Auth.Database) {
		return nil, fmt.Errorf("the database name %.80q is not 1 to 64 letters, digits and _", options.Auth.Database)
	}
	if options.DialTimeout == 0 {
		options.DialTimeout = 5 * time.Second
	}
	if options.MaxOpenConns == 0 {
		options.MaxOpenConns = 17 // 4 streams, 3 for each of 3 histories, and questions
	}
	if options.Compression == nil && options.Protocol == clickhouse.Native {
		options.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	options.ClientInfo.Products = append(options.ClientInfo.Products, struct{ Name, Version string }{"courier", ""})
	return options, nil
}

// secrets adds what the files of the options hold. No error quotes it.
func (o *Options) secrets(options *clickhouse.Options) error {
	if o.PasswordFile != "" {
		if options.Auth.Password != "" {
			return errors.New("the URL has a password, and a file with one is given too: leave one out")
		}
		data, err := os.ReadFile(o.PasswordFile)
		if err != nil {
			return fmt.Errorf("password: %w", err)
		}
		if options.Auth.Password = strings.TrimRight(string(data), "\r\n"); options.Auth.Password == "" {
			return fmt.Errorf("password: %s is empty", o.PasswordFile)
		}
	}
	if o.CAFile == "" {
		return nil
	}
	authorities, err := bus.Authorities(o.CAFile)
	if err != nil {
		return err
	}
	if strings.HasPrefix(o.URL, "http://") {
		return errors.New("authorities are given, but http:// has no TLS: write https://")
	}
	if options.TLS == nil {
		options.TLS = &tls.Config{}
	}
	options.TLS.RootCAs = authorities
	return nil
}

// address returns the URL without user, password and settings, also of a URL
// that cannot be parsed.
func address(url string) string {
	scheme, rest, found := strings.Cut(url, "://")
	if !found {
		return "(no scheme)"
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + "://" + rest
}

// Address returns the database's URL without user, password and settings.
func (d *Database) Address() string { return d.address }

// connect calls the database once, and makes it if the server has none of its name.
func (d *Database) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	err := d.conn.Ping(ctx)
	if d.options.Protocol == clickhouse.HTTP && err == nil {
		err = d.conn.Exec(ctx, "SELECT 1") // over HTTP a ping does not look at the database
	}
	if code(err) != codeUnknownDatabase {
		return refused(err)
	}
	o := *d.options
	o.Auth.Database = "default"
	server, err := clickhouse.Open(&o)
	if err != nil {
		return err
	}
	defer server.Close()
	return refused(server.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+d.options.Auth.Database))
}

// Query fills dst, a pointer to a slice of structs with ch tags, with the rows of
// a statement. Its arguments stand for question marks. It tries once.
func (d *Database) Query(ctx context.Context, dst any, statement string, args ...any) error {
	ctx, end := d.begin(ctx, "query", nil)
	return end.with(d.conn.Select(ctx, dst, statement, args...))
}

// Exec runs a statement that has no result. Its arguments stand for question
// marks. It tries once.
func (d *Database) Exec(ctx context.Context, statement string, args ...any) error {
	return d.exec(ctx, "exec", statement, args...)
}

// exec is Exec under another name in errors and metrics.
func (d *Database) exec(ctx context.Context, kind, statement string, args ...any) error {
	ctx, end := d.begin(ctx, kind, clickhouse.Settings{"async_insert": 0})
	return end.with(d.conn.Exec(ctx, statement, args...))
}

// guarded is how long a statement's context outlives it. clickhouse-go 2.50 guards
// a batch by a goroutine that waits for the end of the batch or of its context. Woken late, by
// both, it may take the second for the first and close a connection that another
// statement has already.
const guarded = 5 * time.Second

// statement is one that was begun.
type statement struct {
	database *Database
	kind     string // in errors and metrics
	start    time.Time
	cancel   context.CancelFunc
}

// begin returns the context of one statement, with its deadline and settings, and
// what must be told how it ended.
func (d *Database) begin(ctx context.Context, kind string, settings clickhouse.Settings) (context.Context, *statement) {
	s := &statement{database: d, kind: kind, start: time.Now()}
	ctx, s.cancel = context.WithTimeout(named(ctx), d.timeout)
	if settings != nil {
		ctx = clickhouse.Context(ctx, clickhouse.WithSettings(settings))
	}
	return ctx, s
}

// with counts the statement, and names the database in its error.
func (s *statement) with(err error) error {
	if err == nil {
		time.AfterFunc(guarded, s.cancel)
	} else {
		s.cancel()
	}
	s.database.metrics.observe(s.kind, time.Since(s.start), err)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", s.kind, s.database.address, refused(err))
	}
	return nil
}

// Close ends all connections.
func (d *Database) Close() error { return d.conn.Close() }

// Codes of ClickHouse's own errors (src/Common/ErrorCodes.cpp).
const (
	codeSyntax          = 62
	codeUnknownDatabase = 81
)

// final are codes that the same statement will meet again: bad arguments and
// types, unknown functions, names, types and settings, syntax, users, passwords, rights.
var final = map[int32]bool{36: true, 43: true, 46: true, 47: true, 50: true, codeSyntax: true, 80: true, 115: true, 192: true, 194: true, 497: true, 516: true}

// code returns the server's error code, 0 if the error is not an answer of the server.
func code(err error) int32 {
	var e *clickhouse.Exception
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// refused marks an error that trying again cannot cure. An empty query is none of
// ours: it is a table's definition on ClickHouse's disk, which (26.7) is left empty
// where the disk was full while the table was made.
func refused(err error) error {
	if code(err) == codeSyntax && strings.Contains(err.Error(), "Empty query") {
		return fmt.Errorf("%w: the definition of a table is empty on its disk, as of one that was made while the disk was full: drop that table, or the database if it is new, and start again; courier store rebuild brings in what the log has: %w", ErrRefused, err)
	}
	if final[code(err)] {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// retry calls attempt until it succeeds, is refused or ctx ends, with growing
// delay. The error is the last attempt's.
func (d *Database) retry(ctx context.Context, what string, attempt func(context.Context) error) error {
	const longest = 10 * time.Second
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, longest) {
		err := attempt(ctx)
		if err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrNewer) {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		d.log.Warn("clickhouse is not there yet", "doing", what, "address", d.address, "retry_seconds", delay.Seconds(), "error", err)
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}
