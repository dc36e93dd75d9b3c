//go:build !linux && !darwin

package host

import (
	"fmt"
	"os"
	"runtime"
)

// HostMain fails with exit status 2: this system cannot run an engine.
func HostMain([]string) int {
	fmt.Fprintf(os.Stderr, "host: the engine cannot be run on %s\n", runtime.GOOS)
	return 2
}
