package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The pinned package, with the checksum of its archive in npm's form.
const (
	pinnedPackage   = "@chdb/lib-linux-x64-gnu"
	pinnedVersion   = "26.7.3-stable.1"
	pinnedIntegrity = "sha512-XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw=="
	pinnedSizes     = "178 MB to download, 566 MB on disk"
)

const libraryName = "libchdb.so"

// FindLibrary returns the path of an engine's library: the explicit one, which is the value of
// --engine-library, or the first one in the directory of this program, in the user's cache (where
// Install puts it), or in the library directories of the system.
//
// The error matches ErrNotFound if there is no engine, and ErrUnsupported if this system or build
// cannot load a library.
func FindLibrary(explicit string) (string, error) {
	if !hosted {
		return "", fmt.Errorf("%w: this build for %s/%s cannot load the engine library; "+
			"start a ClickHouse server and name it with --clickhouse-url",
			ErrUnsupported, runtime.GOOS, runtime.GOARCH)
	}
	var places []string
	if program, err := os.Executable(); err == nil {
		places = append(places, filepath.Dir(program))
	}
	if cache, err := defaultCacheDir(); err == nil {
		places = append(places, filepath.Join(cache, pinnedVersion))
	}
	places = append(places, "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
	return findLibrary(explicit, places)
}

func defaultCacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "courier", "engine"), nil
}

func findLibrary(explicit string, places []string) (string, error) {
	if explicit != "" {
		path, err := filepath.Abs(explicit)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return "", fmt.Errorf("engine library: %w", err)
		}
		return path, nil
	}
	for _, dir := range places {
		path := filepath.Join(dir, libraryName)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
	}
	return "", fmt.Errorf("%w; searched %s; run `courier engine install` once",
		ErrNotFound, strings.Join(places, ", "))
}
