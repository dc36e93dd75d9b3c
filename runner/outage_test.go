package runner_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestRun_RunsWithoutNATS(t *testing.T) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	server.Stop()
	stdout, stderr := bustest.NewBuffer(), bustest.NewBuffer()
	o := options(t, trainingCommand("epochs", "2"))
	o.Request.JobID, o.Connect, o.Patience = "alone", over(b), 50*time.Millisecond
	o.Stdout, o.Stderr = stdout, stderr
	got, err := runner.Run(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if got.ExitCode != 0 || len(got.Epochs) != 2 || got.Setting.BatchSize != 8 || got.Advice != nil ||
		got.Spooled != 4 {
		t.Errorf("Run() = %+v, want 2 epochs with the first batch size, no advice, 4 events on disk", got)
	}
	if got.Run < 1<<27 {
		t.Errorf("run = %d, want seconds since 2020, because the advisor is unreachable", got.Run)
	}
	for _, text := range []string{"no advice", "batch size 8", "4 events could not be published"} {
		if !strings.Contains(stderr.String(), text) {
			t.Errorf("stderr = %q, want it to contain %q", stderr, text)
		}
	}

	// The next run of any job publishes the events of this one.
	server.Restart(t)
	advise(t, b, 0)
	o.Request.JobID, o.Patience = "next", time.Minute
	if next, err := runner.Run(t.Context(), o, quiet); err != nil || next.Spooled != 0 {
		t.Fatalf("Run() = %+v, %v, want nothing on disk", next, err)
	}
	events := bustest.Stored(t, b, schemas.JobSubject("alone", "*"), 4)
	for i, e := range got.Epochs {
		if found, ok := events[i+1].(*schemas.Epoch); !ok || !found.At.Equal(e.At) ||
			found.EventID != e.EventID {
			t.Errorf("event %d = %+v, want epoch %s with its own timestamp %s", i+1, events[i+1], e.EventID, e.At)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(o.SpoolDir, "*")); len(left) > 0 {
		t.Errorf("spool holds %v, want nothing", left)
	}
}

func TestRun_PublishesSpooledEventsAfterAnOutage(t *testing.T) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	advise(t, b, 0)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := bustest.NewBuffer()
	o := options(t, trainingCommand("epochs", "3"))
	o.Request.JobID, o.Connect, o.Stdout, o.Stdin = "outage", over(b), stdout, r
	done := start(t, context.Background(), o)
	step := func(epoch string) {
		if _, err := io.WriteString(w, "\n"); err != nil {
			t.Fatal(err)
		}
		stdout.Await(t, epoch)
	}
	step(`{"epoch":1`)
	bustest.Stored(t, b, schemas.JobSubject("outage", "*"), 2)
	cluster, err := b.ClusterID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	step(`{"epoch":2`)
	awaitFile(t, filepath.Join(o.SpoolDir, "cluster-"+cluster, "outage-1.jsonl"), "outage/1/2")
	server.Restart(t)
	bustest.Stored(t, b, schemas.JobSubject("outage", "*"), 3) // while the job is running
	step(`{"epoch":3`)
	got := <-done
	events := bustest.Stored(t, b, schemas.JobSubject("outage", "*"), 5)
	if diff := cmp.Diff([]string{
		"outage/1/started", "outage/1/1", "outage/1/2", "outage/1/3", "outage/1/finished",
	}, ids(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got.Spooled != 0 {
		t.Errorf("%d events on disk, want none", got.Spooled)
	}
}

// awaitFile waits until the file contains the text.
func awaitFile(t *testing.T, path, text string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), text) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s = %q, %v, want it to contain %q", path, data, err, text)
		}
	}
}
