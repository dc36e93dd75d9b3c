package runner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"
)

func TestRun_ReturnsTheExitStatus(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	for _, noPTY := range []bool{true, false} {
		o := options(t, trainingCommand("exit", "42"))
		o.Connect, o.NoPTY = over(b), noPTY
		got, err := runner.Run(t.Context(), o, quiet)
		if err != nil || got.ExitCode != 42 || got.Cancelled {
			t.Errorf("Run(no-pty %v) = %+v, %v, want exit status 42", noPTY, got, err)
		}
		events := bustest.Stored(t, b, schemas.JobSubject(got.JobID, schemas.EventFailed), 1)
		if e := events[0].(*schemas.Ended); *e.ExitCode != 42 || e.Reason != "exit status 42" ||
			e.EpochsDone != 0 || e.DurationSeconds <= 0 {
			t.Errorf("failed = %+v, want exit status 42 and the duration of the run", e)
		}
	}
}

// A command that ended because memory was missing says so in the reason of its failure.
func TestRun_ReportsMissingMemory(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	o := options(t, []string{"sh", "-c", "echo 'MemoryError: Unable to allocate 7.45 GiB' >&2; echo bye; exit 3"})
	o.Connect, o.NoPTY = over(b), true
	got, err := runner.Run(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	e := bustest.Stored(t, b, schemas.JobSubject(got.JobID, schemas.EventFailed), 1)[0].(*schemas.Ended)
	if want := "out of memory (exit status 3): MemoryError: Unable to allocate 7.45 GiB"; e.Reason != want {
		t.Errorf("the reason is %q, want %q", e.Reason, want)
	}
}

func TestRun_StopsWhenCancelled(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	publishTo(t, b, cancelled("halt", 0, time.Now().Add(-time.Hour), "")) // of an earlier run, which is ignored
	stdout := bustest.NewBuffer()
	o := options(t, trainingCommand("signals"))
	o.Request.JobID, o.Connect, o.Stdout = "halt", over(b), stdout
	done := start(t, context.Background(), o)
	stdout.Await(t, "ready")
	publishTo(t, b, cancelled("halt", 1, time.Now(), "not needed\x1b[31m any more"))
	got := <-done
	if !got.Cancelled || got.ExitCode != 7 || !strings.Contains(stdout.String(), "got terminated") {
		t.Errorf("Run() = %+v, output %q, want cancelled by SIGTERM", got, stdout)
	}
	bustest.Stored(
		t, b, schemas.JobSubject("halt", schemas.EventCancelled), 2,
	) // the event of the run has the identity of the advisor's, so it is a duplicate
}

// A job that is cancelled while its runner is cut off stops as soon as the runner has contact.
func TestRun_StopsWhenItHearsOfItsCancellation(t *testing.T) {
	b := bustest.New(t)
	stdout, contact := bustest.NewBuffer(), make(chan struct{})
	o := options(t, trainingCommand("signals"))
	o.Request.JobID, o.Stdout, o.Patience = "remote", stdout, time.Millisecond
	o.Connect = func(ctx context.Context) (*bus.Bus, error) {
		select {
		case <-contact:
			return b, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	done := start(t, context.Background(), o)
	stdout.Await(t, "ready")
	ended := make(chan schemas.Event, 1)
	go func() {
		_ = b.Listen(t.Context(), schemas.JobSubject("remote", schemas.EventAlive), func(e schemas.Event) {
			if alive, ok := e.(*schemas.Alive); ok && alive.Ended {
				ended <- e
			}
		})
	}()
	publishTo(t, b, cancelled("remote", 0, time.Now(), "not needed"))
	close(contact)
	if got := <-done; !got.Cancelled || got.ExitCode != 7 {
		t.Errorf("Run() = %+v, want cancelled by SIGTERM", got)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("no last heartbeat, want one that frees the CPUs of the job")
	}
}

func TestRun_KillsAJobThatDoesNotStop(t *testing.T) {
	stdout, stderr := bustest.NewBuffer(), bustest.NewBuffer()
	o := options(t, trainingCommand("stubborn"))
	o.Stdout, o.Stderr, o.Grace = stdout, stderr, 50*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := start(t, ctx, o)
	stdout.Await(t, "ready")
	cancel()
	if got := <-done; !got.Cancelled || got.ExitCode != 128+9 {
		t.Errorf("Run() = %+v, want cancelled, exit status 137", got)
	}
	if !strings.Contains(stderr.String(), "did not stop within 50ms") {
		t.Errorf("stderr = %q, want a message about the kill", stderr)
	}
}
