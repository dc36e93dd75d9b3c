package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
)

// hog keeps every processor busy with training that Courier does not know of.
func (d *demo) hog(ctx context.Context) (undo func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	undo = func() {
		cancel()
		all.Wait()
	}
	for range runtime.NumCPU() {
		c := exec.CommandContext(ctx, program, "workload", "digits",
			"--epochs", "100000", "--augment", "1000")
		if err := c.Start(); err != nil {
			undo()
			return nil, fmt.Errorf("start a CPU hog: %w", err)
		}
		all.Go(func() { _ = c.Wait() }) // it is killed
	}
	return undo, nil
}

// slowQuota is how much of one processor all processes of a limited job share.
const slowQuota = 0.6

// limit lets the processes of each job share part of one processor.
func (d *demo) limit(context.Context) (undo func(), err error) {
	const period = 100_000 // microseconds
	quota := int(slowQuota * period)
	group, file, text := "/sys/fs/cgroup/courier-demo", "cpu.max", fmt.Sprintf("%d %d", quota, period)
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil { // version 1
		group, file, text = "/sys/fs/cgroup/cpu/courier-demo", "cpu.cfs_quota_us", strconv.Itoa(quota)
	}
	if err := os.MkdirAll(group, 0o755); err != nil {
		return nil, fmt.Errorf("make a cgroup (only root may): %w", err)
	}
	undo = func() {
		d.wrap = nil
		_ = os.Remove(group) // no process is left in it
	}
	if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0o644); err != nil {
		undo()
		return nil, fmt.Errorf("limit the processors of a cgroup: %w", err)
	}
	enter := `echo $$ >` + filepath.Join(group, "cgroup.procs") + ` && exec "$@"`
	d.wrap = []string{"sh", "-c", enter, "sh"}
	return undo, nil
}
