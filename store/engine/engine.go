package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// Options configures the engine. A zero field means its documented default.
type Options struct {
	// DataDir holds all files of the engine; required.
	DataDir string
	// HTTPPort and TCPPort are the ports on 127.0.0.1, up to 65535; 0 lets the system choose. Run
	// fails with ErrPortTaken if another program has one of them.
	HTTPPort, TCPPort int
	// Library is the value of --engine-library; empty means the order of FindLibrary.
	Library string
	// MemoryBytes limits the engine's memory; 0 means a quarter of the memory available to this
	// process, at least 400 MB.
	MemoryBytes int64
	// HostCommand starts the child; the arguments of the host are appended. Empty means this
	// program with the sub-command engine-host.
	HostCommand []string
	// StartTimeout limits a start; 0 means one minute.
	StartTimeout time.Duration
	// StopTimeout limits a stop; the child is killed after it. 0 means eight seconds.
	StopTimeout time.Duration
	// MaxRestartDelay limits the delay before a restart; 0 means ten seconds.
	MaxRestartDelay time.Duration
}

// Engine supervises a ClickHouse engine. Its methods are safe for concurrent use. Run may be
// called once.
type Engine struct {
	options   Options
	log       *slog.Logger
	metrics   *metrics
	readiness *readiness
}

// minMemoryBytes is the smallest memory with which the engine was tested.
const minMemoryBytes = 400_000_000

// database is created at the first start.
const database = "courier"

// New checks the options and starts nothing. log must not be nil; reg may be nil.
func New(o Options, log *slog.Logger, reg prometheus.Registerer) (*Engine, error) {
	if err := setDefaults(&o); err != nil {
		return nil, fmt.Errorf("engine options: %w", err)
	}
	r := &readiness{changed: make(chan struct{})}
	return &Engine{options: o, log: log, metrics: newMetrics(reg), readiness: r}, nil
}

func setDefaults(o *Options) error {
	if o.DataDir == "" {
		return errors.New("the data directory is not set")
	}
	absolute, err := filepath.Abs(o.DataDir)
	if err != nil {
		return err
	}
	o.DataDir = absolute
	isControl := func(r rune) bool { return r < ' ' }
	if !utf8.ValidString(absolute) || strings.ContainsFunc(absolute, isControl) {
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
			o.MemoryBytes = max(memory/4, minMemoryBytes)
		}
	}
	if len(o.HostCommand) == 0 {
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		o.HostCommand = []string{program, "engine-host"}
	}
	o.StartTimeout = cmp.Or(o.StartTimeout, time.Minute)
	o.StopTimeout = cmp.Or(o.StopTimeout, 8*time.Second)
	o.MaxRestartDelay = cmp.Or(o.MaxRestartDelay, 10*time.Second)
	return nil
}

// Ready waits until the engine answers and returns its endpoint. After a crash of the engine it
// waits for the restart, which keeps the ports. After the end of Run it returns the error of Run, or
// ErrStopped.
func (e *Engine) Ready(ctx context.Context) (Connection, error) {
	return e.readiness.wait(ctx)
}

// Run starts the engine and keeps it running until ctx ends. Then it stops the engine and returns
// nil. It returns an error if the data directory is in use, no library is found, or the first
// start fails for a reason that a restart cannot cure. Once the engine has answered, it is
// restarted whenever it ends.
func (e *Engine) Run(ctx context.Context) error {
	err := e.run(ctx)
	e.metrics.up.Set(0)
	e.readiness.set(Connection{}, false, cmp.Or(err, ErrStopped))
	return err
}

func (e *Engine) run(ctx context.Context) (err error) {
	if !hosted {
		return fmt.Errorf("run the engine: %w", ErrUnsupported)
	}
	run := filepath.Join(e.options.DataDir, "run")
	store := filepath.Join(e.options.DataDir, "store")
	if err := os.MkdirAll(run, 0o700); err != nil {
		return fmt.Errorf("create the engine's directory: %w", err)
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
		return fmt.Errorf("create the engine's directory: %w", err)
	}
	library, err := FindLibrary(e.options.Library)
	if err != nil {
		return err
	}
	passwords, err := loadCredentials(e.options.DataDir)
	if err != nil {
		return err
	}
	s := settings{
		Store:           store,
		Run:             run,
		HTTPPort:        e.options.HTTPPort,
		TCPPort:         e.options.TCPPort,
		MemoryBytes:     e.options.MemoryBytes,
		CourierPassword: passwords.Courier,
		ReaderPassword:  passwords.Reader,
	}
	v := &supervisor{Engine: e, library: library, lock: lock, settings: s}
	return v.supervise(ctx)
}

// Sentinels for errors.Is.
var (
	// ErrNotFound reports that no engine is installed. The error lists the searched paths and
	// the command that installs one.
	ErrNotFound = errors.New("no ClickHouse engine on this machine")

	// ErrUnsupported reports that this system or this build cannot run the engine.
	ErrUnsupported = errors.New("not supported here")

	// ErrNoNPM reports that Install does not find npm. The error names an alternative.
	ErrNoNPM = errors.New("npm is not installed")

	// ErrIntegrity reports a package with a checksum other than the pinned one.
	ErrIntegrity = errors.New("the engine package does not have the pinned checksum")

	// ErrInUse reports that another engine uses the data directory.
	ErrInUse = errors.New("the data directory is in use by another engine")

	// ErrPortTaken reports that another program listens on a requested port.
	ErrPortTaken = errors.New("the port is taken by another program")

	// ErrStopped reports that Run has ended with its context.
	ErrStopped = errors.New("the engine is stopped")
)

var errLocked = errors.New("locked")
