//go:build linux && amd64 && !noengine

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confinedMark in the environment marks the second pass. The supervisor builds the environment, so
// no user can set it.
const confinedMark = "COURIER_ENGINE_CONFINED=1"

// Landlock rights. A handled right is denied unless a rule grants it.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readTree  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeTree = readTree | writeFile |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// The Landlock versions that introduced features. Before version 3 no rule can allow a file to be
// truncated or renamed into another directory.
const (
	abiFiles = 3
	abiNet   = 4
	abiScope = 6
)

type pathGrant struct {
	path   string
	rights uint64
}

// confine denies this process access to all files that the engine does not need, and outgoing TCP
// connections unless it is part of a cluster. It runs before the engine is loaded.
//
// The engine has no sandbox: for any user with SELECT, its function file() reads any path,
// regardless of the grants, and a table can store its data on a web disk.
//
// Landlock restricts a thread and its descendants, but Go has started other threads already.
// Therefore confine restricts this thread, which then executes this program again. On success
// confine returns only on that second pass.
func confine(c hostArguments) error {
	if slices.Contains(os.Environ(), confinedMark) {
		return nil
	}
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return fmt.Errorf("the kernel has no Landlock: %w", errno)
	}
	if abi < abiFiles {
		return fmt.Errorf("the kernel's Landlock is version %d, need %d", abi, abiFiles)
	}
	run, err := os.Getwd()
	if err != nil {
		return err
	}
	grants, err := grantsFor(c.library, c.store, run)
	if err != nil {
		return err
	}
	ruleset, err := newRuleset(int(abi), grants, c.connect)
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)

	// After a partial failure no other goroutine may use this thread: it stays locked to this
	// goroutine, which runs the engine.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0)
	if errno != 0 {
		return fmt.Errorf("restrict this process: %w", errno)
	}
	err = syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), confinedMark))
	return fmt.Errorf("execute this program again: %w", err)
}

// grantsFor returns the paths that the engine needs: its two directories; this program, the library
// and the directories of the C libraries; the files with which the C library resolves the host
// name; devices; /proc and /sys.
func grantsFor(library, store, run string) ([]pathGrant, error) {
	grants := []pathGrant{
		{store, writeTree}, {run, writeTree},
		{library, readFile}, {"/proc/self/exe", readFile},
		{"/proc", readTree}, {"/sys", readTree},
		{"/dev/null", writeFile}, {"/dev/random", writeFile}, {"/dev/urandom", writeFile},
		{"/dev/tty", writeFile}, {"/dev/ptmx", writeFile}, {"/dev/pts", writeFile},
		{"/etc/ld.so.cache", readFile}, {"/etc/hosts", readFile}, {"/etc/host.conf", readFile},
		{"/etc/nsswitch.conf", readFile}, {"/etc/resolv.conf", readFile},
	}
	directories, err := libraryDirectories()
	if err != nil {
		return nil, err
	}
	for _, d := range directories {
		grants = append(grants, pathGrant{d, readTree})
	}
	return grants, nil
}

// libraryDirectories returns the directories of this process's libraries, with that of the C library.
func libraryDirectories() ([]string, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	var directories []string
	for line := range strings.Lines(string(maps)) {
		_, path, found := strings.Cut(strings.TrimSpace(line), " /")
		if !found || !strings.Contains(filepath.Base(path), ".so") {
			continue
		}
		if d := filepath.Dir("/" + path); !slices.Contains(directories, d) {
			directories = append(directories, d)
		}
	}
	return directories, nil
}

// newRuleset creates a Landlock ruleset. It leaves out paths that do not exist.
func newRuleset(abi int, grants []pathGrant, connect bool) (int, error) {
	attributes := unix.LandlockRulesetAttr{Handled_access_fs: writeTree}
	if abi >= abiNet && !connect {
		attributes.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= abiScope {
		attributes.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0)
	if errno != 0 {
		return -1, fmt.Errorf("create a Landlock ruleset: %w", errno)
	}
	ruleset := int(fd)
	for _, g := range grants {
		if err := addRule(ruleset, g); err != nil && !errors.Is(err, fs.ErrNotExist) {
			unix.Close(ruleset)
			return -1, fmt.Errorf("grant %s: %w", g.path, err)
		}
	}
	return ruleset, nil
}

func addRule(ruleset int, g pathGrant) error {
	fd, err := unix.Open(g.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: g.rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset),
		unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
