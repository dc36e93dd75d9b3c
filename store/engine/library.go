package engine

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// libraryName is the file that is looked for.
const libraryName = "libchdb.so"

// The oldest ClickHouse program that is used from the PATH: the first release
// in which the JSON type, which the tables use, is no longer experimental.
const oldestServerMajor, oldestServerMinor = 25, 3

// Library is an engine that was found: a shared library, or a server program.
type Library struct {
	// Path is the file; Options.Library takes it.
	Path string
	// From says how it was found: "--engine-library", an environment variable's
	// name, "PATH", "beside the program", "cache" or "system".
	From string
	// Server is true for a clickhouse program, which is run and not loaded.
	Server bool
	// Skipped lists what was found before and not used, with the reason each.
	Skipped []string
}

// places are where an engine is looked for, beside what is named.
type places struct {
	hosted   bool   // this build can load the library
	platform string // for the text of an error
	beside   string // the folder of this program; "" if unknown
	cache    string // Courier's folder in the user's cache; "" if unknown
	system   []string
	version  func(program string) (string, error)
}

// FindLibrary looks for an engine; explicit is the value of --engine-library,
// getenv reads the environment. The first hit wins:
//
//  1. explicit, COURIER_ENGINE_LIBRARY, CHDB_LIB_PATH: a named file that is not
//     there, or is neither a library for this machine nor a clickhouse program,
//     is an error, and nothing else is tried
//  2. a program called clickhouse on the PATH, if it is new enough
//  3. beside this program, in the user's cache (where Install puts it), in the
//     system's library directories
//
// Nothing found is ErrNotFound; a system or a build that cannot load a library
// is ErrUnsupported.
func FindLibrary(explicit string, getenv func(string) string) (Library, error) {
	p := places{
		hosted:   libraryHosted,
		platform: runtime.GOOS + "/" + runtime.GOARCH,
		system:   []string{"/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"},
		version:  serverVersion,
	}
	if program, err := os.Executable(); err == nil {
		p.beside = filepath.Dir(program)
	}
	if cache, err := defaultCacheDir(); err == nil {
		p.cache = cache
	}
	return p.find(explicit, getenv)
}

// find is FindLibrary on given places.
func (p places) find(explicit string, getenv func(string) string) (Library, error) {
	for _, named := range []struct{ path, from string }{
		{explicit, "--engine-library"},
		{getenv("COURIER_ENGINE_LIBRARY"), "COURIER_ENGINE_LIBRARY"},
		{getenv("CHDB_LIB_PATH"), "CHDB_LIB_PATH"},
	} {
		if named.path != "" {
			return p.named(named.path, named.from)
		}
	}
	var skipped, tried []string
	if canSupervise {
		program, note := p.onPath(getenv("PATH"))
		if program != "" {
			return Library{Path: program, From: "PATH", Server: true}, nil
		}
		tried = append(tried, note)
		if strings.Contains(note, "not used") {
			skipped = append(skipped, note)
		}
	}
	if !p.hosted {
		return Library{}, fmt.Errorf("%w: this build for %s cannot load the engine library (%s); "+
			"put a clickhouse program on the PATH, or name a server with --clickhouse-url", ErrUnsupported, p.platform, strings.Join(tried, "; "))
	}
	for _, candidate := range p.candidates() {
		err := checkLibrary(candidate.Path)
		if errors.Is(err, fs.ErrNotExist) {
			tried = append(tried, candidate.Path)
			continue
		}
		candidate.Skipped = skipped
		return candidate, err
	}
	return Library{}, fmt.Errorf("%w; tried %s; run `courier engine install` once", ErrNotFound, strings.Join(tried, ", "))
}

// named takes a file that somebody named, and no other. It may be a clickhouse
// program as well: what find returned can be handed on as it is.
func (p places) named(path, from string) (Library, error) {
	if info, err := os.Stat(path); canSupervise && err == nil && isProgram(info) && !strings.Contains(info.Name(), ".so") {
		if err := p.checkServer(path); err != nil {
			return Library{}, fmt.Errorf("engine named by %s: %s: %w", from, path, err)
		}
		absolute, err := filepath.Abs(path)
		return Library{Path: absolute, From: from, Server: true}, err
	}
	if !p.hosted {
		return Library{}, fmt.Errorf("%w: %s names %s, but this build for %s cannot load an engine library", ErrUnsupported, from, path, p.platform)
	}
	absolute, err := filepath.Abs(path)
	if err == nil {
		err = checkLibrary(absolute)
	}
	if err != nil {
		return Library{}, fmt.Errorf("engine library named by %s: %w", from, err)
	}
	return Library{Path: absolute, From: from}, nil
}

// candidates are the libraries that would be used, in order.
func (p places) candidates() []Library {
	var found []Library
	if p.beside != "" {
		found = append(found, Library{Path: filepath.Join(p.beside, libraryName), From: "beside the program"})
	}
	if p.cache != "" {
		found = append(found, Library{Path: filepath.Join(p.cache, pinnedVersion, libraryName), From: "cache"})
	}
	for _, d := range p.system {
		found = append(found, Library{Path: filepath.Join(d, libraryName), From: "system"})
	}
	return found
}

// checkLibrary refuses a file that the loader would refuse, before a process is
// started for it.
func checkLibrary(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		if _, unread := errors.AsType[*fs.PathError](err); unread {
			return err // it names the path
		}
		return fmt.Errorf("%s is not a shared library: %w", path, err)
	}
	defer file.Close()
	if file.Type != elf.ET_DYN || file.Machine != elf.EM_X86_64 {
		return fmt.Errorf("%s is not a shared library for amd64 (%s, %s)", path, file.Type, file.Machine)
	}
	return nil
}

// onPath looks for a clickhouse program. The note says what was tried, or why
// the program is not used.
func (p places) onPath(path string) (program, note string) {
	for _, d := range filepath.SplitList(path) {
		candidate := filepath.Join(d, "clickhouse")
		if info, err := os.Stat(candidate); d == "" || err != nil || !isProgram(info) {
			continue
		}
		if err := p.checkServer(candidate); err != nil {
			return "", fmt.Sprintf("%s, not used: %v", candidate, err)
		}
		return candidate, ""
	}
	return "", "clickhouse on the PATH"
}

// isProgram says whether a file may be executed.
func isProgram(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

// checkServer refuses a program that is no ClickHouse, or too old a one.
func (p places) checkServer(program string) error {
	version, err := p.version(program)
	if err != nil {
		return err
	}
	if !serverNewEnough(version) {
		return fmt.Errorf("version %s, need %d.%d or later", version, oldestServerMajor, oldestServerMinor)
	}
	return nil
}

var versionPattern = regexp.MustCompile(`ClickHouse server version (\d+\.\d+[.\d]*)`)

// serverVersion asks a clickhouse program for its version.
func serverVersion(program string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, program, "server", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask for its version: %w", err)
	}
	m := versionPattern.FindSubmatch(output)
	if m == nil {
		return "", errors.New("it does not say its version as ClickHouse does")
	}
	return strings.TrimSuffix(string(m[1]), "."), nil
}

// serverNewEnough reads a version such as 26.7.2.1.
func serverNewEnough(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	if errMajor != nil || errMinor != nil {
		return false
	}
	return major > oldestServerMajor || major == oldestServerMajor && minor >= oldestServerMinor
}
