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

//go:embed package.json
var packageJSON []byte

//go:embed package-lock.json
var packageLockJSON []byte

// InstallOptions configures the installation of the engine library.
type InstallOptions struct {
	// From is a local package archive (.tgz). Empty means a download with npm from its
	// configured registry.
	From string
	// CacheDir is the directory of the library. Empty means courier/engine in the user's cache
	// directory, where FindLibrary looks.
	CacheDir string
	// NPM is the npm program; empty means npm on the PATH.
	NPM string
	// Progress, if set, receives a line per step.
	Progress io.Writer
}

type checksums struct {
	integrity string // of the archive, in npm's form
	library   string // SHA-256 of the library, in hex
}

// Install installs the pinned engine library in the user's cache, and returns its path. It returns at
// once if the library is there, and waits if another process is installing it. The error matches ErrIntegrity for a
// wrong checksum, ErrNoNPM if npm is missing, and ErrUnsupported if this system cannot load the
// library. A failed or interrupted installation leaves nothing that FindLibrary would find.
func Install(ctx context.Context, o InstallOptions) (string, error) {
	if !hosted {
		return "", fmt.Errorf("install the engine: %w: this build cannot load the library", ErrUnsupported)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.CacheDir == "" {
		cache, err := defaultCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the user's cache directory: %w", err)
		}
		o.CacheDir = cache
	}
	pinned := checksums{integrity: pinnedIntegrity, library: pinnedLibrary}
	library, err := install(ctx, o, pinned)
	if err != nil {
		return "", fmt.Errorf("install the engine: %w", err)
	}
	return library, nil
}

// install installs the library under a lock: it fetches the library into a temporary directory,
// checks it, and renames the directory.
func install(ctx context.Context, o InstallOptions, want checksums) (string, error) {
	final := filepath.Join(o.CacheDir, pinnedVersion)
	installed := filepath.Join(final, libraryName)
	if err := os.MkdirAll(o.CacheDir, 0o755); err != nil {
		return "", err
	}
	lock, err := openLock(filepath.Join(o.CacheDir, "install.lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := waitLock(ctx, lock); err != nil {
		return "", fmt.Errorf("wait for another installation: %w", err)
	}
	if _, err := os.Stat(installed); err == nil {
		return installed, nil
	}

	work, err := newWorkDir(o.CacheDir)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work) // the next installation removes the rest
	fetched, err := fetch(ctx, o, want, work)
	if err != nil {
		return "", err
	}
	if err := checkSHA256(fetched, want.library); err != nil {
		return "", err
	}
	if err := moveInPlace(fetched, filepath.Join(work, "complete"), final); err != nil {
		return "", err
	}
	fmt.Fprintln(o.Progress, "the ClickHouse engine is installed in", final)
	return installed, nil
}

// newWorkDir creates the temporary directory, and removes those of interrupted installations. The
// lock ensures that no other one is running.
func newWorkDir(cache string) (string, error) {
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

// fetch fetches the library into the directory work and returns its path.
func fetch(ctx context.Context, o InstallOptions, want checksums, work string) (string, error) {
	if o.From == "" {
		return fetchNPM(ctx, o, work)
	}
	fmt.Fprintf(o.Progress, "unpacking the ClickHouse engine %s from %s\n", pinnedVersion, o.From)
	library := filepath.Join(work, libraryName)
	return library, unpack(o.From, want.integrity, library)
}

// fetchNPM downloads the package with npm, which checks the integrity.
func fetchNPM(ctx context.Context, o InstallOptions, work string) (string, error) {
	npm := o.NPM
	if npm == "" {
		found, err := exec.LookPath("npm")
		if err != nil {
			return "", fmt.Errorf("%w: install it, or download %s %s "+
				"and run `courier engine install --from FILE.tgz`",
				ErrNoNPM, pinnedPackage, pinnedVersion)
		}
		npm = found
	}
	for name, content := range map[string][]byte{
		"package.json":      packageJSON,
		"package-lock.json": packageLockJSON,
	} {
		if err := os.WriteFile(filepath.Join(work, name), content, 0o644); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(o.Progress, "fetching the ClickHouse engine %s with npm, once: %s\n",
		pinnedVersion, pinnedSizes)

	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = work
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = 5 * time.Second // for the child processes of npm when ctx ends
	if err := cmd.Run(); err != nil {
		return "", npmError(ctx, err, output.String())
	}
	installed := filepath.Join(work, "node_modules", filepath.FromSlash(pinnedPackage))
	return filepath.Join(installed, libraryName), nil
}

// npmError returns an error with the first error lines of npm.
func npmError(ctx context.Context, err error, output string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var messages []string
	for line := range strings.Lines(output) {
		text, isError := strings.CutPrefix(strings.TrimSpace(line), "npm error ")
		if isError && !strings.Contains(text, "A complete log of this run") {
			messages = append(messages, text)
		}
	}
	messages = messages[:min(len(messages), 4)]
	if strings.Contains(output, "EINTEGRITY") {
		err = ErrIntegrity
	}
	return fmt.Errorf("npm: %w: %s", err, strings.Join(messages, "; "))
}

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

// moveInPlace moves the library into a new directory, flushes it to disk, and renames the directory
// to final.
func moveInPlace(library, folder, final string) error {
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
	// final may exist without the library, if that was deleted.
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	if err := os.Rename(folder, final); err != nil {
		return err
	}
	return syncPath(filepath.Dir(final))
}

// syncPath flushes a file or a directory to disk.
func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
