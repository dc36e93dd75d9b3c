//go:build !linux || !amd64 || noengine

package host

import (
	"fmt"
	"os"
	"runtime"
)

// HostMain fails with exit status 2: this build cannot load the engine.
func HostMain([]string) int {
	fmt.Fprintf(os.Stderr, "host: this build for %s/%s cannot load the engine library; "+
		"it needs linux/amd64 and a build without the tag noengine\n", runtime.GOOS, runtime.GOARCH)
	return 2
}
