package usage

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// cpuController shares the processors among cgroups.
const cpuController = "cpu"

// Weights of cgroups. One of one CPU has the default weight, so that two jobs share the processors in the
// ratio of their CPUs.
const (
	weightPerCPU         = 100
	minWeight, maxWeight = 1, 10_000
)

const (
	weightFile = "cpu.weight"
	limitFile  = "cpu.max"
)

// limitPeriod is the default period of the upper limit, in microseconds.
const limitPeriod = 100_000

// SetCPUs changes the weight of the cgroup to that of a number of CPUs, which may be a fraction above 0.
// The kernel's smallest weight is 1 % of a CPU. With isCapped it also limits the cgroup to as many;
// otherwise the processes may use CPUs that nobody else uses.
func (c *Cgroup) SetCPUs(cpus float64, isCapped bool) error {
	if !(cpus > 0) {
		return fmt.Errorf("set the CPUs of a cgroup to %v: want more than 0", cpus)
	}
	if _, err := os.Stat(filepath.Join(c.dir(), weightFile)); c.dir() == "" || err != nil {
		return errors.New("the cgroup has no CPU controller: its parent needs \"cpu\" in cgroup.subtree_control")
	}
	weight := min(max(int(math.Round(cpus*weightPerCPU)), minWeight), maxWeight)
	quota := "max"
	if isCapped {
		quota = strconv.Itoa(int(cpus * limitPeriod))
	}
	return errors.Join(
		writeFile(c.path, weightFile, strconv.Itoa(weight)),
		writeFile(c.path, limitFile, fmt.Sprintf("%s %d", quota, limitPeriod)),
	)
}

func writeFile(dir, name, text string) error {
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write %q: %w", text, err)
	}
	return nil
}
