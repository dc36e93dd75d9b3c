//go:build !linux && !darwin

package host

import (
	"fmt"
	"os"
	"runtime"
)

// HostMain says that no engine can be run on this system and returns exit
// status 2.
func HostMain([]string) int {
	fmt.Fprintf(os.Stderr, "host: the engine cannot be run on %s\n", runtime.GOOS)
	return 2
}
