//go:build (linux && !amd64) || (linux && noengine) || darwin

package host

import (
	"fmt"
	"runtime"
)

// runLibrary says that this program was built without the library's host.
func runLibrary(command, *lifetime) error {
	return fmt.Errorf("the engine is not in this build (%s/%s; it needs linux/amd64 and a build without the tag noengine)", runtime.GOOS, runtime.GOARCH)
}
