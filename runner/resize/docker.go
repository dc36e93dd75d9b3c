package resize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// sharesPerCPU is the weight of a CPU in Docker, whose default weight is that of one CPU.
const sharesPerCPU = 1024

// Container is a Docker container whose CPUs can be changed while it runs.
type Container struct {
	Name string // or ID
	// IsCapped limits the container to its CPUs. Otherwise it only has their weight, and may use CPUs
	// that nobody else uses.
	IsCapped bool

	command string // default "docker"
}

// Resize sets the CPUs of the container, 1 or more.
func (c *Container) Resize(ctx context.Context, cpus uint32) error {
	if cpus < 1 {
		return fmt.Errorf("resize container %s to %d CPUs: want 1 or more", c.Name, cpus)
	}
	args := []string{"update", "--cpu-shares", strconv.Itoa(min(int(cpus)*sharesPerCPU, 1<<18))}
	if c.IsCapped {
		args = append(args, "--cpus", strconv.Itoa(int(cpus)))
	}
	out, err := exec.CommandContext(ctx, cmp.Or(c.command, "docker"), append(args, c.Name)...).CombinedOutput()
	if err != nil {
		if text := strings.TrimSpace(string(out)); text != "" {
			err = errors.New(text)
		}
		return fmt.Errorf("docker update of container %s: %w", c.Name, err)
	}
	return nil
}
