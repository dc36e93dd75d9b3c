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

// libraryName is the name of the library's file.
const libraryName = "libchdb.so"

// The oldest version of a clickhouse program on the PATH: the first release in which the JSON type,
// which the tables use, is no longer experimental.
const oldestServerMajor, oldestServerMinor = 25, 3

// Library is an installed engine: a shared library, or a server program.
type Library struct {
	// Path is the path of the file, as for Options.Library.
	Path string
	// From is the source of the path: "--engine-library", the name of an environment variable,
	// "PATH", "beside the program", "cache" or "system".
	From string
	// Server is true for a clickhouse program.
	Server bool
	// Skipped lists engines that were found earlier and not used, with the reasons.
	Skipped []string
}

// searchPaths are the locations of an engine that no option or variable names.
type searchPaths struct {
	hosted     bool   // this build can load the library
	platform   string // for errors
	programDir string // directory of this program; "" if unknown
	cache      string // Courier's directory in the user's cache; "" if unknown
	system     []string
	version    func(program string) (string, error)
}

// FindLibrary finds an engine. explicit is the value of --engine-library, and getenv reads the
// environment. The first match is used:
//
//  1. explicit, COURIER_ENGINE_LIBRARY, CHDB_LIB_PATH: if the named file does not exist, or is
//     neither a library for this machine nor a clickhouse program, FindLibrary fails
//  2. a program clickhouse on the PATH, if it is new enough
//  3. the library in the directory of this program, in the user's cache (where Install puts it),
//     or in the library directories of the system
//
// The error matches ErrNotFound if there is no engine, and ErrUnsupported if this system or build
// cannot load a library.
func FindLibrary(explicit string, getenv func(string) string) (Library, error) {
	p := searchPaths{
		hosted:   libraryHosted,
		platform: runtime.GOOS + "/" + runtime.GOARCH,
		system:   []string{"/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"},
		version:  serverVersion,
	}
	if program, err := os.Executable(); err == nil {
		p.programDir = filepath.Dir(program)
	}
	if cache, err := defaultCacheDir(); err == nil {
		p.cache = cache
	}
	return p.find(explicit, getenv)
}

// find is FindLibrary with these paths.
func (p searchPaths) find(explicit string, getenv func(string) string) (Library, error) {
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
			"put a clickhouse program on the PATH, or name a server with --clickhouse-url",
			ErrUnsupported, p.platform, strings.Join(tried, "; "))
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
	return Library{}, fmt.Errorf("%w; tried %s; run `courier engine install` once",
		ErrNotFound, strings.Join(tried, ", "))
}

// named checks the file that an option or variable names: a library or a clickhouse program.
func (p searchPaths) named(path, from string) (Library, error) {
	info, err := os.Stat(path)
	isServer := err == nil && isProgram(info) && !strings.Contains(info.Name(), ".so")
	if canSupervise && isServer {
		if err := p.checkServer(path); err != nil {
			return Library{}, fmt.Errorf("engine named by %s: %s: %w", from, path, err)
		}
		absolute, err := filepath.Abs(path)
		return Library{Path: absolute, From: from, Server: true}, err
	}
	if !p.hosted {
		return Library{}, fmt.Errorf(
			"%w: %s names %s, but this build for %s cannot load an engine library",
			ErrUnsupported, from, path, p.platform)
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

// candidates returns the possible libraries in order.
func (p searchPaths) candidates() []Library {
	var all []Library
	add := func(dir, from string) {
		all = append(all, Library{Path: filepath.Join(dir, libraryName), From: from})
	}
	if p.programDir != "" {
		add(p.programDir, "beside the program")
	}
	if p.cache != "" {
		add(filepath.Join(p.cache, pinnedVersion), "cache")
	}
	for _, d := range p.system {
		add(d, "system")
	}
	return all
}

// checkLibrary returns an error for a file that the loader would reject.
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
		return fmt.Errorf("%s is not a shared library for amd64 (%s, %s)",
			path, file.Type, file.Machine)
	}
	return nil
}

// onPath finds a clickhouse program on the PATH. Otherwise note describes the search, or why the
// program is not used.
func (p searchPaths) onPath(path string) (program, note string) {
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

// isProgram reports whether a file is executable.
func isProgram(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

// checkServer returns an error if a program is not ClickHouse, or too old.
func (p searchPaths) checkServer(program string) error {
	version, err := p.version(program)
	if err != nil {
		return err
	}
	if !serverNewEnough(version) {
		return fmt.Errorf("version %s, need %d.%d or later",
			version, oldestServerMajor, oldestServerMinor)
	}
	return nil
}

var versionPattern = regexp.MustCompile(`ClickHouse server version (\d+\.\d+[.\d]*)`)

// serverVersion returns the version of a clickhouse program.
func serverVersion(program string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, program, "server", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("run it with --version: %w", err)
	}
	m := versionPattern.FindSubmatch(output)
	if m == nil {
		return "", errors.New("its --version output does not name ClickHouse")
	}
	return strings.TrimSuffix(string(m[1]), "."), nil
}

// serverNewEnough reports whether a server version such as 26.7.2.1 is supported.
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
