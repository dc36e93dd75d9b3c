//go:build linux && amd64 && !noengine

package host

import (
	"bufio"
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

// confinedMark in the environment says that this is the second pass. The
// supervisor writes the environment, so nobody else sets it.
const confinedMark = "COURIER_ENGINE_CONFINED=1"

// Rights of Landlock that the rules below hand out. What is handled is refused
// wherever no rule grants it.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readTree  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeTree = readTree | writeFile |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// The Landlock versions from which parts of it may be used. Before the third, a
// file cannot be truncated, or renamed into another directory, by rule.
const (
	abiFiles = 3
	abiNet   = 4
	abiScope = 6
)

// grant is one rule: what may be done at and below a path.
type grant struct {
	path   string
	rights uint64
}

// confine takes from this process, before the engine is in it, every file but
// those that the engine needs, and every outgoing TCP connection.
//
// The engine has no sandbox of its own: its function file() reads any path for
// anybody who may select, whatever the grants say, and a table can keep its
// data on a web disk. Landlock binds one thread and its children, and Go's
// threads are there already; so it is laid on this thread, which then runs this
// program again. On success confine returns only on that second pass.
func confine(library, store string) error {
	if slices.Contains(os.Environ(), confinedMark) {
		return nil
	}
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
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
	grants, err := grantsFor(library, store, run)
	if err != nil {
		return err
	}
	ruleset, err := newRuleset(int(abi), grants)
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	// A thread that failed half way must not be used for anything else: it stays
	// locked to this goroutine, which is the one that runs the engine.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("restrict this process: %w", errno)
	}
	err = syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), confinedMark))
	return fmt.Errorf("run this program again: %w", err)
}

// grantsFor lists what the engine needs: its two directories; this program, the
// library and the directories of the C libraries; what the C library reads to
// resolve its own host's name; devices; and the kernel's view of this machine.
func grantsFor(library, store, run string) ([]grant, error) {
	grants := []grant{
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
		grants = append(grants, grant{d, readTree})
	}
	return grants, nil
}

// libraryDirectories are the folders of the shared libraries that the loader
// has mapped into this process: the C library's, wherever this system has it.
func libraryDirectories() ([]string, error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	var directories []string
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		_, path, found := strings.Cut(lines.Text(), " /")
		if !found || !strings.Contains(filepath.Base(path), ".so") {
			continue
		}
		if d := filepath.Dir("/" + path); !slices.Contains(directories, d) {
			directories = append(directories, d)
		}
	}
	return directories, lines.Err()
}

// newRuleset makes a Landlock ruleset of the grants. Paths that this system
// does not have are left out.
func newRuleset(abi int, grants []grant) (int, error) {
	attributes := unix.LandlockRulesetAttr{Handled_access_fs: writeTree}
	if abi >= abiNet {
		attributes.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= abiScope {
		attributes.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0)
	if errno != 0 {
		return -1, fmt.Errorf("make a Landlock ruleset: %w", errno)
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

// addRule adds one grant to the ruleset.
func addRule(ruleset int, g grant) error {
	fd, err := unix.Open(g.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: g.rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
