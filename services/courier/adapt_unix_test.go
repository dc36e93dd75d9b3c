//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"courier/bus"
	"courier/collector"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// A training that is in time until it gets an eighth of its processor: the
// advisor sees its epochs, advises a larger batch, the run takes it up at an
// epoch's end, and log and tables tell what it brought.
func TestAdapt_MovesAJobThatIsSlowedDown(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it trains for half a minute, and the race detector makes that ten times as long")
	}
	library := testLibrary(t)
	l := startAll(t, func(f *localFlags) {
		if library != "" {
			f.Engine, f.EngineLibrary = "auto", library
		}
	})
	ctx := within(t, 2*time.Minute)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pid := filepath.Join(t.TempDir(), "pid")
	command := []string{"sh", "-c", `echo $$ > "$0"; exec "$@"`, pid, program, "workload", "digits", "--batch-size", "{batch}", "--cpus", "{cpus}", "--epochs", "{epochs}", "--augment", "7"}
	run := func(q schemas.JobRequest, batch int, adapt string, stderr io.Writer) collector.JobResult {
		q.Model, q.BatchSizes = demoModel, []int{4, 16, 64}
		var output bytes.Buffer
		r, err := collector.RunJob(ctx, collector.JobOptions{Request: q, BatchSize: batch, Adapt: adapt, NoPTY: true, SpoolDir: filepath.Join(t.TempDir(), "spool"), Command: command,
			Stdout: &output, Stderr: io.MultiWriter(&output, stderr), Connect: func(context.Context) (*bus.Bus, error) { return l.bus, nil }}, slog.New(slog.DiscardHandler))
		if err != nil || r.ExitCode != 0 {
			t.Fatalf("job %s: status %d, %v\n%s", r.JobID, r.ExitCode, err, output.String())
		}
		return r
	}
	learn(t, l.bus, func() {
		for _, batch := range []int{4, 16, 64} {
			for _, cpus := range []int{1, 2} {
				run(schemas.JobRequest{CPUs: schemas.CPUs{cpus}, Epochs: 4}, batch, collector.AdaptOff, io.Discard)
			}
		}
	})
	var advice schemas.Advice
	q := schemas.JobRequest{JobID: "slowed", Model: demoModel, CPUs: schemas.CPUs{1}, BatchSizes: []int{4, 16, 64}, Epochs: 30, SLO: schemas.Duration(time.Hour), Confidence: 0.6}
	await(t, "a prediction", func() bool {
		err := l.bus.Request(ctx, schemas.SubjectJobPredict, &q, &advice)
		return err == nil && advice.Running(4, 1).PredictedSeconds != nil
	})
	q.SLO = schemas.Duration(1.6 * *advice.Running(4, 1).PredictedSeconds * float64(time.Second))

	running, ended := context.WithCancel(ctx)
	var throttled sync.WaitGroup
	throttled.Go(func() {
		awaitEvent(running, l.bus, schemas.JobSubject(q.JobID, schemas.EventEpoch), 5)
		slow, enough := context.WithCancel(running)
		throttled.Go(func() { throttle(slow, t, pid) })
		awaitEvent(running, l.bus, schemas.JobSubject(q.JobID, schemas.EventMoved), 2) // it is judged
		enough()
	})
	var said bytes.Buffer
	r := run(q, 4, collector.AdaptControl, &said)
	ended()
	throttled.Wait()
	t.Logf("%s", said.String())

	i := slices.IndexFunc(r.Moves, func(m schemas.Moved) bool { return m.Outcome == schemas.MoveCarriedOut })
	if i < 0 || r.Moves[i].FromBatchSize != 4 {
		t.Fatalf("moves %+v, want batch size 4 left", r.Moves)
	}
	first := r.Moves[i]
	if first.PredictedEpochSeconds == nil || first.UnmovedEpochSeconds == nil || *first.PredictedEpochSeconds >= *first.UnmovedEpochSeconds || first.BeforeEpochSeconds == nil || first.AfterEpochSeconds == nil {
		t.Errorf("move %+v, want what was predicted and measured", first)
	}
	for i, e := range r.Epochs[:first.Epoch] {
		if want := map[bool]uint32{false: 4, true: first.ToBatchSize}[e.Epoch == first.Epoch]; e.Epoch != uint32(i+1) || e.BatchSize != want {
			t.Errorf("epoch %d is number %d with batch size %d, want %d", i+1, e.Epoch, e.BatchSize, want)
		}
	}
	if len(r.Epochs) != q.Epochs || !strings.Contains(said.String(), "instead of 4 from the next epoch on") {
		t.Errorf("%d epochs, want all %d, and the change told", len(r.Epochs), q.Epochs)
	}
	var status schemas.JobStatus
	await(t, "the job's end", func() bool {
		err := l.bus.Request(ctx, schemas.SubjectJobStatus, &schemas.JobStatusRequest{JobID: q.JobID}, &status)
		return err == nil && status.State == schemas.StateFinished
	})
	if status.BatchSize != r.Setting.BatchSize || status.EpochsDone != uint32(q.Epochs) {
		t.Errorf("status %+v, want the batch size that it ran with at last, %d", status, r.Setting.BatchSize)
	}
	if n := countLog(t, l.bus)["job_moved"]; n != uint64(len(r.Moves)) {
		t.Errorf("the log holds %d moves, want %d", n, len(r.Moves))
	}
	if library == "" {
		return
	}
	select {
	case <-l.sqlReady:
	case <-ctx.Done():
		t.Fatal("the engine is not ready")
	}
	var rows []schemas.Moved
	await(t, "the moves in SQL", func() bool {
		err := l.db.Load().Query(ctx, &rows, "SELECT * FROM job_moved ORDER BY sequence")
		return err == nil && len(rows) == len(r.Moves) // a busy machine may be late
	})
	for i := range rows {
		rows[i].Sequence, rows[i].At = 0, r.Moves[i].At
	}
	if diff := cmp.Diff(r.Moves, rows); diff != "" {
		t.Errorf("moves in SQL (-run +table):\n%s", diff)
	}
}

// awaitEvent waits until so many events of a subject are in the log, or ctx ends.
func awaitEvent(ctx context.Context, b *bus.Bus, subject string, n int) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Follow ends with its ctx, and its handler has no error.
	_ = b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamJob, Subjects: []string{subject}}, func(bus.Record) error {
		if n--; n == 0 {
			stop()
		}
		return nil
	})
}

// throttle stops a process for seven eighths of the time, until ctx ends.
func throttle(ctx context.Context, t *testing.T, pidFile string) {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Error(err)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Error(err)
		return
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Error(err)
		return
	}
	defer p.Release()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		signal := syscall.SIGSTOP
		if n%8 == 7 {
			signal = syscall.SIGCONT
		}
		_ = p.Signal(signal) // it may have ended by now
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	_ = p.Signal(syscall.SIGCONT)
}
