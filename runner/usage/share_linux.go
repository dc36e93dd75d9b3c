package usage

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// Units of the CPU controllers. A cgroup of one CPU has the default weight of its kind, so that two
// jobs share the processors in the ratio of their CPUs.
const (
	weightPerCPU = 100    // cpu.weight of v2, 1 to 10,000
	sharesPerCPU = 1024   // cpu.shares of v1, 2 to 262,144
	periodMicros = 100000 // of the upper limit, in v1 and v2
)

// errNoCPUController is the error of a system that does not permit to share the processors.
var errNoCPUController = errors.New("the cgroup has no CPU controller: " +
	"with cgroup v2 its parent needs \"cpu\" in cgroup.subtree_control")

// cpuFiles returns the directory with the CPU controller of the cgroup, and whether that is of v1.
func (c *Cgroup) cpuFiles() (dir string, isV1 bool, err error) {
	dir, name := c.dir(), "cpu.weight"
	if c != nil && c.v1 != "" {
		dir, name, isV1 = c.v1, "cpu.shares", true
	}
	if _, err := os.Stat(filepath.Join(dir, name)); dir == "" || err != nil {
		return "", false, errNoCPUController
	}
	return dir, isV1, nil
}

// SetCPUs changes the weight of the cgroup to that of a number of CPUs, 1 or more. With isCapped it
// also limits the cgroup to as many; otherwise the processes may use CPUs that nobody else uses.
func (c *Cgroup) SetCPUs(cpus uint32, isCapped bool) error {
	if cpus < 1 {
		return fmt.Errorf("set the CPUs of a cgroup to %d: want 1 or more", cpus)
	}
	if err := c.SetWeight(float64(cpus)); err != nil {
		return err
	}
	dir, isV1, err := c.cpuFiles()
	if err != nil {
		return err
	}

	quota, limit := "-1", "max"
	if isCapped {
		quota = strconv.Itoa(int(cpus) * periodMicros)
		limit = quota
	}
	if isV1 {
		return errors.Join(
			writeFile(dir, "cpu.cfs_period_us", strconv.Itoa(periodMicros)),
			writeFile(dir, "cpu.cfs_quota_us", quota),
		)
	}
	return writeFile(dir, "cpu.max", fmt.Sprintf("%s %d", limit, periodMicros))
}

// SetWeight changes the weight of the cgroup to that of a number of CPUs, which may be a fraction
// above 0. The kernel's smallest weight is 1 % of a CPU.
func (c *Cgroup) SetWeight(cpus float64) error {
	dir, isV1, err := c.cpuFiles()
	if err != nil {
		return err
	}
	if !(cpus > 0) {
		return fmt.Errorf("set the weight of a cgroup to that of %v CPUs: want more than 0", cpus)
	}
	name, weight := "cpu.weight", min(max(math.Round(cpus*weightPerCPU), 1), 10000)
	if isV1 {
		name, weight = "cpu.shares", min(max(math.Round(cpus*sharesPerCPU), 2), 1<<18)
	}
	return writeFile(dir, name, strconv.Itoa(int(weight)))
}

func writeFile(dir, name, text string) error {
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write %q: %w", text, err)
	}
	return nil
}
