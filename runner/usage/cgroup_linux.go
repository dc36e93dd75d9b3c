package usage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Cgroup is a cgroup (v2) that was created for one job, below the cgroup of this process. Unless it shares
// the processors, it only accounts. If a controller that shares processors or disks were enabled, a
// job in its own cgroup would get a different share than one in the cgroup of this process.
//
// The methods of a nil Cgroup do nothing, and start commands in the cgroup of this process.
type Cgroup struct{ path string }

// NewCgroup creates a cgroup. With sharesCPUs it can also share the processors, see SetCPUs. The error
// explains why that is not permitted.
func NewCgroup(name string, sharesCPUs bool) (*Cgroup, error) {
	path, err := createCgroup(name, sharesCPUs)
	if err != nil {
		return nil, fmt.Errorf("create a cgroup: %w", err)
	}
	return &Cgroup{path}, nil
}

func createCgroup(name string, sharesCPUs bool) (path string, err error) {
	parent := cgroupOf("self")
	if parent == "" {
		return "", errors.New("this system has no cgroup v2, or it is not mounted here")
	}
	if sharesCPUs {
		if parent, err = shareProcessors(parent, os.Getpid()); err != nil {
			return "", err
		}
	}
	if err := checkControllers(parent, sharesCPUs); err != nil {
		return "", err
	}
	removeStale(parent)
	path = filepath.Join(parent, namePrefix+name)
	return path, os.Mkdir(path, 0o755)
}

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

// checkControllers returns an error if a cgroup below the directory would change how its processes
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

// dir returns the directory of the cgroup; empty: none.
func (c *Cgroup) dir() string {
	if c == nil {
		return ""
	}
	return c.path
}

// Start starts a command in the cgroup. All its children are in the cgroup too.
func (c *Cgroup) Start(cmd *exec.Cmd) error {
	if c == nil {
		return cmd.Start()
	}
	f, err := os.Open(c.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only its descriptor was used
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(f.Fd())
	return cmd.Start()
}

// Remove removes the cgroup. It fails while the cgroup has processes.
func (c *Cgroup) Remove() error {
	if c == nil {
		return nil
	}
	if err := unix.Rmdir(c.path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove cgroup %s: %w", c.path, err)
	}
	return nil
}
