package runner

import (
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"
)

// Variables that the user has set are kept.
func TestLimitThreads(t *testing.T) {
	env := limitThreads([]string{"A=1", "OMP_NUM_THREADS=8"}, 2)
	for _, want := range []string{"A=1", "OMP_NUM_THREADS=8", "MKL_NUM_THREADS=2"} {
		if !slices.Contains(env, want) {
			t.Errorf("%v lacks %s", env, want)
		}
	}
	if slices.Contains(env, "OMP_NUM_THREADS=2") {
		t.Errorf("%v replaces the user's OMP_NUM_THREADS", env)
	}
}

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

func TestShortenSpins_KeepsTheChoiceOfTheUser(t *testing.T) {
	for _, c := range []struct{ env, want []string }{
		{[]string{"A=1"}, []string{"A=1", "GOMP_SPINCOUNT=1000", "KMP_BLOCKTIME=0"}},
		{[]string{"OMP_WAIT_POLICY=active"}, []string{"OMP_WAIT_POLICY=active"}},
		{[]string{"GOMP_SPINCOUNT=5"}, []string{"GOMP_SPINCOUNT=5"}},
		{[]string{"KMP_BLOCKTIME=200"}, []string{"KMP_BLOCKTIME=200"}},
	} {
		if env := shortenSpins(c.env); !slices.Equal(env, c.want) {
			t.Errorf("shortenSpins(%q) = %q, want %q", c.env, env, c.want)
		}
	}
}
