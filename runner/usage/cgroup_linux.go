package usage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Cgroup is a cgroup that was created for one job, below the cgroup of this process. One that
// NewCgroup returns only accounts. If a controller that shares processors or disks were enabled, a
// job in its own cgroup would get a different share than one in the cgroup of this process.
//
// The methods of a nil Cgroup do nothing, and start commands in the cgroup of this process.
type Cgroup struct {
	created cgroupDirs
	parents cgroupDirs // of v1 only
}

// NewCgroup creates a cgroup in each hierarchy that permits it. The error explains why none does.
func NewCgroup(name string) (*Cgroup, error) { return newCgroup(name, false) }

// NewSharingCgroup creates a cgroup that can also share the processors, see SetCPUs. The error
// explains why that is not permitted.
func NewSharingCgroup(name string) (*Cgroup, error) {
	c, err := newCgroup(name, true)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.cpuFiles(); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

func newCgroup(name string, sharesCPUs bool) (*Cgroup, error) {
	c := &Cgroup{created: cgroupDirs{}, parents: cgroupDirs{}}
	var failures []error
	memberships := membershipsOf("self")
	sharesUnified := sharesCPUs && !slices.ContainsFunc(memberships, func(m membership) bool {
		return slices.Contains(m.controllers, cpuController) // v1 has the controller
	})
	for _, m := range memberships {
		parent, ok := m.dir(mountedCgroups())
		controllers := m.accounting()
		if sharesCPUs && slices.Contains(m.controllers, cpuController) {
			controllers = append(controllers, cpuController)
		}
		if !ok || len(controllers) == 0 {
			continue
		}
		var err error
		if m.controllers == nil && sharesUnified {
			parent, err = shareProcessors(systemFiles{}, parent, os.Getpid())
		}
		dir := filepath.Join(parent, namePrefix+name)
		if err == nil {
			err = m.create(parent, dir, sharesCPUs)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, controller := range controllers {
			c.created[controller] = dir
			if controller != unified {
				c.parents[controller] = parent
			}
		}
	}
	_, isUnified := c.created[unified]
	if len(c.created) == 0 || sharesUnified && !isUnified {
		failures = append(failures, errNotPermitted, c.Remove())
		return nil, fmt.Errorf("create a cgroup: %w", errors.Join(failures...))
	}
	return c, nil
}

// create creates the directory of a cgroup below its parent, if that is permitted and does not
// change how its processes run.
func (m membership) create(parent, dir string, sharesCPUs bool) error {
	if err := m.checkController(parent, sharesCPUs); err != nil {
		return err
	}
	removeStale(parent)
	return os.Mkdir(dir, 0o755)
}

var errNotPermitted = errors.New("no cgroup hierarchy permits it")

// namePrefix is the prefix of the names of created cgroups.
const namePrefix = "courier-run-"

// staleAge is the minimum age of a cgroup that may be removed. The command of a newer one may be
// about to start.
const staleAge = time.Minute

// removeStale removes the cgroups of earlier runs that were killed or left processes behind. The
// kernel refuses to remove a cgroup that still has processes.
func removeStale(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, namePrefix+"*"))
	if err != nil {
		return // the name of the parent contains a pattern
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() && time.Since(info.ModTime()) > staleAge {
			_ = unix.Rmdir(dir) // fails while it has processes
		}
	}
}

// checkController returns an error if a cgroup below the directory would change how its processes
// run, except that it may share the processors if that is wanted.
func (m membership) checkController(dir string, sharesCPUs bool) error {
	if m.controllers == nil {
		enabled, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return err
		}
		for _, c := range strings.Fields(string(enabled)) {
			isForCPUs := c == cpuController || c == "cpuset" // a new cpuset has the CPUs of its parent
			if c != "memory" && c != "pids" && !(sharesCPUs && isForCPUs) {
				return fmt.Errorf("%s: controller %s is enabled for its children", dir, c)
			}
		}
		return nil
	}

	for _, c := range m.controllers {
		if c != cpuacct && c != memory && !(sharesCPUs && c == cpuController) {
			return fmt.Errorf("%s: controller %s is mounted there", dir, c)
		}
	}
	// Without a hierarchy, a memory limit of the parent would not apply to the child.
	if slices.Contains(m.controllers, memory) {
		text, err := os.ReadFile(filepath.Join(dir, "memory.use_hierarchy"))
		if err != nil || strings.TrimSpace(string(text)) != "1" {
			return fmt.Errorf("%s: memory accounting is not hierarchical", dir)
		}
	}
	return nil
}

// dirs returns the directories of the cgroup.
func (c *Cgroup) dirs() cgroupDirs {
	if c == nil {
		return nil
	}
	return c.created
}

// Start starts a command in the cgroup. All its children are in the cgroup too: v2 takes the
// cgroup as an argument of the start, and v1 uses the cgroup of the thread that starts. The caller has
// locked its thread, which ends with its goroutine.
func (c *Cgroup) Start(cmd *exec.Cmd) error {
	if c == nil {
		return cmd.Start()
	}
	if dir, ok := c.created[unified]; ok {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // only its descriptor was used
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(f.Fd())
	}
	if len(c.parents) == 0 {
		return cmd.Start()
	}

	err := moveThread(c.created, c.parents)
	if err == nil {
		err = cmd.Start()
	}
	_ = moveThread(c.parents, c.parents) // otherwise the thread only waits for the command
	return err
}

// moveThread moves the current thread to the directories of these controllers.
func moveThread(dirs, controllers cgroupDirs) error {
	thread := []byte(strconv.Itoa(unix.Gettid()))
	for c := range controllers {
		if err := os.WriteFile(filepath.Join(dirs[c], "tasks"), thread, 0); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes the cgroup. It fails while the cgroup has processes.
func (c *Cgroup) Remove() error {
	if c == nil {
		return nil
	}
	var failures []error
	for _, dir := range c.created {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			failures = append(failures, fmt.Errorf("remove cgroup %s: %w", dir, err))
		}
	}
	return errors.Join(failures...)
}
