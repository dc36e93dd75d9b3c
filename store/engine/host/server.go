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

// askAgain is how often a server that has been told to stop is told again.
// ClickHouse takes the second signal for impatience, so it is rare.
const askAgain = 5 * time.Second

// runServer runs a ClickHouse server program as a child and watches over it, so
// that it ends with the supervisor as the library does.
func runServer(c command, life *lifetime) error {
	// The kernel sends the parent-death signal when the thread that forked ends.
	runtime.LockOSThread()
	cmd := exec.Command(c.server, c.engine...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = endWithParent()
	// Descriptor 4 is the lock of the data directory: the server holds it too, as
	// its descriptor 3, the first of the extra files. It gets nothing else.
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	cmd.ExtraFiles = []*os.File{os.NewFile(4, "lock")}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.server, err)
	}
	go life.whenOver(askAgain, func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			fmt.Fprintln(os.Stderr, "host: stop the server:", err)
		}
	})
	err := cmd.Wait()
	if life.ended() {
		return nil
	}
	return fmt.Errorf("%w: %s ended: %v", errUnasked, c.server, err)
}
