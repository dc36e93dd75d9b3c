package engine

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// elfFile returns the header of an ELF file of the given kind.
func elfFile(kind elf.Type, machine elf.Machine) []byte {
	var b bytes.Buffer
	h := elf.Header64{
		Type:      uint16(kind),
		Machine:   uint16(machine),
		Version:   1,
		Ehsize:    64,
		Phentsize: 56,
		Shentsize: 64,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(
		elf.ELFCLASS64,
	), byte(
		elf.ELFDATA2LSB,
	), 1
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		panic(err) // a fixed-size struct into memory
	}
	return b.Bytes()
}

// tree writes files in a new directory.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFindLibrary_Order(t *testing.T) {
	library := elfFile(elf.ET_DYN, elf.EM_X86_64)
	all := map[string][]byte{
		"flag.so": library, "env.so": library, "chdb.so": library,
		"beside/" + libraryName: library, "cache/" + pinnedVersion + "/" +
			libraryName: library, "system/" + libraryName: library,
	}
	for _, c := range []struct {
		name     string
		explicit string
		env      map[string]string
		without  []string // missing files of the tree
		broken   string   // a file that is not a library
		want     string   // path of the result; "": an error
		from     string   // origin of the result, or part of the error
	}{
		{
			name:     "the flag comes first",
			explicit: "flag.so",
			env:      map[string]string{"COURIER_ENGINE_LIBRARY": "env.so"},
			want:     "flag.so",
			from:     "--engine-library",
		},
		{
			name: "then the variable of Courier",
			env:  map[string]string{"COURIER_ENGINE_LIBRARY": "env.so", "CHDB_LIB_PATH": "chdb.so"},
			want: "env.so",
			from: "COURIER_ENGINE_LIBRARY",
		},
		{
			name: "then the variable of other programs",
			env:  map[string]string{"CHDB_LIB_PATH": "chdb.so"},
			want: "chdb.so",
			from: "CHDB_LIB_PATH",
		},
		{
			name:     "a wrong flag ends the search",
			explicit: "none.so",
			env:      map[string]string{"CHDB_LIB_PATH": "chdb.so"},
			from:     "--engine-library",
		},
		{
			name: "a wrong variable ends the search",
			env:  map[string]string{"CHDB_LIB_PATH": "none.so"},
			from: "CHDB_LIB_PATH",
		},
		{
			name:     "a named file that is not a library",
			explicit: "flag.so",
			broken:   "flag.so",
			from:     "not a shared library",
		},
		{name: "beside the program", want: "beside/" + libraryName, from: "beside the program"},
		{
			name:    "in the cache",
			without: []string{"beside/" + libraryName},
			want:    "cache/" + pinnedVersion + "/" + libraryName,
			from:    "cache",
		},
		{
			name: "in the system",
			without: []string{
				"beside/" + libraryName, "cache/" + pinnedVersion + "/" + libraryName,
			},
			want: "system/" + libraryName,
			from: "system",
		},
		{
			name:   "a broken library that was found",
			broken: "beside/" + libraryName,
			from:   "not a shared library",
		},
		{
			name: "nowhere",
			without: []string{
				"beside/" + libraryName,
				"cache/" + pinnedVersion + "/" + libraryName,
				"system/" + libraryName,
			},
			from: "courier engine install",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, all)
			for _, f := range c.without {
				if err := os.Remove(filepath.Join(root, f)); err != nil {
					t.Fatal(err)
				}
			}
			if c.broken != "" {
				if err := os.WriteFile(filepath.Join(root, c.broken), []byte("text"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			found, err := pathsIn(
				root,
			).find(inTree(root, c.explicit), func(name string) string {
				return inTree(root, c.env[name])
			})
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), c.from) {
					t.Fatalf("find() = %+v, %v, want an error with %q", found, err, c.from)
				}
				return
			}
			if err != nil || found.Path != filepath.Join(root, c.want) || found.From != c.from {
				t.Errorf("find() = %+v, %v, want %s from %s", found, err, c.want, c.from)
			}
		})
	}
}

// pathsIn returns the search paths below root, on a system that can load the library.
func pathsIn(root string) searchPaths {
	return searchPaths{
		hosted: true, platform: "linux/amd64",
		programDir: filepath.Join(
			root,
			"beside",
		), cache: filepath.Join(root, "cache"), system: []string{filepath.Join(root, "system")},
	}
}

// inTree makes each path of a list absolute.
func inTree(root, list string) string {
	if list == "" {
		return ""
	}
	var all []string
	for _, p := range filepath.SplitList(list) {
		all = append(all, filepath.Join(root, p))
	}
	return strings.Join(all, string(filepath.ListSeparator))
}

func TestFindLibrary_ReportsTheSearch(t *testing.T) {
	root := t.TempDir()
	_, err := pathsIn(root).find("", func(string) string { return "" })
	if !errors.Is(err, ErrNotFound) {
		t.Fatalf("find() = %v, want ErrNotFound", err)
	}
	for _, place := range []string{"beside", pinnedVersion, "system", "courier engine install"} {
		if !strings.Contains(err.Error(), place) {
			t.Errorf("find() = %v, want an error that names %s", err, place)
		}
	}
}

func TestFindLibrary_RejectsABuildWithoutHost(t *testing.T) {
	root := tree(t, map[string][]byte{"beside/" + libraryName: elfFile(elf.ET_DYN, elf.EM_X86_64)})
	p := pathsIn(root)
	p.hosted, p.platform = false, "darwin/arm64"
	for _, explicit := range []string{"", filepath.Join(root, "beside", libraryName)} {
		_, err := p.find(explicit, func(string) string { return "" })
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "darwin/arm64") {
			t.Errorf("find(%q) = %v, want ErrUnsupported for darwin/arm64", explicit, err)
		}
	}
}

func TestCheckLibrary_RejectsOtherFiles(t *testing.T) {
	for name, content := range map[string][]byte{
		"empty": nil, "text": []byte("#!/bin/sh\n"), "half": elfFile(elf.ET_DYN, elf.EM_X86_64)[:30],
		"program": elfFile(elf.ET_EXEC, elf.EM_X86_64), "arm64": elfFile(elf.ET_DYN,
			elf.EM_AARCH64),
	} {
		path := filepath.Join(tree(t, map[string][]byte{name: content}), name)
		if err := checkLibrary(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("checkLibrary(%s) = %v, want an error that names it", name, err)
		}
	}
}
