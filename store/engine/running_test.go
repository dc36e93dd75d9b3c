//go:build linux && amd64 && !noengine

package engine_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"courier/store/engine"
)

// patience bounds the waits of a test. It only guards against hanging.
const patience = 5 * time.Minute

// runningEngine is an Engine under test whose Run was called.
type runningEngine struct {
	*engine.Engine
	t       testing.TB
	options engine.Options
	cancel  context.CancelFunc
	done    chan error
	log     *concurrentLog
	reg     *prometheus.Registry
}

// concurrentLog is a buffer for concurrent writers.
type concurrentLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *concurrentLog) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *concurrentLog) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// run starts an Engine, which is stopped when the test ends.
func run(t testing.TB, o engine.Options) *runningEngine {
	t.Helper()
	log, reg := &concurrentLog{}, prometheus.NewRegistry()
	e, err := engine.New(o, slog.New(slog.NewTextHandler(log, nil)), reg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &runningEngine{Engine: e, t: t, options: o, cancel: cancel, done: make(chan error, 1), log: log, reg: reg}
	go func() { r.done <- e.Run(ctx) }()
	t.Cleanup(func() { cancel(); r.wait() })
	return r
}

// wait returns the result of Run; it may be called several times.
func (r *runningEngine) wait() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(patience):
		r.t.Fatal("Run does not return")
		return nil
	}
}

// stop ends Run and returns its result.
func (r *runningEngine) stop() error { r.cancel(); return r.wait() }

// ready waits for the endpoint.
func (r *runningEngine) ready() engine.Connection {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	p, err := r.Ready(ctx)
	if err != nil {
		r.t.Fatalf("Ready() = %v; log:\n%s", err, r.log)
	}
	return p
}

// readyAfter waits for an endpoint with a different PID.
func (r *runningEngine) readyAfter(pid int) engine.Connection {
	r.t.Helper()
	var p engine.Connection
	eventually(r.t, "the engine is started again", func() bool {
		p = r.ready()
		return p.PID != pid
	})
	return p
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("timeout waiting for: %s", what)
		}
	}
}

// fake returns Options that run the fake host in a mode.
func fake(t testing.TB, mode string) engine.Options {
	t.Helper()
	return engine.Options{
		DataDir: t.TempDir(), Library: elfLibrary(t), Getenv: func(string) string { return "" },
		HostCommand: []string{testProgram(t), roleFakeHost, mode}, StartTimeout: patience,
	}
}

// testProgram is this test binary.
func testProgram(t testing.TB) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// elfLibrary returns a file that passes the check of libraries but cannot be loaded.
func elfLibrary(t testing.TB) string {
	t.Helper()
	h := elf.Header64{
		Type:      uint16(elf.ET_DYN),
		Machine:   uint16(elf.EM_X86_64),
		Version:   1,
		Ehsize:    64,
		Phentsize: 56,
		Shentsize: 64,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(
		elf.ELFCLASS64,
	), byte(
		elf.ELFDATA2LSB,
	), 1
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fake.so")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// needFake skips a test on systems where the supervisor rejects the library of the fake.
func needFake(t testing.TB) {
	t.Helper()
	o := fake(t, fakeWell)
	if _, err := engine.FindLibrary(o.Library, o.Getenv); errors.Is(err, engine.ErrUnsupported) {
		t.Skip(err)
	}
}

// alive reports whether a process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// port returns the port of an endpoint's address.
func port(t testing.TB, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscan(u.Port(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// counter returns a registered metric as a collector.
func counter(t testing.TB, reg *prometheus.Registry, name string) prometheus.Collector {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			c := prometheus.NewGauge(prometheus.GaugeOpts{Name: name})
			c.Set(f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue())
			return c
		}
	}
	t.Fatalf("no metric %s", name)
	return nil
}

// hostLog returns the output of the child, or "no file".
func (r *runningEngine) hostLog() string {
	content, err := os.ReadFile(filepath.Join(r.options.DataDir, "run", "host.log"))
	if err != nil {
		return "no file"
	}
	return string(content)
}

// snapshot lists the files of a directory with time and content, without logs.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".log") {
			return err // the engine still writes its logs
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %v %q\n", path, info.ModTime(), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// occupied listens on a port until the test ends.
func occupied(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port
}
