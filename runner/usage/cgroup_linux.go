package usage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	unified string // directory in v2, which accounts; empty: none
	v1      string // directory of the CPU controller of v1; empty: that of v2 shares the processors
}

// NewCgroup creates a cgroup. The error explains why that is not permitted.
func NewCgroup(name string) (*Cgroup, error) {
	c := &Cgroup{}
	if err := c.createUnified(name, false); err != nil {
		return nil, fmt.Errorf("create a cgroup: %w", err)
	}
	return c, nil
}

// NewSharingCgroup creates a cgroup that can also share the processors, see SetCPUs. The error
// explains why that is not permitted.
func NewSharingCgroup(name string) (*Cgroup, error) {
	c := &Cgroup{}
	parent := dirOf(membershipsOf("self"), mountedCgroups(), cpuController)
	err := c.createUnified(name, parent == "")
	if parent != "" { // v2 only accounts, which the process tree does, too
		if err = checkV1(); err == nil {
			c.v1, err = create(parent, name)
		}
	}
	if err == nil {
		_, _, err = c.cpuControl()
	}
	if err != nil {
		return nil, fmt.Errorf("create a cgroup: %w", errors.Join(err, c.Remove()))
	}
	return c, nil
}

// createUnified creates the cgroup of v2.
func (c *Cgroup) createUnified(name string, sharesCPUs bool) (err error) {
	parent := dirOf(membershipsOf("self"), mountedCgroups(), unified)
	if parent == "" {
		return errNotPermitted
	}
	if sharesCPUs {
		if parent, err = shareProcessors(systemFiles{}, parent, os.Getpid()); err != nil {
			return err
		}
	}
	if err = checkControllers(parent, sharesCPUs); err == nil {
		c.unified, err = create(parent, name)
	}
	return err
}

// create creates a cgroup below its parent.
func create(parent, name string) (string, error) {
	removeStale(parent)
	dir := filepath.Join(parent, namePrefix+name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	return dir, nil
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

// checkControllers returns an error if a cgroup of v2 below the directory would change how its processes
// run, except that it may share the processors if that is wanted.
func checkControllers(dir string, sharesCPUs bool) error {
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

// checkV1 returns an error if the CPU controller of v1 is mounted with others that would change how the
// processes run.
func checkV1() error {
	for _, m := range membershipsOf("self") {
		if !has(m.controllers, cpuController) {
			continue
		}
		for _, c := range m.controllers {
			if c != cpuController && c != "cpuacct" {
				return fmt.Errorf("controller %s is mounted with %s", c, cpuController)
			}
		}
	}
	return nil
}

// dir returns the directory of the cgroup that accounts; empty: none.
func (c *Cgroup) dir() string {
	if c == nil {
		return ""
	}
	return c.unified
}

// Start starts a command in the cgroup. All its children are in the cgroup too: v2 takes the
// cgroup as an argument of the start, and v1 uses the cgroup of the thread that starts. The caller has
// locked its thread, which ends with its goroutine.
func (c *Cgroup) Start(cmd *exec.Cmd) error {
	if c == nil {
		return cmd.Start()
	}
	if c.unified != "" {
		f, err := os.Open(c.unified)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // only its descriptor was used
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(f.Fd())
	}
	if c.v1 == "" {
		return cmd.Start()
	}

	err := moveThread(c.v1)
	if err == nil {
		err = cmd.Start()
	}
	_ = moveThread(filepath.Dir(c.v1)) // otherwise the thread only waits for the command
	return err
}

// moveThread moves the current thread to a cgroup of v1.
func moveThread(dir string) error {
	return writeFile(dir, cpuControlV1.threads, strconv.Itoa(unix.Gettid()))
}

// Remove removes the cgroup. It fails while the cgroup has processes.
func (c *Cgroup) Remove() (err error) {
	if c == nil {
		return nil
	}
	for _, dir := range []string{c.unified, c.v1} { // the name of a missing one is not found
		if e := unix.Rmdir(dir); e != nil && !errors.Is(e, unix.ENOENT) {
			err = errors.Join(err, fmt.Errorf("remove cgroup %s: %w", dir, e))
		}
	}
	return err
}
