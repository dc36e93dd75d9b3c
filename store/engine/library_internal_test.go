package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree creates files below a temporary directory, and returns it.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFindLibrary(t *testing.T) {
	root := tree(t, map[string][]byte{
		"flag.so":                nil,
		"cache/" + libraryName:   nil,
		"system/" + libraryName:  nil,
		"without/any/other.file": nil,
	})
	for _, c := range []struct {
		name     string
		explicit string
		places   []string
		want     string // path of the result, or part of the error
		is       error
	}{
		{"the flag comes first", "flag.so", []string{"cache"}, "flag.so", nil},
		{"a wrong flag ends the search", "none.so", []string{"cache"}, "none.so", os.ErrNotExist},
		{"the first place", "", []string{"beside", "cache", "system"}, "cache/" + libraryName, nil},
		{"nowhere", "", []string{"beside", "without"}, "courier engine install", ErrNotFound},
		{"names the places", "", []string{"beside", "without"}, "beside, ", ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			var places []string
			for _, p := range c.places {
				places = append(places, filepath.Join(root, p))
			}
			explicit := c.explicit
			if explicit != "" {
				explicit = filepath.Join(root, explicit)
			}
			found, err := findLibrary(explicit, places)
			if c.is != nil {
				if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("findLibrary() = %v, want an error with %q that is %v", err, c.want, c.is)
				}
				return
			}
			if err != nil || found != filepath.Join(root, c.want) {
				t.Errorf("findLibrary() = %s, %v, want %s", found, err, c.want)
			}
		})
	}
}
