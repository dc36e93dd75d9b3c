package engine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
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
	kind byte
	body []byte
}

func archiveOf(t *testing.T, entries ...archiveEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.body))}
		if e.kind != tar.TypeReg {
			h.Linkname, h.Size = string(e.body), 0
		}
		must(t, w.WriteHeader(h))
		if e.kind == tar.TypeReg {
			if _, err := w.Write(e.body); err != nil {
				t.Fatal(err)
			}
		}
	}
	must(t, errors.Join(w.Close(), z.Close()))
	return b.Bytes()
}

func checksumsOf(archive []byte) checksums {
	whole, library := sha512.Sum512(archive), sha256.Sum256(fixtureLibrary)
	return checksums{
		integrity: "sha512-" + base64.StdEncoding.EncodeToString(whole[:]),
		library:   hex.EncodeToString(library[:]),
	}
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
	readme := archiveEntry{"package/package.json", tar.TypeReg, []byte("{}")}
	library := archiveEntry{archivedLibrary, tar.TypeReg, fixtureLibrary}
	right := archiveOf(t, readme, library)
	changed := bytes.Clone(right)
	changed[len(changed)/2] ^= 1
	truncated := right[:len(right)-100]
	escaping := archiveOf(t, archiveEntry{"../../escaped", tar.TypeReg, []byte("x")}, library)
	absolute := archiveOf(t, archiveEntry{"/tmp/escaped", tar.TypeReg, []byte("x")}, library)
	symlink := archiveOf(t, archiveEntry{archivedLibrary, tar.TypeSymlink, []byte("/etc/passwd")})
	other := archiveOf(t, archiveEntry{archivedLibrary, tar.TypeReg, []byte("another library")})
	for _, c := range []struct {
		name    string
		archive []byte
		pinned  checksums
		want    string // in the error; "" for none
		is      error
	}{
		{"right", right, checksumsOf(right), "", nil},
		{"one bit changed", changed, checksumsOf(right), "", ErrIntegrity},
		{"truncated", truncated, checksumsOf(right), "", ErrIntegrity},
		{"truncated, with its own checksum", truncated, checksumsOf(truncated), "EOF", nil},
		{"a path that leaves the folder", escaping, checksumsOf(escaping), "../../escaped", nil},
		{"an absolute path", absolute, checksumsOf(absolute), "/tmp/escaped", nil},
		{"a link instead of the library", symlink, checksumsOf(symlink), "regular file", nil},
		{"another library", other, checksumsOf(other), "", ErrIntegrity},
		{
			"no library", archiveOf(t, readme), checksumsOf(archiveOf(t, readme)),
			"no package/libchdb.so", nil,
		},
		{
			"twice the library",
			archiveOf(t, library, library),
			checksumsOf(archiveOf(t, library, library)),
			"one regular file",
			nil,
		},
		{"not an archive", []byte("text"), checksumsOf([]byte("text")), "EOF", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			outside := t.TempDir()
			cache := filepath.Join(outside, "a", "cache")
			archive := filepath.Join(t.TempDir(), "package.tgz")
			must(t, os.WriteFile(archive, c.archive, 0o644))
			found, err := install(t.Context(),
				InstallOptions{From: archive, CacheDir: cache, Progress: t.Output()}, c.pinned)
			checkNothingElse(t, outside, cache, err == nil)
			if c.want == "" && c.is == nil {
				content, readErr := os.ReadFile(found)
				if err != nil || readErr != nil || !bytes.Equal(content, fixtureLibrary) {
					t.Fatalf("install() = %+v, %v, want the unchanged library; reading it: %v",
						found, err,
						readErr)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil &&
				!errors.Is(err, c.is) {
				t.Errorf("install() = %v, want an error with %q that is %v", err, c.want, c.is)
			}
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
	archive := archiveOf(t, archiveEntry{archivedLibrary, tar.TypeReg, fixtureLibrary})
	path, cache := filepath.Join(t.TempDir(), "package.tgz"), t.TempDir()
	must(t, os.WriteFile(path, archive, 0o644))
	// The directory of an interrupted installation.
	must(t, os.MkdirAll(filepath.Join(cache, ".install-killed", "node_modules"), 0o755))
	var progress [8]bytes.Buffer
	var group sync.WaitGroup
	for i := range progress {
		group.Go(func() {
			if _, err := install(t.Context(), InstallOptions{
				From:     path,
				CacheDir: cache,
				Progress: &progress[i],
			},
				checksumsOf(archive)); err != nil {
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
	if _, err := install(ctx, InstallOptions{From: "x.tgz", CacheDir: cache}, checksums{}); !errors.Is(
		err, context.Canceled) {
		t.Errorf("install() during another installation = %v, want context.Canceled", err)
	}
}

// npmScript is a fake npm that checks its arguments.
const npmScript = `#!/bin/sh
[ "$*" = "ci --ignore-scripts --no-audit --no-fund" ] && [ -s package.json ] && [ -s package-lock.json ] || { echo "npm error called with $* in $(ls)"; exit 9; }
%s
`

func TestInstall_WithNPM(t *testing.T) {
	needHost(t)
	folder := "node_modules/" + pinnedPackage
	for _, c := range []struct {
		name, does, want string
		is               error
	}{
		{
			name: "the library",
			does: "mkdir -p " + folder + " && cp \"$(dirname \"$0\")/library\" " + folder + "/" +
				libraryName,
		},
		{
			name: "a wrong library",
			does: "mkdir -p " + folder + " && echo x > " + folder + "/" + libraryName,
			is:   ErrIntegrity,
		},
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
		{name: "no library", does: "true", want: libraryName},
	} {
		t.Run(c.name, func(t *testing.T) {
			bin := tree(t, map[string][]byte{
				"npm":     fmt.Appendf(nil, npmScript, c.does),
				"library": fixtureLibrary,
			})
			cache := t.TempDir()
			var progress bytes.Buffer
			found, err := install(
				t.Context(),
				InstallOptions{
					NPM:      filepath.Join(bin, "npm"),
					CacheDir: cache,
					Progress: &progress,
				},
				checksumsOf(nil),
			)
			checkNothingElse(t, cache, cache, err == nil)
			if !strings.Contains(progress.String(), "178 MB") {
				t.Errorf("progress = %q, want the size", progress.String())
			}
			if c.want == "" && c.is == nil {
				if err != nil || checkSHA256(found, checksumsOf(nil).library) != nil {
					t.Errorf("install() = %+v, %v, want the library", found, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil &&
				!errors.Is(err, c.is) {
				t.Errorf("install() = %v, want an error with %q that is %v", err, c.want, c.is)
			}
		})
	}
}

func TestInstall_ReportsTheAlternativeWithoutNPM(t *testing.T) {
	needHost(t)
	t.Setenv("PATH", t.TempDir())
	_, err := install(t.Context(), InstallOptions{CacheDir: t.TempDir(), Progress: t.Output()}, checksums{})
	if !errors.Is(err, ErrNoNPM) || !strings.Contains(err.Error(), "--from") {
		t.Errorf("install() = %v, want ErrNoNPM and a hint at --from", err)
	}
}

func TestPins_MatchTheLockFile(t *testing.T) {
	var lock struct {
		Packages map[string]map[string]any `json:"packages"`
	}
	must(t, json.Unmarshal(packageLockJSON, &lock))
	locked := lock.Packages["node_modules/"+pinnedPackage]
	if locked["version"] != pinnedVersion || locked["integrity"] != pinnedIntegrity {
		t.Errorf("package-lock.json pins %v with %v, want %s with %s", locked["version"],
			locked["integrity"], pinnedVersion, pinnedIntegrity)
	}
	if _, resolved := locked["resolved"]; resolved || bytes.Contains(packageLockJSON,
		[]byte("://")) {
		t.Error("package-lock.json names an address, want none: npm uses its configured registry")
	}
	var manifest struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	must(t, json.Unmarshal(packageJSON, &manifest))
	if got := manifest.Dependencies[pinnedPackage]; got != pinnedVersion {
		t.Errorf("package.json requires version %q, want exactly %s", got, pinnedVersion)
	}
}
