//go:build unix

package collector_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/collector"
	"courier/schemas"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

func init() {
	// terminal: tells about its terminal, and again after each change of size
	// until its input ends.
	trainingJobs["terminal"] = func([]string) int {
		changed := make(chan os.Signal, 1)
		signal.Notify(changed, unix.SIGWINCH)
		_, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		fmt.Println("terminals", term.IsTerminal(0), term.IsTerminal(1), term.IsTerminal(2), "controlling", err == nil)
		for {
			columns, rows, _ := term.GetSize(1)
			fmt.Println("size", columns, rows)
			if columns == 91 {
				return 0
			}
			<-changed
		}
	}
}

func TestRunJob_GivesTheJobATerminal(t *testing.T) {
	stdout := newBuffer()
	o := options(t, trainingCommand("terminal"))
	o.NoPTY, o.Stdout = false, stdout
	ctx, cancel := context.WithCancel(t.Context())
	done := run(t, ctx, o)
	stdout.await(t, "terminals false true true controlling true\nsize 200 50\n")
	cancel()
	<-done
}

// run runs the job in a goroutine and yields its result.
func run(t *testing.T, ctx context.Context, o collector.JobOptions) <-chan collector.JobResult {
	done := make(chan collector.JobResult, 1)
	go func() {
		got, err := collector.RunJob(ctx, o, quiet)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	return done
}

// openTerminal returns a terminal of 120×40 whose screen is read into a buffer.
func openTerminal(t *testing.T) (ours, theirs *os.File, shown *buffer) {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo terminal here: %v", err)
	}
	if err := pty.Setsize(ours, &pty.Winsize{Cols: 120, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	shown = newBuffer()
	read := make(chan struct{})
	go func() {
		defer close(read)
		block := make([]byte, 4096)
		for {
			n, err := ours.Read(block)
			_, _ = shown.Write(block[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = theirs.Close() // ends the reader
		<-read
		_ = ours.Close()
	})
	return ours, theirs, shown
}

func TestRunJob_FollowsTheWindow(t *testing.T) {
	ours, theirs, shown := openTerminal(t)
	o := options(t, trainingCommand("terminal"))
	o.NoPTY, o.Stdout, o.Stderr = false, theirs, theirs
	done := run(t, context.Background(), o)
	shown.await(t, "size 120 40")
	if err := pty.Setsize(ours, &pty.Winsize{Cols: 91, Rows: 33}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), unix.SIGWINCH); err != nil { // it is not our controlling terminal
		t.Fatal(err)
	}
	shown.await(t, "size 91 33")
	<-done
}

func TestRunJob_ForwardsSignals(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	for _, noPTY := range []bool{true, false} {
		stdout := newBuffer()
		o := options(t, trainingCommand("signals"))
		o.NoPTY, o.Stdout, o.ForwardSignals, o.Connect = noPTY, stdout, true, over(b)
		done := run(t, context.Background(), o)
		stdout.await(t, "ready")
		if err := syscall.Kill(os.Getpid(), unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		got := <-done
		if got.ExitCode != 7 || !got.Cancelled || !strings.Contains(stdout.String(), "got hangup") {
			t.Errorf("RunJob(no-pty %v) = %+v, output %q, want the signal and status 7", noPTY, got, stdout)
		}
		e := stored(t, b, schemas.JobSubject(got.JobID, schemas.EventCancelled), 1)[0].(*schemas.Ended)
		if e.Reason != "interrupted by signal: hangup" || *e.ExitCode != 7 {
			t.Errorf("cancelled = %+v, want the signal as reason", e)
		}
	}
}

func TestRunJob_DrawsTheBarBesideTheOutput(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	_, theirs, shown := openTerminal(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, trainingCommand("epochs", "3"))
	o.Request.JobID, o.NoPTY, o.Stdout, o.Stderr, o.Progress, o.Stdin, o.Connect = "bar", false, theirs, theirs, true, r, over(b)
	done := run(t, context.Background(), o)
	shown.await(t, "[....................] 0/3 epochs")
	if _, err := w.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	shown.await(t, "[######..............] 1/3 epochs")
	shown.await(t, "of 1m0s: SLO met")
	advice := adviceFor(&o.Request)
	advice.Run, advice.Chosen.PredictedSeconds = 1, ptr(300.0)
	tick := time.NewTicker(20 * time.Millisecond) // until the job listens
	defer tick.Stop()
	for cause := uint64(1); !strings.Contains(shown.String(), "of 1m0s: SLO missed") && cause < 1000; cause++ {
		advice.EventID = schemas.AdviceID("bar", cause)
		if _, err := b.Publish(t.Context(), advice); err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
	shown.await(t, "of 1m0s: SLO missed")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	shown.awaitThat(t, "end with the bar taken away", func(all string) bool { return strings.HasSuffix(all, "\r\x1b[K") })
	text := shown.String()
	for i, line := range strings.Split(text, "\n") {
		if at := strings.LastIndex(line, `{"epoch"`); at > 0 && !strings.HasSuffix(line[:at], "\r\x1b[K") {
			t.Errorf("line %d = %q, want the bar cleared before the job's line", i, line)
		}
		if at := strings.Index(line, `{"epoch"`); at >= 0 && strings.Contains(line[at:], "epochs,") {
			t.Errorf("line %d = %q, want no bar within the job's line", i, line)
		}
	}
}

// A job whose child keeps the output open must not keep the run from ending.
func TestRunJob_EndsWithItsCommand(t *testing.T) {
	for _, noPTY := range []bool{true, false} {
		stdout := newBuffer()
		o := options(t, []string{"sh", "-c", "sleep 60 & echo $! done"})
		o.NoPTY, o.NoCgroup, o.Stdout = noPTY, true, stdout // a cgroup with the child in it would stay
		begin := time.Now()
		<-run(t, context.Background(), o)
		var child int
		if _, err := fmt.Sscan(stdout.String(), &child); err == nil {
			_ = syscall.Kill(child, unix.SIGKILL) // on a terminal the end of it killed it
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("RunJob(no-pty %v) took %s, want it to end with its command", noPTY, took)
		}
		if !strings.Contains(stdout.String(), "done") {
			t.Errorf("stdout = %q, want the last line", stdout)
		}
	}
}

func ptr[T any](v T) *T { return &v }
