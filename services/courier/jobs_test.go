package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
)

// A watched list is printed again when it changes, and the command ends without an error.
func TestJobs_AreWatched(t *testing.T) {
	l := startAll(t, nil)
	submit := func(id, model string) {
		t.Helper()
		q := &schemas.JobRequest{JobID: id, Model: model, CPUs: schemas.CPUs{1}, Epochs: 2}
		if err := l.Bus().Request(within(t, patience), q.Subject(), q, &schemas.Advice{}); err != nil {
			t.Fatal(err)
		}
	}
	submit("first", "mlp")
	ctx, stop := context.WithCancel(t.Context())
	w, _ := testEnvironment(ctx)
	out := bustest.NewBuffer()
	w.stdout = out
	c := jobsCommand{Watch: true, Period: 10 * time.Millisecond, jobSelection: jobSelection{Limit: 20, Model: "mlp"}}
	c.NATSURL = l.Endpoints().NATSURL
	ended := make(chan error, 1)
	go func() { ended <- c.Run(w) }()
	out.Await(t, "first")
	submit("of-another-model", "cnn")
	submit("second", "mlp")
	out.Await(t, "second")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if all := out.String(); strings.Contains(all, "another") || strings.Count(all, "first") < 2 {
		t.Errorf("watched two lists:\n%s", all)
	}
}

func TestExitCode_NamesTheKindOfAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"version"}, 0},
		{[]string{"jobs", "--help"}, 0},
		{[]string{"fly"}, exitUsage},
		{[]string{"simulate", "figures", "ce", "--seeds", "0"}, exitUsage},
		{[]string{"predict", "--model", "m", "--cpus", "0", "--epochs", "2"}, exitUsage},
		{[]string{"status", "j", "--nats-url", "nats://%zz"}, exitUsage},
		{[]string{"sql", "--data", t.TempDir(), "SELECT 1"}, exitNotFound},
		{[]string{"import", "no-such-file"}, exitNotFound},
		{[]string{"status", "j", "--nats-url", "nats://127.0.0.1:1"}, exitUnreachable},
		{[]string{"health", "http://127.0.0.1:1/healthz"}, exitFailed},
	} {
		out, err := courier(t, c.args...)
		if got := exitCode(err); got != c.want {
			t.Errorf("courier %q exits with %d, want %d: %v\n%s", c.args, got, c.want, err, out)
		}
	}
	no := errors.Join(nil, notMet{schemas.ErrNotFound})
	if got := exitCode(no); got != exitNotMet {
		t.Errorf("the answer no exits with %d, want %d", got, exitNotMet)
	}
}
