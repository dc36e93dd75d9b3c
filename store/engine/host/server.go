//go:build linux || darwin

package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// signalInterval is the interval at which a server gets SIGTERM. It is long, because ClickHouse
// exits immediately at the second signal.
const signalInterval = 5 * time.Second

// runServer runs a ClickHouse server program as a child that ends with the supervisor.
func runServer(c hostArguments, life *lifetime) error {
	// The kernel sends the parent-death signal when the thread that forked ends.
	runtime.LockOSThread()
	cmd := exec.Command(c.server, c.engine...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = endWithParent()

	// The server inherits the lock of the data directory, descriptor 4, as its descriptor 3, the
	// first of the extra files, and no other descriptors.
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	cmd.ExtraFiles = []*os.File{os.NewFile(4, "lock")}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.server, err)
	}
	go life.whenOver(signalInterval, func() {
		err := cmd.Process.Signal(syscall.SIGTERM)
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			fmt.Fprintln(os.Stderr, "host: stop the server:", err)
		}
	})
	err := cmd.Wait()
	if life.ended() {
		return nil
	}
	return fmt.Errorf("%w: %s ended: %v", errUnexpected, c.server, err)
}
