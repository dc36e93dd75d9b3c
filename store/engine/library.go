package engine

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The pinned package. package-lock.json, which npm reads, has the same values; a test compares
// them.
const (
	pinnedPackage   = "@chdb/lib-linux-x64-gnu"
	pinnedVersion   = "26.7.3-stable.1"
	pinnedIntegrity = "sha512-XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw=="
	pinnedLibrary   = "36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5" // SHA-256 of libchdb.so
	pinnedSizes     = "178 MB to download, 566 MB on disk"
)

// libraryName is the name of the library's file.
const libraryName = "libchdb.so"

// Library is an installed engine library.
type Library struct {
	// Path is the path of the file, as for Options.Library.
	Path string
	// From is the source of the path: "--engine-library", the name of an environment variable,
	// "beside the program", "cache" or "system".
	From string
}

// searchPaths are the locations of an engine that no option or variable names.
type searchPaths struct {
	hosted     bool   // this build can load the library
	platform   string // for errors
	programDir string // directory of this program; "" if unknown
	cache      string // Courier's directory in the user's cache; "" if unknown
	system     []string
}

// FindLibrary finds an engine. explicit is the value of --engine-library, and getenv reads the
// environment. The first match is used:
//
//  1. explicit, COURIER_ENGINE_LIBRARY, CHDB_LIB_PATH: if the named file does not exist, or is no
//     library for this machine, FindLibrary fails
//  2. the library in the directory of this program, in the user's cache (where Install puts it),
//     or in the library directories of the system
//
// The error matches ErrNotFound if there is no engine, and ErrUnsupported if this system or build
// cannot load a library.
func FindLibrary(explicit string, getenv func(string) string) (Library, error) {
	p := searchPaths{
		hosted:   hosted,
		platform: runtime.GOOS + "/" + runtime.GOARCH,
		system:   []string{"/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"},
	}
	if program, err := os.Executable(); err == nil {
		p.programDir = filepath.Dir(program)
	}
	if cache, err := defaultCacheDir(); err == nil {
		p.cache = cache
	}
	return p.find(explicit, getenv)
}

// defaultCacheDir returns the directory for engines in the user's cache.
func defaultCacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "courier", "engine"), nil
}

// find is FindLibrary with these paths.
func (p searchPaths) find(explicit string, getenv func(string) string) (Library, error) {
	if !p.hosted {
		return Library{}, fmt.Errorf("%w: this build for %s cannot load the engine library; "+
			"start a ClickHouse server and name it with --clickhouse-url", ErrUnsupported, p.platform)
	}
	for _, named := range []struct{ path, from string }{
		{explicit, "--engine-library"},
		{getenv("COURIER_ENGINE_LIBRARY"), "COURIER_ENGINE_LIBRARY"},
		{getenv("CHDB_LIB_PATH"), "CHDB_LIB_PATH"},
	} {
		if named.path != "" {
			return namedLibrary(named.path, named.from)
		}
	}
	var tried []string
	for _, candidate := range p.candidates() {
		err := checkLibrary(candidate.Path)
		if errors.Is(err, fs.ErrNotExist) {
			tried = append(tried, candidate.Path)
			continue
		}
		return candidate, err
	}
	return Library{}, fmt.Errorf("%w; tried %s; run `courier engine install` once",
		ErrNotFound, strings.Join(tried, ", "))
}

// namedLibrary checks the library that an option or variable names.
func namedLibrary(path, from string) (Library, error) {
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
