//go:build linux && amd64 && !noengine

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/creack/pty"
	"github.com/ebitengine/purego"
	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// The oldest supported release. clickhouse-local serves HTTP and TCP since 26.6; this package was
// tested with 26.7.
const oldestMajor, oldestMinor = 26, 7

// stopInterval is the interval at which Ctrl-D is written to the terminal. One is lost if the
// engine is not reading at that moment.
const stopInterval = 100 * time.Millisecond

// library is the used part of the interface of libchdb.
type library struct {
	version           func() *byte
	setSignalHandlers func(int32)
	commandLine       func(int32, unsafe.Pointer) unsafe.Pointer
	resultError       func(unsafe.Pointer) *byte
}

func runLibrary(c hostArguments, life context.Context) error {
	if err := checkCPU(); err != nil {
		return err
	}
	if err := confine(c); err != nil {
		fmt.Fprintln(os.Stderr, "host: not confined:", err)
	}
	runtime.LockOSThread()
	l, err := openLibrary(c.library)
	if err != nil {
		return err
	}
	restore, err := saveSignals()
	if err != nil {
		return err
	}
	l.setSignalHandlers(0)
	restore()
	terminal, err := newTerminal()
	if err != nil {
		return fmt.Errorf("create a pseudo terminal for the engine: %w", err)
	}
	go stopAfter(life, stopInterval, terminal.endOfInput)
	fmt.Fprintln(os.Stderr, "host: engine library", unix.BytePtrToString(l.version()))
	return l.run(c.engine, life)
}

// checkCPU returns an error if the processor lacks a feature for which the library is compiled
// (x86-64-v3 and carry-less multiplication). Otherwise the process would end by SIGILL.
func checkCPU() error {
	var missing []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"AVX2", cpu.X86.HasAVX2}, {"BMI1", cpu.X86.HasBMI1}, {"BMI2", cpu.X86.HasBMI2},
		{"FMA", cpu.X86.HasFMA}, {"PCLMULQDQ", cpu.X86.HasPCLMULQDQ},
	} {
		if !f.has {
			missing = append(missing, f.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the engine library needs a processor with %s", strings.Join(missing, ", "))
	}
	return nil
}

func openLibrary(path string) (*library, error) {
	self, err := purego.Dlopen("", purego.RTLD_NOW)
	if err != nil {
		return nil, fmt.Errorf("open this program's own symbols: %w", err)
	}
	if _, err := purego.Dlsym(self, "gnu_get_libc_version"); err != nil {
		return nil, errors.New("the engine library needs glibc, which this system lacks")
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("load engine library %s: %w", path, err)
	}
	l := &library{}
	for name, function := range map[string]any{
		"chdb_version":                     &l.version,
		"chdb_set_signal_handlers_enabled": &l.setSignalHandlers,
		"chdb_query_cmdline":               &l.commandLine,
		"chdb_result_error":                &l.resultError,
	} {
		// Registering a missing symbol panics.
		if _, err := purego.Dlsym(handle, name); err != nil {
			return nil, fmt.Errorf("engine library %s has no %s: "+
				"it is older than %d.%d, or not an engine library",
				path, name, oldestMajor, oldestMinor)
		}
		purego.RegisterLibFunc(function, handle, name)
	}
	if v := unix.BytePtrToString(l.version()); !newEnough(v) {
		return nil, fmt.Errorf("engine library %s is version %q, need %d.%d or later",
			path, v, oldestMajor, oldestMinor)
	}
	return l, nil
}

func newEnough(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > oldestMajor || major == oldestMajor && minor >= oldestMinor
}

func (l *library) run(arguments []string, life context.Context) error {
	argv := make([]*byte, 0, len(arguments)+2)
	var pins runtime.Pinner
	defer pins.Unpin()
	for _, a := range append([]string{"clickhouse"}, arguments...) {
		b := append([]byte(a), 0)
		pins.Pin(&b[0])
		argv = append(argv, &b[0])
	}
	argc := int32(len(argv))
	argv = append(argv, nil)
	pins.Pin(&argv[0])
	result := l.commandLine(argc, unsafe.Pointer(&argv[0]))
	if result != nil {
		if message := unix.BytePtrToString(l.resultError(result)); message != "" {
			fmt.Fprintln(os.Stderr, "host: engine:", message)
		}
	}
	if life.Err() == nil {
		return errUnexpected
	}
	return nil
}

// keptSignals are the signals whose actions the Go runtime or this package has installed and the
// library resets: faults, preemption by the runtime (URG), job control, and termination.
var keptSignals = []syscall.Signal{
	syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGILL, syscall.SIGBUS, syscall.SIGSYS,
	syscall.SIGFPE, syscall.SIGTSTP, syscall.SIGTRAP, syscall.SIGURG, syscall.SIGINT,
	syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
}

// signalAction holds a C struct sigaction, which takes 152 bytes in glibc.
type signalAction [256]byte

// saveSignals reads the current actions and returns a function that restores them.
func saveSignals() (restore func(), err error) {
	self, err := purego.Dlopen("", purego.RTLD_NOW)
	if err != nil {
		return nil, fmt.Errorf("open this program's own symbols: %w", err)
	}
	if _, err := purego.Dlsym(self, "sigaction"); err != nil {
		return nil, fmt.Errorf("find sigaction: %w", err)
	}
	var sigaction func(signal int32, set, old unsafe.Pointer) int32
	purego.RegisterLibFunc(&sigaction, self, "sigaction")
	saved := make([]signalAction, len(keptSignals))
	for i, s := range keptSignals {
		if sigaction(int32(s), nil, unsafe.Pointer(&saved[i])) != 0 {
			return nil, fmt.Errorf("read the action of signal %d", s)
		}
	}
	return func() {
		for i, s := range keptSignals {
			sigaction(int32(s), unsafe.Pointer(&saved[i]), nil)
		}
	}, nil
}

// terminal is the pseudo terminal that serves as the engine's standard input.
//
// Without a terminal and --interactive, engine 26.7.3 aborts the process when a client sends a
// malformed request or resets a connection (ClickHouse issue 115666). It may be removed when a
// newer engine is pinned and the test with rude clients passes without it.
type terminal struct {
	master *os.File
}

// newTerminal makes the terminal the standard input, and discards the engine's output to it.
func newTerminal() (*terminal, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if err := unix.Dup2(int(slave.Fd()), 0); err != nil {
		return nil, fmt.Errorf("make it standard input: %w", err)
	}
	t := &terminal{master: master}
	go t.drain()
	return t, nil
}

// drain reads until the process ends: the slave stays open as standard input.
func (t *terminal) drain() {
	if _, err := io.Copy(io.Discard, t.master); err != nil {
		fmt.Fprintln(os.Stderr, "host: read the engine's terminal:", err)
	}
}

// endOfInput writes Ctrl-D, which on an empty line ends the engine's session.
func (t *terminal) endOfInput() {
	if _, err := t.master.Write([]byte{0x04}); err != nil {
		fmt.Fprintln(os.Stderr, "host: write to the engine's terminal:", err)
	}
}
