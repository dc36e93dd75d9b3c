package engine

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// InstallOptions configures the installation of the engine library.
type InstallOptions struct {
	// From is a local package archive (.tgz). Empty means a download with npm from its
	// configured registry.
	From string
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
	o.Progress = cmp.Or[io.Writer](o.Progress, io.Discard)
	cache, err := defaultCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	library, err := install(ctx, o, cache, pinnedIntegrity)
	if err != nil {
		return "", fmt.Errorf("install the engine: %w", err)
	}
	return library, nil
}

// install installs the library under a lock: it unpacks the archive with a checksum into a temporary
// directory, and renames the directory.
func install(ctx context.Context, o InstallOptions, cache, integrity string) (string, error) {
	final := filepath.Join(cache, pinnedVersion)
	installed := filepath.Join(final, libraryName)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	lock, err := openLock(filepath.Join(cache, "install.lock"))
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

	work, err := newWorkDir(cache)
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
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("%w: install it, or download %s %s "+
			"and run `courier engine install --from FILE.tgz`",
			ErrNoNPM, pinnedPackage, pinnedVersion)
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

const archivedLibrary = "package/" + libraryName

// unpack extracts the library of a package archive to target. Before that it checks the archive's
// checksum, which is in npm's format.
func unpack(archive, integrity, target string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	h := sha512.New()
	if _, err := io.Copy(h, file); err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(h.Sum(nil)); got != integrity {
		return fmt.Errorf("%w: %s has %s, want %s", ErrIntegrity, archive, got, integrity)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := extract(file, target); err != nil {
		return fmt.Errorf("unpack %s: %w", archive, err)
	}
	return nil
}

// extract copies the library of a compressed archive, whose checksum is right, to target.
func extract(compressed io.Reader, target string) error {
	unzipped, err := gzip.NewReader(compressed)
	if err != nil {
		return err
	}
	defer unzipped.Close()
	entries := tar.NewReader(unzipped)
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the archive has no %s", archivedLibrary)
		}
		if err != nil {
			return err
		}
		if entry.Name == archivedLibrary {
			return copyTo(target, entries)
		}
	}
}

func copyTo(target string, source io.Reader) error {
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, source)
	return errors.Join(err, file.Close())
}

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
