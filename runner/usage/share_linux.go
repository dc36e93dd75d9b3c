package usage

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// cpuControl is the CPU controller of a version of cgroups. A cgroup of one CPU has the default weight of
// its version, so that two jobs share the processors in the ratio of their CPUs.
type cpuControl struct {
	threads             string  // file with the IDs of the threads
	weight              string  // file of the weight
	perCPU, least, most float64 // weights
	limit               string  // file of the upper limit
	limitFormat         string  // of the microseconds in a period of limitPeriod
	unlimited           string
}

// limitPeriod is the default period of the upper limit in both versions, in microseconds.
const limitPeriod = 100_000

var (
	cpuControlV1 = cpuControl{"tasks", "cpu.shares", 1024, 2, 1 << 18, "cpu.cfs_quota_us", "%s", "-1"}
	cpuControlV2 = cpuControl{"cgroup.threads", "cpu.weight", 100, 1, 10_000, "cpu.max", "%s 100000", "max"}
)

// errNoCPUController is the error of a system that does not permit to share the processors.
var errNoCPUController = errors.New("the cgroup has no CPU controller: " +
	"with cgroup v2 its parent needs \"cpu\" in cgroup.subtree_control")

// cpuControl returns the directory with the CPU controller of the cgroup, and its files.
func (c *Cgroup) cpuControl() (dir string, files *cpuControl, err error) {
	dir, files = c.dir(), &cpuControlV2
	if c != nil && c.v1 != "" {
		dir, files = c.v1, &cpuControlV1
	}
	if _, err := os.Stat(filepath.Join(dir, files.weight)); dir == "" || err != nil {
		return "", nil, errNoCPUController
	}
	return dir, files, nil
}

// SetCPUs changes the weight of the cgroup to that of a number of CPUs, which may be a fraction above 0.
// The kernel's smallest weight is 1 % of a CPU. With isCapped it also limits the cgroup to as many;
// otherwise the processes may use CPUs that nobody else uses.
func (c *Cgroup) SetCPUs(cpus float64, isCapped bool) error {
	if !(cpus > 0) {
		return fmt.Errorf("set the CPUs of a cgroup to %v: want more than 0", cpus)
	}
	dir, files, err := c.cpuControl()
	if err != nil {
		return err
	}
	weight := min(max(math.Round(cpus*files.perCPU), files.least), files.most)
	quota := files.unlimited
	if isCapped {
		quota = strconv.Itoa(int(cpus * limitPeriod))
	}
	return errors.Join(
		writeFile(dir, files.weight, strconv.Itoa(int(weight))),
		writeFile(dir, files.limit, fmt.Sprintf(files.limitFormat, quota)),
	)
}

func writeFile(dir, name, text string) error {
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write %q: %w", text, err)
	}
	return nil
}
