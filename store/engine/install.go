package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

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
	library, err := install(ctx, o, pinnedIntegrity)
	if err != nil {
		return "", fmt.Errorf("install the engine: %w", err)
	}
	return library, nil
}

// install installs the library under a lock: it unpacks the archive with a checksum into a temporary
// directory, and renames the directory.
func install(ctx context.Context, o InstallOptions, integrity string) (string, error) {
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
	archive := o.From
	if archive == "" {
		if archive, err = download(ctx, o, work); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(o.Progress, "unpacking the ClickHouse engine %s from %s\n", pinnedVersion, archive)
	complete := filepath.Join(work, "complete")
	if err := os.Mkdir(complete, 0o755); err != nil {
		return "", err
	}
	if err := unpack(archive, integrity, filepath.Join(complete, libraryName)); err != nil {
		return "", err
	}
	if err := moveInPlace(complete, final); err != nil {
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

// download downloads the package with npm, which needs no account and reads the user's settings of proxies
// and registries. It returns the path of the archive in the directory work.
func download(ctx context.Context, o InstallOptions, work string) (string, error) {
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
	fmt.Fprintf(o.Progress, "fetching the ClickHouse engine %s with npm, once: %s\n",
		pinnedVersion, pinnedSizes)

	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, npm, "pack", "--ignore-scripts", pinnedPackage+"@"+pinnedVersion)
	cmd.Dir = work
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = 5 * time.Second // for the child processes of npm when ctx ends
	if err := cmd.Run(); err != nil {
		return "", npmError(ctx, err, output.String())
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err == nil && len(archives) != 1 {
		err = fmt.Errorf("npm pack has written %d archives, want 1", len(archives))
	}
	if err != nil {
		return "", err
	}
	return archives[0], nil
}

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

// moveInPlace flushes a directory with the library to disk, and renames it to final.
func moveInPlace(complete, final string) error {
	for _, path := range []string{filepath.Join(complete, libraryName), complete} {
		if err := syncPath(path); err != nil {
			return err
		}
	}
	// final may exist without the library, if that was deleted.
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	if err := os.Rename(complete, final); err != nil {
		return err
	}
	return syncPath(filepath.Dir(final))
}

func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
