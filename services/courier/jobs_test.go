package main

import (
	"errors"
	"testing"

	"courier/schemas"
)

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
