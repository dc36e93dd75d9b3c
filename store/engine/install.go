package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// What is pinned. The same words stand in package-lock.json, which npm reads;
// a test holds the two together.
const (
	pinnedPackage   = "@chdb/lib-linux-x64-gnu"
	pinnedVersion   = "26.7.3-stable.1"
	pinnedIntegrity = "sha512-XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw=="
	pinnedLibrary   = "36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5" // SHA-256 of libchdb.so
	pinnedSizes     = "178 MB to download, 566 MB on disk"
)

//go:embed package.json
var packageJSON []byte

//go:embed package-lock.json
var packageLockJSON []byte

// InstallOptions say how the engine library is fetched.
type InstallOptions struct {
	// From is a package archive (.tgz) on this machine; empty means npm, with
	// the registry that it is configured for.
	From string
	// CacheDir is where the library is kept; empty means courier/engine in the
	// user's cache directory, where FindLibrary looks.
	CacheDir string
	// NPM is the program; empty means npm on the PATH.
	NPM string
	// Progress is told, a line each, what is done; nil means nobody.
	Progress io.Writer
}

// pin is what the bytes must be.
type pin struct {
	integrity string // of the archive, in npm's form
	library   string // SHA-256 of the library, in hex
}

// Install puts the pinned engine library in the user's cache, once: it returns
// at once if it is there, and waits if another process is installing it. Bytes
// other than the pinned ones are ErrIntegrity, a missing npm is ErrNoNPM, a
// system that cannot load the library ErrUnsupported. A failed or interrupted
// install leaves nothing behind that FindLibrary would take.
func Install(ctx context.Context, o InstallOptions) (Library, error) {
	if !libraryHosted {
		return Library{}, fmt.Errorf("install the engine: %w: this build cannot load the library", ErrUnsupported)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.CacheDir == "" {
		cache, err := defaultCacheDir()
		if err != nil {
			return Library{}, fmt.Errorf("find the user's cache directory: %w", err)
		}
		o.CacheDir = cache
	}
	library, err := install(ctx, o, pin{integrity: pinnedIntegrity, library: pinnedLibrary})
	if err != nil {
		return Library{}, fmt.Errorf("install the engine: %w", err)
	}
	return library, nil
}

// defaultCacheDir is Courier's folder for engines in the user's cache.
func defaultCacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "courier", "engine"), nil
}

// install is Install with given pins: under a lock, into a temporary folder,
// checked, synced, and renamed in place.
func install(ctx context.Context, o InstallOptions, pin pin) (Library, error) {
	final := filepath.Join(o.CacheDir, pinnedVersion)
	installed := Library{Path: filepath.Join(final, libraryName), From: "cache"}
	if err := os.MkdirAll(o.CacheDir, 0o755); err != nil {
		return Library{}, err
	}
	lock, err := openLock(filepath.Join(o.CacheDir, "install.lock"))
	if err != nil {
		return Library{}, err
	}
	defer lock.Close()
	if err := waitLock(ctx, lock); err != nil {
		return Library{}, fmt.Errorf("wait for another install: %w", err)
	}
	if _, err := os.Stat(installed.Path); err == nil {
		return installed, nil
	}
	work, err := freshWork(o.CacheDir)
	if err != nil {
		return Library{}, err
	}
	defer os.RemoveAll(work) // what cannot be removed now is at the next install
	fetched, err := fetch(ctx, o, pin, work)
	if err != nil {
		return Library{}, err
	}
	if err := checkSHA256(fetched, pin.library); err != nil {
		return Library{}, err
	}
	if err := settle(fetched, filepath.Join(work, "settled"), final); err != nil {
		return Library{}, err
	}
	fmt.Fprintln(o.Progress, "the ClickHouse engine is installed in", final)
	return installed, nil
}

// freshWork makes the temporary folder, and removes those of installs that were
// killed: the lock says that none is running.
func freshWork(cache string) (string, error) {
	old, err := filepath.Glob(filepath.Join(cache, ".install-*"))
	if err != nil {
		return "", err
	}
	for _, o := range old {
		if err := os.RemoveAll(o); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(cache, ".install-*")
}

// fetch brings the library into work, and says where in it.
func fetch(ctx context.Context, o InstallOptions, pin pin, work string) (string, error) {
	if o.From == "" {
		return fetchNPM(ctx, o, work)
	}
	fmt.Fprintf(o.Progress, "unpacking the ClickHouse engine %s from %s\n", pinnedVersion, o.From)
	library := filepath.Join(work, libraryName)
	return library, unpack(o.From, pin.integrity, library)
}

// fetchNPM lets npm download the package; it checks the integrity itself.
func fetchNPM(ctx context.Context, o InstallOptions, work string) (string, error) {
	npm := o.NPM
	if npm == "" {
		found, err := exec.LookPath("npm")
		if err != nil {
			return "", fmt.Errorf("%w: install it, or fetch %s %s yourself and run `courier engine install --from FILE.tgz`", ErrNoNPM, pinnedPackage, pinnedVersion)
		}
		npm = found
	}
	for name, content := range map[string][]byte{"package.json": packageJSON, "package-lock.json": packageLockJSON} {
		if err := os.WriteFile(filepath.Join(work, name), content, 0o644); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(o.Progress, "fetching the ClickHouse engine %s with npm, once: %s\n", pinnedVersion, pinnedSizes)
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = work
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = 5 * time.Second // for what npm started, when ctx ends
	if err := cmd.Run(); err != nil {
		return "", npmError(ctx, err, output.String())
	}
	return filepath.Join(work, "node_modules", filepath.FromSlash(pinnedPackage), libraryName), nil
}

// npmError says what npm said, in one line.
func npmError(ctx context.Context, err error, output string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var said []string
	for line := range strings.Lines(output) {
		text, isError := strings.CutPrefix(strings.TrimSpace(line), "npm error ")
		if isError && !strings.Contains(text, "A complete log of this run") {
			said = append(said, text)
		}
	}
	if len(said) > 4 {
		said = said[:4]
	}
	if strings.Contains(output, "EINTEGRITY") {
		err = ErrIntegrity
	}
	return fmt.Errorf("npm: %w: %s", err, strings.Join(said, "; "))
}

// checkSHA256 compares a file with what it must be.
func checkSHA256(path, want string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%w: %s has SHA-256 %s, want %s", ErrIntegrity, filepath.Base(path), got, want)
	}
	return nil
}

// settle puts the checked library in a folder of its own, on the disk, and
// renames that folder to final.
func settle(library, folder, final string) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := os.Rename(library, filepath.Join(folder, libraryName)); err != nil {
		return err
	}
	for _, path := range []string{filepath.Join(folder, libraryName), folder} {
		if err := syncPath(path); err != nil {
			return err
		}
	}
	// A folder without the library is what a careless hand left.
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	if err := os.Rename(folder, final); err != nil {
		return err
	}
	return syncPath(filepath.Dir(final))
}

// syncPath brings a file or a folder to the disk.
func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
