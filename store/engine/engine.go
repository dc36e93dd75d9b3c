package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// Options say what engine to run. A zero field means what its comment states.
type Options struct {
	// DataDir holds everything the engine keeps; required.
	DataDir string
	// HTTPPort and TCPPort are the ports on 127.0.0.1, up to 65535; 0 lets the
	// system choose.
	HTTPPort, TCPPort int
	// PortsAreDefaults says that nobody asked for these ports: one that is taken
	// is replaced by a free one. Otherwise a taken port is ErrPortTaken.
	PortsAreDefaults bool
	// Library is the value of --engine-library; empty means FindLibrary's order.
	Library string
	// Getenv reads the environment for FindLibrary; nil means os.Getenv.
	Getenv func(string) string
	// MemoryBytes bounds the engine's memory; 0 means a quarter of what this
	// process may use, at least 400 MB.
	MemoryBytes int64
	// HostCommand starts the child, and gets the host's arguments appended;
	// empty means this program with the sub-command engine-host.
	HostCommand []string
	// Database is the product's, made at the first start; empty means courier.
	Database string
	// QueryLog keeps system.query_log.
	QueryLog bool
	// StartTimeout bounds a start; 0 means a minute.
	StartTimeout time.Duration
	// StopTimeout bounds a stop, after which the child is killed; 0 means eight
	// seconds.
	StopTimeout time.Duration
	// MaxRestartDelay is the longest pause before a restart; 0 means ten seconds.
	MaxRestartDelay time.Duration
}

// Endpoint is where the engine answers, and to whom. Addresses hold no
// passwords, and its form in a log does not either.
type Endpoint struct {
	// HTTPURL is such as http://127.0.0.1:8123, NativeURL such as
	// clickhouse://127.0.0.1:9000.
	HTTPURL, NativeURL string
	// User may read and write every database, ReaderUser only read Database.
	User, Password             string
	ReaderUser, ReaderPassword string
	// Database is the product's; it exists.
	Database string
	// Version is the engine's, such as 26.7.2.1.
	Version string
	// PID is the child's process ID; a restart changes it.
	PID int

	httpPort, tcpPort int
}

// LogValue leaves out the passwords.
func (p Endpoint) LogValue() slog.Value {
	return slog.GroupValue(slog.String("http_url", p.HTTPURL), slog.String("native_url", p.NativeURL),
		slog.String("user", p.User), slog.String("database", p.Database), slog.String("version", p.Version), slog.Int("pid", p.PID))
}

// Engine supervises one ClickHouse engine. Its methods may be called from any
// goroutine; Run once.
type Engine struct {
	options Options
	log     *slog.Logger
	metrics *metrics
	state   *state
}

// smallestMemory is the least memory in bytes with which the engine was seen to work.
const smallestMemory = 400_000_000

var databasePattern = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,63}$`)

// New checks the options; it starts nothing. log must not be nil; reg may be.
func New(o Options, log *slog.Logger, reg prometheus.Registerer) (*Engine, error) {
	if err := complete(&o); err != nil {
		return nil, fmt.Errorf("engine options: %w", err)
	}
	return &Engine{options: o, log: log, metrics: newMetrics(reg), state: newState()}, nil
}

// complete checks options and fills in the defaults.
func complete(o *Options) error {
	if o.DataDir == "" {
		return errors.New("no data directory")
	}
	absolute, err := filepath.Abs(o.DataDir)
	if err != nil {
		return err
	}
	o.DataDir = absolute
	if !utf8.ValidString(absolute) || strings.ContainsFunc(absolute, func(r rune) bool { return r < ' ' }) {
		return fmt.Errorf("data directory %q cannot be written in a configuration file", absolute)
	}
	for _, port := range []int{o.HTTPPort, o.TCPPort} {
		if port != 0 && !isPort(port) {
			return fmt.Errorf("port %d is outside 0 to 65535", port)
		}
	}
	if o.HTTPPort != 0 && o.HTTPPort == o.TCPPort {
		return fmt.Errorf("HTTP and native port are both %d", o.HTTPPort)
	}
	if o.MemoryBytes < 0 {
		return fmt.Errorf("memory of %d bytes is negative", o.MemoryBytes)
	}
	if o.MemoryBytes == 0 {
		if memory := physicalMemory(); memory > 0 {
			o.MemoryBytes = max(memory/4, smallestMemory)
		}
	}
	if o.Database == "" {
		o.Database = "courier"
	}
	if !databasePattern.MatchString(o.Database) || o.Database == "default" || o.Database == "system" || o.Database == "information_schema" {
		return fmt.Errorf("database %q is not a name of small letters, digits and _, or the engine's own", o.Database)
	}
	return completeRun(o)
}

// completeRun fills in how the child is run.
func completeRun(o *Options) error {
	if len(o.HostCommand) == 0 {
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		o.HostCommand = []string{program, "engine-host"}
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	for _, d := range []struct {
		value *time.Duration
		given time.Duration
	}{{&o.StartTimeout, time.Minute}, {&o.StopTimeout, 8 * time.Second}, {&o.MaxRestartDelay, 10 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.given
		}
	}
	return nil
}

// Ready waits until the engine answers and says where. After the engine died it
// waits for the next start; when Run has ended it returns Run's error, or
// ErrStopped if there was none. The ports stay the same over restarts unless
// another program took one that nobody had asked for: ask again after a
// connection error.
func (e *Engine) Ready(ctx context.Context) (Endpoint, error) {
	return e.state.wait(ctx)
}

// Run starts the engine and keeps it running until ctx ends; then it stops it
// and returns nil. It returns an error when the data directory is in use, no
// library is found, or the first start fails for a reason that the next would
// share; once the engine has answered, it is started again however it ends.
func (e *Engine) Run(ctx context.Context) error {
	err := e.run(ctx)
	e.metrics.up.Set(0)
	e.state.end(err)
	return err
}

// run does Run's work between lock and release.
func (e *Engine) run(ctx context.Context) (err error) {
	if !canSupervise {
		return fmt.Errorf("run the engine: %w", ErrUnsupported)
	}
	run, store := filepath.Join(e.options.DataDir, "run"), filepath.Join(e.options.DataDir, "store")
	if err := os.MkdirAll(run, 0o700); err != nil {
		return fmt.Errorf("make the engine's directory: %w", err)
	}
	lock, err := lockData(ctx, run)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	if err := os.MkdirAll(store, 0o700); err != nil {
		return fmt.Errorf("make the engine's directory: %w", err)
	}
	library, err := FindLibrary(e.options.Library, e.options.Getenv)
	if err != nil {
		return err
	}
	for _, s := range library.Skipped {
		e.log.Info("engine passed over", "reason", s)
	}
	passwords, err := loadCredentials(e.options.DataDir)
	if err != nil {
		return err
	}
	s := settings{
		store: store, run: run, database: e.options.Database, memoryBytes: e.options.MemoryBytes, queryLog: e.options.QueryLog,
		courierPassword: passwords.Courier, readerPassword: passwords.Reader, server: library.Server,
	}
	v := &supervisor{Engine: e, library: library, lock: lock, settings: s}
	return v.supervise(ctx)
}
