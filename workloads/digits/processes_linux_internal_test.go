//go:build linux

package digits

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// clusterProcess is a running process.
type clusterProcess struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines *bufio.Scanner
	seat  *machineSeat // nil: without limits of CPU and link
}

// start starts a process. Its limits begin with release.
func (m *limitedMachine) start(s *machineSeat, role *clusterRole) *clusterProcess {
	program, err := os.Executable()
	m.must(err)
	text, err := json.Marshal(role)
	m.must(err)
	cmd := exec.Command(program)
	if s != nil {
		cmd = exec.Command("ip", "netns", "exec", s.name, program)
	}
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text), "GOMAXPROCS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	p := &clusterProcess{cmd: cmd, seat: s}
	p.input, err = cmd.StdinPipe()
	m.must(err)
	out, err := cmd.StdoutPipe()
	m.must(err)
	m.must(cmd.Start())
	p.lines = bufio.NewScanner(out)
	m.running = append(m.running, p)
	return p
}

// awaitReady waits until a process can take part.
func (m *limitedMachine) awaitReady(p *clusterProcess) {
	if !p.lines.Scan() || p.lines.Text() != "ready" {
		m.b.Fatalf("a process ended before it was ready: %q, %v", p.lines.Text(), p.lines.Err())
	}
}

// release limits a process, and lets it go.
func (m *limitedMachine) release(p *clusterProcess) {
	groups := []string{diskGroup}
	if p.seat != nil {
		groups = append(groups, pressureGroup)
		groups = append(groups, p.seat.groups()...)
	}
	for _, dir := range groups {
		m.write(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(p.cmd.Process.Pid))
	}
	_, err := io.WriteString(p.input, "go\n")
	m.must(err)
}

// stop ends processes, and waits for them. Servers write their checkpoint.
func (m *limitedMachine) stop(processes ...*clusterProcess) {
	for _, p := range processes {
		_ = p.input.Close()
	}
	for _, p := range processes {
		kill := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
		_ = p.cmd.Wait() // its error is on the standard error output
		kill.Stop()
	}
	m.running = slices.DeleteFunc(m.running, func(p *clusterProcess) bool {
		return slices.Contains(processes, p)
	})
}
