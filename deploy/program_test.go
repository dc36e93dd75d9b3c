package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/store/storetest"
)

// programs are built once: courier as in the image, without the embedded engine, and nats-server
// from the module in go.mod.
var programs = struct {
	once sync.Once
	dir  string
	err  error
}{}

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(programs.dir) // a temporary directory
	os.Exit(status)
}

// program returns the path of a program.
func program(t *testing.T, name string) string {
	t.Helper()
	programs.once.Do(func() {
		if programs.dir, programs.err = os.MkdirTemp("", "courier-deploy-"); programs.err == nil {
			programs.err = errors.Join(build(programs.dir, "courier", "courier/services/courier"),
				build(programs.dir, "nats-server", "github.com/nats-io/nats-server/v2"))
		}
	})
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return filepath.Join(programs.dir, name)
}

func build(dir, name, from string) error {
	out, err := exec.Command("go", "build", "-tags", "noengine", "-ldflags", "-s -w",
		"-o", filepath.Join(dir, name), from).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", from, err, out)
	}
	return nil
}

// patience is how long a test waits for a condition. It only guards against hanging.
const patience = 5 * time.Minute

// courier runs courier and returns its output.
func courier(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path := program(t, "courier") // built before the timeout starts
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	return string(out), err
}

// flagsOf returns the help of a command, which checks its arguments, and that of the flags that
// several commands have.
func flagsOf(t *testing.T, args []string) (string, error) {
	t.Helper()
	own, err := courier(t, append(slices.Clone(args), "--help")...)
	if err != nil {
		return own, err
	}
	shared, err := courier(t, "help", "flags")
	return own + shared, err
}

// address returns a local address with a free port.
func address(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(storetest.FreePort(t)))
}

// checkCommand checks the arguments of a command, and that it or the value of another variable uses each
// variable.
func checkCommand(t *testing.T, where string, args []string, variables map[string]string) {
	t.Helper()
	help, err := flagsOf(t, args)
	if err != nil {
		t.Errorf("%s: courier %s: %v\n%s", where, strings.Join(args, " "), err, help)
		return
	}
	used := strings.Join(slices.Collect(maps.Values(variables)), " ")
	for name := range variables {
		if !strings.Contains(help, "($"+name+")") && !strings.Contains(used, "$("+name+")") {
			t.Errorf("%s: neither courier %s nor another variable uses %s", where, args[0], name)
		}
	}
}

// start runs a command until the test ends, and waits until it is healthy. At the end it must stop
// without error after an interrupt.
func start(t *testing.T, name string, c *exec.Cmd, healthy func() error) {
	t.Helper()
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt) // it may have ended
		select {
		case err := <-ended:
			if err != nil || t.Failed() {
				t.Errorf("%s: exit %v:\n%s", name, err, output.String())
			}
		case <-time.After(patience):
			_ = c.Process.Kill() // reported below
			<-ended
			t.Errorf("%s does not stop:\n%s", name, output.String())
		}
	})
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for err := healthy(); err != nil; err = healthy() {
		select {
		case <-tick.C:
		case status := <-ended:
			ended <- status
			t.Fatalf("%s ended before it was healthy", name)
		case <-deadline:
			t.Fatalf("%s is not healthy: %v", name, err)
		}
	}
}
