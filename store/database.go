package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
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
	// ErrAddress reports a URL of ClickHouse, or a file for the connection, that is invalid.
	ErrAddress = errors.New("not an address of ClickHouse")

	// ErrNewer reports a database that a newer version of this program has migrated.
	ErrNewer = errors.New("database is newer than this program")

	// ErrRefused reports an error of ClickHouse that a retry cannot cure: a wrong password, a
	// missing privilege, or a server that does not know the SQL of this program.
	ErrRefused = errors.New("refused by clickhouse")
)

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
func Open(ctx context.Context, o Options, log *slog.Logger, reg prometheus.Registerer) (*Database, error) {
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
	options.DialContext = dialBounded(options, d.timeout)
	if d.conn, err = clickhouse.Open(options); err != nil {
		return nil, fmt.Errorf("open database %s: %w: %w", d.address, ErrAddress, err)
	}
	d.options, d.metrics = options, newDatabaseMetrics(reg)
	return d, nil
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

// visit calls f with a database of one server, which it closes afterwards.
func (d *Database) visit(server, database string, f func(*Database) error) error {
	other, err := d.on([]string{server}, database, nil, nil)
	if err != nil {
		return err
	}
	err = f(other)
	_ = other.Close() // its statements have ended
	return err
}

// Address returns the database's URL without user, password and settings.
func (d *Database) Address() string { return d.address }

// Close closes all connections.
func (d *Database) Close() error { return d.conn.Close() }

// Options configures the connection to the database and the size of batches.
type Options struct {
	// URL is clickhouse://user:password@host:9000/database. The database is created if it does not
	// exist; default "courier".
	URL string

	MaxMessages int           // of a batch, 1 to schemas.MaxBatchMessages, which is the default
	MaxAge      time.Duration // of the first message of a batch; default one second
	Timeout     time.Duration // of a statement; default 30 seconds, a third of AckWait

	// CAFile holds PEM certificates of the authorities that sign the server's certificate. If
	// set, TLS is required. "" means the authorities of the system, and TLS if the URL has
	// secure=true.
	CAFile string

	// PasswordFile holds the password, instead of the URL. Open reads it.
	PasswordFile string
}

// DefaultDatabase is the database for a URL that names none.
const DefaultDatabase = "courier"

var databaseName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

func parseURL(url string) (*clickhouse.Options, error) {
	if !strings.HasPrefix(url, "clickhouse://") {
		return nil, errors.New("it does not begin with clickhouse://")
	}
	options, err := clickhouse.ParseDSN(url)
	if err != nil { // not quoted: the error may contain the password
		return nil, errors.New("host, port or settings cannot be read " +
			"(write special characters of user and password as %xx)")
	}

	options.Auth.Database = cmp.Or(options.Auth.Database, DefaultDatabase)
	if !databaseName.MatchString(options.Auth.Database) {
		return nil, fmt.Errorf("the database name %.80q is not 1 to 64 letters, digits and _",
			options.Auth.Database)
	}
	options.DialTimeout = cmp.Or(options.DialTimeout, 5*time.Second)
	options.MaxOpenConns = cmp.Or(options.MaxOpenConns, 17) // 4 streams, 3 histories of 3, and queries
	options.Compression = cmp.Or(options.Compression, &clickhouse.Compression{Method: clickhouse.CompressionLZ4})
	product := struct{ Name, Version string }{"courier", ""}
	options.ClientInfo.Products = append(options.ClientInfo.Products, product)
	return options, nil
}

// addSecrets adds the contents of the option's files. No error quotes them.
func (o *Options) addSecrets(options *clickhouse.Options) error {
	if o.PasswordFile != "" {
		if options.Auth.Password != "" {
			return errors.New("the password is given twice: remove it from the URL, " +
				"or the password file")
		}
		data, err := os.ReadFile(o.PasswordFile)
		if err != nil {
			return fmt.Errorf("password: %w", err)
		}
		options.Auth.Password = strings.TrimRight(string(data), "\r\n")
		if options.Auth.Password == "" {
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
	options.TLS = cmp.Or(options.TLS, &tls.Config{})
	options.TLS.RootCAs = authorities
	return nil
}

// withoutSecrets returns a URL without user, password and settings, also if it is invalid.
func withoutSecrets(url string) string {
	scheme, rest, found := strings.Cut(url, "://")
	if !found {
		return "(no scheme)"
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + "://" + rest
}

// boundedConn is a connection each of whose writes has a timeout, instead of the deadline of the
// statement. clickhouse-go 2.50 sends the query and the external tables of a SELECT without a
// deadline: if a server accepted the connection but does not read, the statement would not end.
type boundedConn struct {
	*net.TCPConn // which clickhouse-go checks before it uses an idle connection
	timeout      time.Duration
}

// Write is net.Conn.Write with a timeout.
func (c *boundedConn) Write(data []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(data)
}

func dialBounded(
	o *clickhouse.Options, timeout time.Duration,
) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
		defer cancel()
		var dialer net.Dialer
		plain, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		conn := &boundedConn{plain.(*net.TCPConn), timeout}
		if o.TLS == nil {
			return conn, nil
		}

		config := o.TLS.Clone()
		if config.ServerName == "" {
			if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return secure, nil
	}
}
