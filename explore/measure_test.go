package explore_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"courier/explore"
	"courier/runner"
	"courier/schemas"
)

// block measures a block of a shell script.
func block(t *testing.T, script string, b explore.Block) ([]explore.MeasuredRun, string) {
	t.Helper()
	var messages strings.Builder
	o := studyOptions()
	o.Command = []string{"sh", "-c", script}
	m := explore.Runner{
		Dir:      t.TempDir(),
		Options:  o,
		Job:      runner.Options{Node: "node-a", NoCgroup: true},
		Messages: func(_, text string) { messages.WriteString(text + "\n") },
		Log:      slog.New(slog.DiscardHandler),
	}
	records, err := m.Block(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return records, messages.String()
}

const twoEpochs = `echo '{"epoch":1,"seconds":1,"accuracy":0.5}'; ` +
	`echo '{"epoch":2,"seconds":2,"accuracy":0.6,"loss":0.25}'`

func TestRunner_MeasuresABlock(t *testing.T) {
	for _, c := range []struct {
		name, script string
		status       string
		epochs       int
		message      string
	}{
		{"complete", twoEpochs, explore.StatusFinished, 2, ""},
		{
			"one epoch of two", `echo '{"epoch":1,"seconds":1}'`, explore.StatusIncomplete, 1,
			"the job is incomplete",
		},
		{"no epochs", `echo done 1; echo done 2`, explore.StatusIncomplete, 0, "no epoch recognized"},
		{"broken", `echo no such file >&2; exit 3`, explore.StatusFailed, 0, "exit code 3; the end of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := explore.Block{Cell: explore.Cell{BatchSize: 8, CPUs: 1, Workers: 3, Jobs: 1}, Replication: 2}
			records, messages := block(t, "test {workers} = 3 || exit 9; "+c.script+" # {batch} {replication}", b)
			r := records[0]
			if r.Status != c.status || r.EpochsDone != c.epochs || len(r.Curve) != c.epochs {
				t.Errorf("record %+v, want status %s after %d epochs", r, c.status, c.epochs)
			}
			if !strings.Contains(messages, c.message) || c.message == "" && messages != "" {
				t.Errorf("messages %q, want %q", messages, c.message)
			}
			for _, text := range []string{"no advice", "running with", "could not be published"} {
				if strings.Contains(messages, text) {
					t.Errorf("messages of a study without NATS have %q: %q", text, messages)
				}
			}
			if c.status == explore.StatusFinished &&
				(r.EpochSeconds() != 1.5 || *r.Accuracy != 0.6 || *r.Loss != 0.25) {
				t.Errorf("record %+v, want epochs of 1.5 s, accuracy 0.6 and loss 0.25", r)
			}
		})
	}
}

// A run that is stopped with the study has not failed, so nothing is reported about it.
func TestRunner_IsSilentAboutStoppedRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var messages strings.Builder
	o := studyOptions()
	o.Command = []string{"sh", "-c", `echo '{"epoch":1,"seconds":1}'; sleep 60 # {batch}`}
	m := explore.Runner{
		Dir:      t.TempDir(),
		Options:  o,
		Messages: func(_, text string) { messages.WriteString(text) },
		Log:      slog.New(slog.DiscardHandler),
		Job: runner.Options{
			Node:     "node-a",
			NoCgroup: true,
			OnEpoch:  func(*schemas.Epoch) { cancel() },
		},
	}
	b := explore.Block{Cell: explore.Cell{BatchSize: 8, CPUs: 1, Workers: 1, Jobs: 1}, Replication: 1}
	if _, err := m.Block(ctx, b); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	if messages.Len() > 0 {
		t.Errorf("messages %q, want none", &messages)
	}
}

// Each job waits for the others, so that the block ends only if all of them run at once.
func TestRunner_StartsTheJobsOfABlockTogether(t *testing.T) {
	dir := t.TempDir()
	script := `touch "` + dir + `/$$"; while [ "$(ls "` + dir + `" | wc -l)" -lt 4 ]; do :; done; ` + twoEpochs
	b := explore.Block{Cell: explore.Cell{BatchSize: 8, CPUs: 1, Workers: 1, Jobs: 4}, Replication: 1}
	records, messages := block(t, script, b)
	if len(records) != 4 || messages != "" {
		t.Fatalf("%d records, messages %q; want 4 and none", len(records), messages)
	}
	for i, r := range records {
		if r.Job != i+1 || r.Status != explore.StatusFinished || r.NodeProcesses != 4 {
			t.Errorf("record %+v, want job %d finished among 4 processes", r, i+1)
		}
	}
}
