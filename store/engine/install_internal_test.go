package engine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fixtureLibrary is the content of the library in the test archives.
var fixtureLibrary = bytes.Repeat([]byte("not really a library\n"), 5000)

type archiveEntry struct {
	name string
	body []byte
}

func archiveOf(t *testing.T, entries ...archiveEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		must(t, w.WriteHeader(&tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.body))}))
		if _, err := w.Write(e.body); err != nil {
			t.Fatal(err)
		}
	}
	must(t, errors.Join(w.Close(), z.Close()))
	return b.Bytes()
}

func integrityOf(archive []byte) string {
	sum := sha512.Sum512(archive)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// needHost skips a test on systems that cannot load a library.
func needHost(t *testing.T) {
	t.Helper()
	if !hosted {
		t.Skipf("the engine cannot be installed on %s", runtime.GOOS)
	}
}

func TestInstall_FromAnArchive(t *testing.T) {
	needHost(t)
	readme := archiveEntry{"package/package.json", []byte("{}")}
	library := archiveEntry{archivedLibrary, fixtureLibrary}
	right := archiveOf(t, readme, library)
	changed := bytes.Clone(right)
	changed[len(changed)/2] ^= 1
	truncated := right[:len(right)-100]
	for _, c := range []struct {
		name    string
		archive []byte
		pinned  string
		want    string // in the error; "" for none
		is      error
	}{
		{"right", right, integrityOf(right), "", nil},
		{"one bit changed", changed, integrityOf(right), "", ErrIntegrity},
		{"truncated", truncated, integrityOf(right), "", ErrIntegrity},
		{"truncated, with its own checksum", truncated, integrityOf(truncated), "EOF", nil},
		{
			"no library", archiveOf(t, readme), integrityOf(archiveOf(t, readme)),
			"no package/libchdb.so", nil,
		},
		{"not an archive", []byte("text"), integrityOf([]byte("text")), "EOF", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			outside := t.TempDir()
			cache := filepath.Join(outside, "a", "cache")
			archive := filepath.Join(t.TempDir(), "package.tgz")
			must(t, os.WriteFile(archive, c.archive, 0o644))
			found, err := install(t.Context(), InstallOptions{From: archive, Progress: t.Output()}, cache, c.pinned)
			checkNothingElse(t, outside, cache, err == nil)
			checkInstalled(t, found, err, c.want, c.is)
		})
	}
}

// checkNothingElse fails if an installation left files other than its lock and its result.
func checkNothingElse(t *testing.T, outside, cache string, installed bool) {
	t.Helper()
	allowed := map[string]bool{filepath.Join(cache, "install.lock"): true}
	if installed {
		allowed[filepath.Join(cache, pinnedVersion, libraryName)] = true
	}
	err := filepath.WalkDir(outside, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !allowed[path] {
			t.Errorf("install left %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestInstall_InstallsOnce(t *testing.T) {
	needHost(t)
	archive := archiveOf(t, archiveEntry{archivedLibrary, fixtureLibrary})
	path, cache := filepath.Join(t.TempDir(), "package.tgz"), t.TempDir()
	must(t, os.WriteFile(path, archive, 0o644))
	// The directory of an interrupted installation.
	must(t, os.MkdirAll(filepath.Join(cache, ".install-killed", "node_modules"), 0o755))
	var progress [8]bytes.Buffer
	var group sync.WaitGroup
	for i := range progress {
		group.Go(func() {
			o := InstallOptions{From: path, Progress: &progress[i]}
			if _, err := install(t.Context(), o, cache, integrityOf(archive)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	unpacked := 0
	for i := range progress {
		if strings.Contains(progress[i].String(), "unpacking") {
			unpacked++
		}
	}
	if unpacked != 1 {
		t.Errorf("eight concurrent installations unpacked %d times, want 1", unpacked)
	}
	checkNothingElse(t, cache, cache, true)
}

func TestInstall_EndsWithItsContext(t *testing.T) {
	needHost(t)
	cache := t.TempDir()
	other, err := openLock(filepath.Join(cache, "install.lock"))
	must(t, err)
	defer other.Close()
	must(t, tryLock(other))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := install(ctx, InstallOptions{From: "x.tgz"}, cache, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("install() during another installation = %v, want context.Canceled", err)
	}
}

// npmScript is a fake npm that checks its arguments.
const npmScript = `#!/bin/sh
[ "$*" = "pack --ignore-scripts ` + pinnedPackage + "@" + pinnedVersion + `" ] || { echo "npm error called with $*"; exit 9; }
%s
`

func TestInstall_WithNPM(t *testing.T) {
	needHost(t)
	archive := archiveOf(t, archiveEntry{archivedLibrary, fixtureLibrary})
	for _, c := range []struct {
		name, does, want string
		is               error
	}{
		{name: "the library", does: "cp \"$(dirname \"$0\")/archive\" chdb.tgz"},
		{name: "another package", does: "echo x > chdb.tgz", is: ErrIntegrity},
		{
			name: "wrong checksum",
			does: "echo 'npm error code EINTEGRITY' >&2; exit 1",
			want: "EINTEGRITY",
			is:   ErrIntegrity,
		},
		{
			name: "no network",
			does: "echo 'npm warn old' >&2; echo 'npm error code ENOTFOUND' >&2; echo 'npm error A complete " +
				"log of this run can be found in: x' >&2; exit 1",
			want: "npm: exit status 1: code ENOTFOUND",
		},
		{name: "no archive", does: "true", want: "0 archives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bin := tree(t, map[string][]byte{
				"npm":     fmt.Appendf(nil, npmScript, c.does),
				"archive": archive,
			})
			cache := t.TempDir()
			var progress bytes.Buffer
			t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			found, err := install(t.Context(), InstallOptions{Progress: &progress}, cache, integrityOf(archive))
			checkNothingElse(t, cache, cache, err == nil)
			if !strings.Contains(progress.String(), "178 MB") {
				t.Errorf("progress = %q, want the size", progress.String())
			}
			checkInstalled(t, found, err, c.want, c.is)
		})
	}
}

// checkInstalled checks the result of install: the library, or an error with a text that is an error.
func checkInstalled(t *testing.T, found string, err error, want string, is error) {
	t.Helper()
	if want == "" && is == nil {
		content, readErr := os.ReadFile(found)
		if err != nil || readErr != nil || !bytes.Equal(content, fixtureLibrary) {
			t.Errorf("install() = %q, %v, want the unchanged library; reading it: %v", found, err, readErr)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want) || is != nil && !errors.Is(err, is) {
		t.Errorf("install() = %v, want an error with %q that is %v", err, want, is)
	}
}

func TestInstall_ReportsTheAlternativeWithoutNPM(t *testing.T) {
	needHost(t)
	t.Setenv("PATH", t.TempDir())
	_, err := install(t.Context(), InstallOptions{Progress: t.Output()}, t.TempDir(), "")
	if !errors.Is(err, ErrNoNPM) || !strings.Contains(err.Error(), "--from") {
		t.Errorf("install() = %v, want ErrNoNPM and a hint at --from", err)
	}
}

// tree creates files below a temporary directory, and returns it.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, content, 0o755))
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
