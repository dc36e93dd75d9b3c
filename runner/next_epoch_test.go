package runner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"
)

// A job that would be late ends after an epoch with its checkpoint, and counts as finished.
func TestRun_StopsBeforeALateEpoch(t *testing.T) {
	for _, c := range []struct {
		name    string
		stop    string
		command []string
		end     time.Duration // of Slurm's time limit, from now
		output  string
		epochs  int
		late    bool
	}{
		{"off", runner.StopOff, trainingCommand("obedient", "3"), -time.Hour, "", 3, false},
		{"off, in ten years", runner.StopOff, trainingCommand("epochs", "3"), 11 * 366 * 24 * time.Hour, "", 3, false},
		{"control, in time", runner.StopControl, trainingCommand("obedient", "3"), time.Hour, "", 3, false},
		{"control, late", runner.StopControl, trainingCommand("obedient", "3"), -time.Hour,
			"checkpoint written", 1, true},
		{"signal, late", runner.StopSignal, trainingCommand("lingering"), -time.Hour, "asked to end", 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("SLURM_JOB_END_TIME", fmt.Sprint(time.Now().Add(c.end).Unix()))
			b := bustest.New(t)
			advise(t, b, 0)
			stdout := bustest.NewBuffer()
			o := options(t, c.command)
			o.StopWhenLate, o.Stdout, o.Connect = c.stop, stdout, over(b)
			o.Request.SLO = schemas.Duration(24 * time.Hour)
			got, err := runner.Run(t.Context(), o, quiet)
			if err != nil || got.ExitCode != 0 || got.Cancelled {
				t.Fatalf("Run() = %+v, %v; want exit code 0, not cancelled", got, err)
			}
			if !strings.Contains(stdout.String(), c.output) || len(got.Epochs) != c.epochs {
				t.Errorf("output %q after %d epochs, want %q after %d", stdout, len(got.Epochs), c.output, c.epochs)
			}
			subject := schemas.JobSubject(got.JobID, schemas.EventStarted)
			started := bustest.Stored(t, b, subject, 1)[0].(*schemas.Started)
			if want := min(max(0, c.end.Seconds()), schemas.MaxLimitSeconds); started.LimitSeconds > want {
				t.Errorf("limit %g s, want at most %g s", started.LimitSeconds, want)
			}
			e := bustest.Stored(t, b, schemas.JobSubject(got.JobID, schemas.EventFinished), 1)[0].(*schemas.Ended)
			if isLate := strings.HasPrefix(e.Reason, "stopped after epoch "); isLate != c.late {
				t.Errorf("reason %q, want one about a late epoch: %t", e.Reason, c.late)
			}
		})
	}
}

// A job starts without a directory for temporary files, unless it asks for the control file.
func TestRun_NeedsNoTemporaryDirectory(t *testing.T) {
	for _, c := range []struct {
		adapt, stop string
		starts      bool
	}{
		{runner.AdaptOff, runner.StopOff, true}, {runner.AdaptOff, runner.StopSignal, true},
		{runner.AdaptControl, runner.StopOff, false}, {runner.AdaptOff, runner.StopControl, false},
	} {
		o := options(t, trainingCommand("epochs", "3"))
		o.Adapt, o.StopWhenLate = c.adapt, c.stop
		t.Setenv("TMPDIR", "/nonexistent")
		got, err := runner.Run(t.Context(), o, quiet)
		if starts := err == nil && len(got.Epochs) == 3; starts != c.starts {
			t.Errorf("adapt %s, stop %s: %d epochs, %v; want it to start: %t",
				c.adapt, c.stop, len(got.Epochs), err, c.starts)
		}
	}
}
