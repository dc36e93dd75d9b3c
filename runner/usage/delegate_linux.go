package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// runnerLeaf is the name of the cgroup that this process moves to. It cannot be that of a job,
// which ends in the number of the run.
const runnerLeaf = namePrefix + "runner"

// delegationHint is how a user gets a cgroup in which shareProcessors succeeds.
const delegationHint = "start it in a cgroup of its own: " +
	"systemd-run --user --scope -p Delegate=yes courier run …"

// shareProcessors returns the cgroup whose children share the processors. It is dir, the
// cgroup of a process, or the parent of dir if an earlier call moved the process.
//
// The kernel enables a controller for the children of a cgroup only while no process is in the
// cgroup itself (Control Group v2, "No Internal Process Constraint"). So the process moves to a leaf,
// if it is the only one. It stays there, because the cgroup cannot take it back while jobs share it.
func shareProcessors(dir string, pid int) (parent string, err error) {
	parent = strings.TrimSuffix(dir, "/"+runnerLeaf)
	enabled, err := words(parent, "cgroup.subtree_control")
	if err != nil || slices.Contains(enabled, cpuController) {
		return parent, err
	}
	if err = checkDelegation(parent, pid); err == nil {
		err = moveToLeaf(parent, pid, cpuController)
	}
	if err != nil {
		return "", fmt.Errorf("cgroup %s cannot share the processors: %w; %s", parent, err, delegationHint)
	}
	return parent, nil
}

// checkDelegation returns why the children of a cgroup cannot share the processors, as far as that
// is known without a change.
func checkDelegation(dir string, pid int) error {
	kind, err := words(dir, "cgroup.type")
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it is the root cgroup")
	}
	if err != nil {
		return err
	}
	if text := strings.Join(kind, " "); text != "domain" {
		return fmt.Errorf("its type is %q", text)
	}

	available, err := words(dir, "cgroup.controllers")
	if err != nil {
		return err
	}
	if !slices.Contains(available, cpuController) {
		return errors.New("the controller cpu is not delegated to it")
	}

	pids, err := words(dir, "cgroup.procs")
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(pids, func(p string) bool { return p == strconv.Itoa(pid) })
	if len(others) > 0 {
		return fmt.Errorf("other processes are in it (%s)", strings.Join(others, ", "))
	}
	return nil
}

// moveToLeaf moves a process from its cgroup to a leaf below it, and then enables a controller for
// the children of the cgroup. If the kernel refuses that, the process moves back.
func moveToLeaf(dir string, pid int, controller string) error {
	leaf := filepath.Join(dir, runnerLeaf)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	process := strconv.Itoa(pid)
	err := writeFile(leaf, "cgroup.procs", process)
	if err == nil {
		err = writeFile(dir, "cgroup.subtree_control", "+"+controller)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, writeFile(dir, "cgroup.procs", process), unix.Rmdir(leaf))
}

// words returns the words of a file of a cgroup.
func words(dir, name string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	return strings.Fields(string(text)), err
}
