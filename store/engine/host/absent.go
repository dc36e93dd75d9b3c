//go:build (linux && !amd64) || (linux && noengine) || darwin

package host

import (
	"fmt"
	"runtime"
)

// runLibrary fails: this build cannot load the library.
func runLibrary(hostArguments, *lifetime) error {
	return fmt.Errorf("this build for %s/%s cannot load the engine library; "+
		"it needs linux/amd64 and a build without the tag noengine",
		runtime.GOOS, runtime.GOARCH)
}
