//go:build linux && amd64 && !noengine

package host

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

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
