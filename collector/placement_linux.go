package collector

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// placement is a cgroup that was made for one job, below ours. It counts and
// changes nothing: where a controller is on that shares out processors or disks,
// a job in a cgroup of its own would get another share than in ours.
type placement struct {
	folders group
	home    group // ours, by controller; of v1 only
}

// newPlacement makes a cgroup of this name in each hierarchy that permits it.
// The error says why none does. A nil placement leaves commands where we are.
func newPlacement(name string) (*placement, error) {
	p := &placement{folders: group{}, home: group{}}
	var refusals []error
	for _, m := range membershipsOf("self") {
		folder, ok := m.folder(mountedCgroups())
		if !ok || len(m.counters()) == 0 {
			continue
		}
		err := m.onlyCounts(folder)
		if err == nil {
			sweepGroups(folder)
			err = os.Mkdir(filepath.Join(folder, groupPrefix+name), 0o755)
		}
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		for _, c := range m.counters() {
			p.folders[c] = filepath.Join(folder, groupPrefix+name)
			if c != onUnified {
				p.home[c] = folder
			}
		}
	}
	if len(p.folders) == 0 {
		return nil, fmt.Errorf("make a cgroup: %w", errors.Join(append(refusals, errNoCgroups)...))
	}
	return p, nil
}

// groupPrefix begins the names of our cgroups.
const groupPrefix = "courier-run-"

// sweepGroups removes cgroups of runs that could not: they were killed, or their
// jobs left processes. One that is not empty stays, as does a young one, whose
// command may be about to start.
func sweepGroups(folder string) {
	all, err := filepath.Glob(filepath.Join(folder, groupPrefix+"*"))
	if err != nil {
		return // a folder with a pattern's signs in its name
	}
	for _, old := range all {
		if info, err := os.Stat(old); err == nil && info.IsDir() && time.Since(info.ModTime()) > time.Minute {
			_ = unix.Rmdir(old) // in use
		}
	}
}

var errNoCgroups = errors.New("no hierarchy of cgroups permits it")

// onlyCounts returns why a cgroup below this one would change how its processes run.
func (m membership) onlyCounts(folder string) error {
	if m.controllers == nil {
		on, err := os.ReadFile(filepath.Join(folder, "cgroup.subtree_control"))
		if err != nil {
			return err
		}
		for _, c := range strings.Fields(string(on)) {
			if c != "memory" && c != "pids" {
				return fmt.Errorf("%s: the controller %s is on below it", folder, c)
			}
		}
		return nil
	}
	for _, c := range m.controllers {
		if c != onCPUAcct && c != onMemory {
			return fmt.Errorf("%s: the controller %s is mounted there", folder, c)
		}
	}
	if slices.Contains(m.controllers, onMemory) { // else a limit of ours would not hold for what is below
		if text, err := os.ReadFile(filepath.Join(folder, "memory.use_hierarchy")); err != nil || strings.TrimSpace(string(text)) != "1" {
			return fmt.Errorf("%s: memory is not counted as a hierarchy", folder)
		}
	}
	return nil
}

// group returns the cgroup; none of a nil placement.
func (p *placement) group() group {
	if p == nil {
		return nil
	}
	return p.folders
}

// start starts a command in the cgroup, so that not even its first children are
// elsewhere: v2 takes the cgroup with the start, v1 that of the thread that starts.
func (p *placement) start(cmd *exec.Cmd) error {
	if p == nil {
		return cmd.Start()
	}
	if folder, has := p.folders[onUnified]; has {
		f, err := os.Open(folder)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only named
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(f.Fd())
	}
	if len(p.home) == 0 {
		return cmd.Start()
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := moveThread(p.folders, p.home)
		if err == nil {
			err = cmd.Start()
		}
		if moveThread(p.home, p.home) == nil { // else the thread ends with this goroutine
			runtime.UnlockOSThread()
		}
		started <- err
	}()
	return <-started
}

// moveThread moves the present thread into the folders of these controllers.
func moveThread(to, controllers group) error {
	thread := []byte(strconv.Itoa(unix.Gettid()))
	for c := range controllers {
		if err := os.WriteFile(filepath.Join(to[c], "tasks"), thread, 0); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the cgroup. It cannot while processes are left in it.
func (p *placement) remove() error {
	if p == nil {
		return nil
	}
	var failures []error
	for _, folder := range p.folders {
		if err := unix.Rmdir(folder); err != nil && err != unix.ENOENT {
			failures = append(failures, fmt.Errorf("remove %s: %w", folder, err))
		}
	}
	return errors.Join(failures...)
}
