//go:build linux && amd64 && !noengine

package engine_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"courier/store/engine/host"
)

// The roles in which the tests run their own binary.
const (
	roleHost       = "engine-host" // the real host, with the real engine
	roleFakeHost   = "fake-host"   // a fake host, see the modes
	roleSupervisor = "supervisor"  // an Engine in a process that can be killed
)

// withoutLibrary counts the tests that were skipped because no engine was found.
var withoutLibrary atomic.Int64

// TestMain runs the tests, or a role.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		// With -race os.Exit waits a second; syscall.Exit does not.
		switch role, args := os.Args[1], os.Args[2:]; role {
		case roleHost:
			syscall.Exit(host.HostMain(args))
		case roleFakeHost:
			syscall.Exit(fakeHost(args[0], args[1:]))
		case roleSupervisor:
			syscall.Exit(superviseAlone(args[0], args[1]))
		}
	}
	status := m.Run()
	if n := withoutLibrary.Load(); n > 0 {
		fmt.Printf(
			"engine: %d tests skipped: no ClickHouse engine; run `courier engine install`, or set %s\n",
			n,
			libraryVariable,
		)
	}
	os.Exit(status)
}
