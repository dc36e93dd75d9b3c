//go:build linux && amd64 && !noengine

package host

import (
	"slices"
	"strings"
	"testing"
)

func TestNewEnough(t *testing.T) {
	for version, want := range map[string]bool{
		"26.7.3": true, "26.7": true, "26.10.1": true, "27.1.1": true,
		"26.6.9": false, "26.5.3": false, "25.12": false, "3.1.2": false, "": false, "26": false, "v26.7": false,
	} {
		if got := newEnough(version); got != want {
			t.Errorf("newEnough(%q) = %t, want %t", version, got, want)
		}
	}
}

func TestOpenLibrary_RejectsAnotherLibrary(t *testing.T) {
	_, err := openLibrary("libc.so.6")
	if err == nil || !strings.Contains(err.Error(), "has no chdb_") {
		t.Errorf("openLibrary(libc) = %v, want an error that names a missing symbol", err)
	}
}

func TestGrants_ExcludeTheHomeDirectory(t *testing.T) {
	grants, err := grantsFor("/lib/libchdb.so", "/data/store", "/data/run")
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, g := range grants {
		if g.path == "/" || g.path == "/etc" || g.path == "/home" || g.path == "/data" {
			t.Errorf("the engine gets access to %s", g.path)
		}
		if g.rights == writeTree {
			written = append(written, g.path)
		}
	}
	if want := []string{"/data/store", "/data/run"}; !slices.Equal(written, want) {
		t.Errorf("writable directories: %q, want %q", written, want)
	}
	directories, err := libraryDirectories()
	if err != nil || len(directories) == 0 {
		t.Errorf("libraryDirectories() = %q, %v, want that of the C library", directories, err)
	}
}
