package runner

import (
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// The end of a process is seen in /proc before the goroutine that waits for it has its state.
func TestJobProcess_WaitsForTheStateOfAReapedProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	p := &jobProcess{cmd: cmd, exited: make(chan struct{})}
	time.AfterFunc(20*time.Millisecond, func() {
		p.state = cmd.ProcessState
		close(p.exited)
	})
	totals := p.usage()
	select {
	case <-p.exited:
	default:
		t.Fatal("the state of the process was not waited for")
	}
	if !totals.IsReaped() {
		t.Error("IsReaped() = false after the process was waited for")
	}
}
