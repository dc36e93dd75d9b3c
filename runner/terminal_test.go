//go:build unix

package runner_test

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
	"courier/schemas"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

func init() {
	// terminal: prints the properties of its terminal, and the size after each change, until the
	// terminal has 33 rows.
	trainingJobs["terminal"] = func([]string) int {
		changed := make(chan os.Signal, 1)
		signal.Notify(changed, unix.SIGWINCH)
		_, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		fmt.Println("terminals", term.IsTerminal(0), term.IsTerminal(1), term.IsTerminal(2), "controlling", err == nil)
		for {
			columns, rows, _ := term.GetSize(1)
			fmt.Println("size", columns, rows)
			if rows == 33 {
				return 0
			}
			<-changed
		}
	}
}

func TestRun_GivesTheJobATerminal(t *testing.T) {
	stdout := bustest.NewBuffer()
	o := options(t, trainingCommand("terminal"))
	o.NoPTY, o.Stdout = false, stdout
	ctx, cancel := context.WithCancel(t.Context())
	done := start(t, ctx, o)
	stdout.Await(t, "terminals false true true controlling true\nsize 200 50\n")
	cancel()
	<-done
}

// openTerminal opens a terminal of 120×40, and copies its screen to a buffer.
func openTerminal(t *testing.T) (parentEnd, childEnd *os.File, screen *bustest.Buffer) {
	t.Helper()
	parentEnd, childEnd, err := pty.Open()
	if err != nil {
		t.Skipf("pseudo terminals are not available: %v", err)
	}
	if err := pty.Setsize(parentEnd, &pty.Winsize{Cols: 120, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	screen = bustest.NewBuffer()
	read := make(chan struct{})
	go func() {
		defer close(read)
		block := make([]byte, 4096)
		for {
			n, err := parentEnd.Read(block)
			_, _ = screen.Write(block[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = childEnd.Close() // ends the reading goroutine
		<-read
		_ = parentEnd.Close()
	})
	return parentEnd, childEnd, screen
}

func TestRun_ForwardsTheWindowSize(t *testing.T) {
	parentEnd, childEnd, screen := openTerminal(t)
	o := options(t, trainingCommand("terminal"))
	o.NoPTY, o.Stdout, o.Stderr = false, childEnd, childEnd
	done := start(t, context.Background(), o)
	screen.Await(t, "size 120 40")
	if err := pty.Setsize(parentEnd, &pty.Winsize{Cols: 91, Rows: 33}); err != nil {
		t.Fatal(err)
	}
	// The terminal does not control this process, so the kernel sends no signal.
	if err := syscall.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	screen.Await(t, "size 91 33")
	<-done
}

func TestRun_ForwardsSignals(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	for _, noPTY := range []bool{true, false} {
		stdout := bustest.NewBuffer()
		o := options(t, trainingCommand("signals"))
		o.NoPTY, o.Stdout, o.ForwardSignals, o.Connect = noPTY, stdout, true, over(b)
		done := start(t, context.Background(), o)
		stdout.Await(t, "ready")
		if err := syscall.Kill(os.Getpid(), unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		got := <-done
		if got.ExitCode != 7 || !got.Cancelled || !strings.Contains(stdout.String(), "got hangup") {
			t.Errorf("Run(no-pty %v) = %+v, output %q, want the signal and status 7", noPTY, got, stdout)
		}
		e := bustest.Stored(t, b, schemas.JobSubject(got.JobID, schemas.EventCancelled), 1)[0].(*schemas.Ended)
		if e.Reason != "interrupted by signal: hangup" || *e.ExitCode != 7 {
			t.Errorf("cancelled = %+v, want the signal as reason", e)
		}
	}
}

func TestRun_DrawsTheBarBetweenLines(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	_, childEnd, screen := openTerminal(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, trainingCommand("epochs", "3"))
	o.Request.JobID, o.NoPTY, o.Progress, o.Connect = "bar", false, true, over(b)
	o.Stdin, o.Stdout, o.Stderr = r, childEnd, childEnd
	done := start(t, context.Background(), o)
	screen.Await(t, "[....................] 0/3 epochs")
	if _, err := w.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	screen.Await(t, "[######..............] 1/3 epochs")
	screen.Await(t, "of 60 s: SLO met")
	advice := adviceFor(&o.Request)
	advice.Run, advice.Chosen.PredictedSeconds = 1, ptr(300.0)
	tick := time.NewTicker(20 * time.Millisecond) // until the job is subscribed
	defer tick.Stop()
	for cause := uint64(1); !strings.Contains(screen.String(), "of 60 s: SLO missed") &&
		cause < 1000; cause++ {
		advice.EventID = schemas.AdviceID("bar", cause)
		if _, err := b.Publish(t.Context(), advice); err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
	screen.Await(t, "of 60 s: SLO missed")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	isCleared := func(all string) bool {
		_, end, _ := strings.Cut(all, "\r\x1b[Kcourier: the run took ")
		return strings.HasSuffix(end, "courier receipt bar\r\n")
	}
	screen.AwaitThat(t, "the bar removed before the last message", isCleared)
	text := screen.String()
	for i, line := range strings.Split(text, "\n") {
		if at := strings.LastIndex(line, `{"epoch"`); at > 0 &&
			!strings.HasSuffix(line[:at], "\r\x1b[K") {
			t.Errorf("line %d = %q, want the bar cleared before the line of the job", i, line)
		}
		if at := strings.Index(line, `{"epoch"`); at >= 0 && strings.Contains(line[at:], "epochs,") {
			t.Errorf("line %d = %q, want no bar within the line of the job", i, line)
		}
	}
}

// The run ends although a child of the command keeps the output open.
func TestRun_EndsWithItsCommand(t *testing.T) {
	for _, noPTY := range []bool{true, false} {
		stdout := bustest.NewBuffer()
		o := options(t, []string{"sh", "-c", "sleep 3600 & echo $! done"})
		// The child would prevent the removal of a cgroup.
		o.NoPTY, o.NoCgroup, o.Stdout = noPTY, true, stdout
		select {
		case <-start(t, context.Background(), o):
		case <-time.After(patience):
			t.Errorf("Run(no-pty %v) does not end with its command", noPTY)
		}
		var child int
		if _, err := fmt.Sscan(stdout.String(), &child); err == nil {
			_ = syscall.Kill(child, unix.SIGKILL) // closing its terminal may have ended it
		}
		if !strings.Contains(stdout.String(), "done") {
			t.Errorf("stdout = %q, want the last line", stdout)
		}
	}
}

func ptr[T any](v T) *T { return &v }
