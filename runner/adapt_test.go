package runner_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// adaptiveRun is a run whose batch size changes. Each epoch of its command waits for a line of
// input.
type adaptiveRun struct {
	t              *testing.T
	server         *bustest.Server
	bus            *bus.Bus
	id             string
	input          *os.File
	stdout, stderr *bustest.Buffer
	done           <-chan runner.Result
}

// startAdaptive starts a run of ten epochs whose batch size may change.
func startAdaptive(t *testing.T, how string, noPTY bool, command []string) *adaptiveRun {
	t.Helper()
	return startRun(t, how, command, func(o *runner.Options) {
		o.Adapt, o.NoPTY = how, noPTY
	})
}

// startRun starts a run of ten epochs, of which each waits for a line of input.
func startRun(t *testing.T, id string, command []string, configure func(*runner.Options)) *adaptiveRun {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	server := bustest.NewServer(t)
	a := &adaptiveRun{
		t:      t,
		server: server,
		bus:    server.Connect(t),
		id:     id,
		input:  w,
		stdout: bustest.NewBuffer(),
		stderr: bustest.NewBuffer(),
	}
	o := options(t, command)
	o.Request.JobID, o.Request.Epochs, o.Request.BatchSizes = a.id, 10, []int{16, 32, 64}
	o.Connect, o.BatchSize = over(a.bus), 16
	o.Stdin, o.Stdout, o.Stderr = r, a.stdout, a.stderr
	o.Patience = time.Millisecond // there is no advisor
	configure(&o)
	ctx, cancel := context.WithCancel(context.Background())
	a.done = start(t, ctx, o)
	t.Cleanup(func() {
		cancel()
		_ = w.Close() // the test may have closed it
		<-a.done
		_ = r.Close()
	})
	return a
}

// runEpochs completes the epochs from the first to the one before the last, which then runs.
func (a *adaptiveRun) runEpochs(first, last int) {
	a.t.Helper()
	for i := first; i < last; i++ {
		a.stdout.Await(a.t, fmt.Sprintf("begin %d\n", i))
		if _, err := io.WriteString(a.input, "\n"); err != nil {
			a.t.Fatal(err)
		}
		a.stdout.Await(a.t, fmt.Sprintf(`{"epoch":%d,`, i))
	}
	a.stdout.Await(a.t, fmt.Sprintf("begin %d\n", last))
}

// awaitRestart completes the running epoch, and waits until the command has restarted after it.
func (a *adaptiveRun) awaitRestart(epoch int, start string) {
	a.t.Helper()
	if _, err := io.WriteString(a.input, "\n"); err != nil {
		a.t.Fatal(err)
	}
	a.stdout.Await(a.t, fmt.Sprintf(`{"epoch":%d,`, epoch))
	a.stdout.Await(a.t, start)
}

// advise publishes advice for a batch size until the run prints a message, because the run may
// not be subscribed yet.
func (a *adaptiveRun) advise(cause uint64, run, after, to uint32, message string) {
	a.t.Helper()
	a.repeat(message, func() {
		a.publish(cause, run, after, to)
		cause++
	})
}

// repeat publishes until the run prints a message.
func (a *adaptiveRun) repeat(message string, publish func()) {
	a.t.Helper()
	deadline := time.NewTimer(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !strings.Contains(a.stderr.String(), message) {
		publish()
		select {
		case <-tick.C:
		case <-deadline.C:
			a.t.Fatalf("stderr = %q, want %q", a.stderr, message)
		}
	}
}

func (a *adaptiveRun) publish(cause uint64, run, after, to uint32) {
	a.t.Helper()
	seconds := func(batch uint32) float64 { return 8 / float64(batch) }
	a.publishAdvice(cause, run, after, schemas.Advice{
		Action: schemas.ActionBatch,
		Alternatives: []schemas.Alternative{
			a.alternative(to, 2, after, seconds(to)), a.alternative(16, 2, after, seconds(16)),
		},
	})
}

// alternative returns an alternative for the epochs after one, which take some seconds each.
func (a *adaptiveRun) alternative(batchSize, cpus, after uint32, seconds float64) schemas.Alternative {
	remaining := 10 - after
	total := float64(remaining) * seconds
	return schemas.Alternative{BatchSize: batchSize, CPUs: cpus, Epochs: remaining, PredictedSeconds: &total}
}

// publishAdvice publishes advice after an epoch, of which the first alternative is chosen.
func (a *adaptiveRun) publishAdvice(cause uint64, run, after uint32, e schemas.Advice) {
	a.t.Helper()
	e.CauseSequence, e.EpochsDone, e.Chosen = cause, after, &e.Alternatives[0]
	e.Decision, e.Model, e.Confidence = schemas.MeetsSLO, "digits-mlp", 0.95
	e.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: schemas.AdviceID(a.id, cause), At: time.Now().UTC()}, JobID: a.id, Run: run,
	}
	publishTo(a.t, a.bus, &e)
}

// started returns the started event of the job.
func (a *adaptiveRun) started() *schemas.Started {
	a.t.Helper()
	return bustest.Stored(a.t, a.bus, schemas.JobSubject(a.id, schemas.EventStarted), 1)[0].(*schemas.Started)
}

// close lets the training run to its end.
func (a *adaptiveRun) close() runner.Result {
	a.t.Helper()
	if err := a.input.Close(); err != nil {
		a.t.Fatal(err)
	}
	return <-a.done
}

// finish lets the training run to its end, and compares the batch sizes of its epochs.
func (a *adaptiveRun) finish(batchSizes ...uint32) runner.Result {
	a.t.Helper()
	result := a.close()
	if diff := cmp.Diff(batchSizes, a.batchSizes(len(batchSizes))); diff != "" {
		a.t.Errorf("batch sizes of the epochs (-want +got):\n%s", diff)
	}
	return result
}

// batchSizes returns the batch sizes of the n epochs in the log.
func (a *adaptiveRun) batchSizes(n int) (all []uint32) {
	a.t.Helper()
	for i, e := range bustest.Stored(a.t, a.bus, schemas.JobSubject(a.id, schemas.EventEpoch), n) {
		if e := e.(*schemas.Epoch); e.Epoch != uint32(i+1) {
			a.t.Errorf("event %d is epoch %d, want each epoch once and in order", i, e.Epoch)
		}
		all = append(all, e.(*schemas.Epoch).BatchSize)
	}
	return all
}

func TestRun_ChangesTheBatchSizeWithTheControlFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // other programs have control files, too
	a := startAdaptive(t, runner.AdaptControl, true, trainingCommand("control", "10"))
	a.runEpochs(1, 2)
	start := a.started()
	if diff := cmp.Diff([]string{schemas.MoveBatchSize}, start.Moves); diff != "" {
		t.Errorf("moves of started (-want +got):\n%s", diff)
	}
	a.publish(1, start.Run+1, 1, 64) // of another run, which must be ignored
	a.advise(100, start.Run, 1, 48, "batch size 48 rejected: it is not among the requested batch sizes")
	a.advise(
		200,
		start.Run,
		1,
		32,
		"changing the batch size from 16 to 32 at the next epoch: predicted remaining "+
			"time 2.25 s instead of 4.5 s",
	)
	a.runEpochs(2, 10)
	got := a.finish(16, 16, 32, 32, 32, 32, 32, 32, 32, 32)
	var outcomes []string
	for _, e := range bustest.Stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventMoved), 3) {
		e := e.(*schemas.Moved)
		if err := e.Validate(); err != nil {
			t.Error(err)
		}
		outcomes = append(
			outcomes,
			fmt.Sprintf("%s %s %d→%d from %d", e.ID()[len(a.id):], e.Outcome, e.FromBatchSize, e.ToBatchSize, e.Epoch),
		)
	}
	run := fmt.Sprintf("/%d/", start.Run)
	want := []string{
		run + "1/moved refused 16→48 from 0",
		run + "2/moved carried_out 16→32 from 3",
		run + "3/moved kept 16→32 from 3",
	}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	ended := bustest.Stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventFinished), 1)[0].(*schemas.Ended)
	if ended.BatchSize != 32 || got.Setting.BatchSize != 32 || len(got.Moves) != 3 ||
		*got.Moves[2].BeforeEpochSeconds != 0.5 || *got.Moves[2].AfterEpochSeconds != 0.25 {
		t.Errorf(
			"finished = %+v, result = %+v, want batch size 32, and measured epochs of 0.5 s and 0.25 s",
			ended,
			got,
		)
	}
	if left, err := filepath.Glob(
		filepath.Join(os.TempDir(), "courier-*", "control.json"),
	); err != nil || len(left) > 0 {
		t.Errorf("control files are left: %v, %v", left, err)
	}
}

// A training that waits for its input gets more data loaders, and loses those that bring nothing.
func TestRun_ChangesTheLoadersWithTheControlFile(t *testing.T) {
	a := startRun(t, "loading", trainingCommand("loaders", "12"), func(o *runner.Options) {
		o.Adapt, o.NoPTY, o.Request.Loaders, o.Request.Epochs = runner.AdaptControl, true, []int{1, 2, 4}, 12
	})
	a.runEpochs(1, 2)
	start := a.started()
	want := []string{schemas.MoveBatchSize, schemas.MoveLoaders}
	if start.Loaders != 1 || !cmp.Equal(want, start.Moves) {
		t.Errorf("started with %d loaders and moves %q, want 1 and %q", start.Loaders, start.Moves, want)
	}
	advise := func(cause uint64, after, from, to uint32) {
		with := a.alternative(16, 2, after, 0.5/float64(to))
		without := a.alternative(16, 2, after, 0.5/float64(from))
		with.Loaders, without.Loaders = to, from
		message := fmt.Sprintf("changing the number of loaders from %d to %d at the next epoch", from, to)
		a.repeat(message, func() {
			a.publishAdvice(cause, start.Run, after, schemas.Advice{
				Action:       schemas.ActionLoaders,
				Alternatives: []schemas.Alternative{with, without},
				Move: &schemas.PlannedMove{
					Purpose: schemas.MoveInput, FromCPUs: 2, ToCPUs: 2, FromLoaders: from, ToLoaders: to,
				},
			})
			cause++
		})
	}
	advise(100, 1, 1, 2)
	a.runEpochs(2, 6) // the move is assessed after epoch 5
	advise(200, 5, 2, 4)
	a.runEpochs(6, 10)
	a.stderr.Await(t, "returning to 2 loaders")
	a.runEpochs(10, 12)
	if result := a.close(); result.Setting.Loaders != 2 {
		t.Errorf("%d loaders at the end, want 2", result.Setting.Loaders)
	}
	var loaders []uint32
	for _, e := range bustest.Stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventEpoch), 12) {
		loaders = append(loaders, e.(*schemas.Epoch).Loaders)
	}
	if diff := cmp.Diff([]uint32{1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 2, 2}, loaders); diff != "" {
		t.Errorf("loaders of the epochs (-want +got):\n%s", diff)
	}
	var outcomes []string
	for _, e := range bustest.Stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventMoved), 4) {
		e := e.(*schemas.Moved)
		if err := e.Validate(); err != nil {
			t.Error(err)
		}
		outcomes = append(outcomes, fmt.Sprintf("%s %d→%d", e.Outcome, e.FromLoaders, e.ToLoaders))
	}
	want = []string{"carried_out 1→2", "kept 1→2", "carried_out 2→4", "undone 2→4"}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
}

func TestRun_ChangesTheBatchSizeWithARestart(t *testing.T) {
	for _, noPTY := range []bool{true, false} {
		t.Run(fmt.Sprintf("no-pty=%v", noPTY), func(t *testing.T) { testChangeWithRestart(t, noPTY) })
	}
}

func testChangeWithRestart(t *testing.T, noPTY bool) {
	a := startAdaptive(t, runner.AdaptRestart, noPTY, trainingCommand("resume", "{batch}", "{epoch}", "10"))
	a.runEpochs(1, 3)
	start := a.started()
	a.advise(100, start.Run, 2, 64, "changing the batch size from 16 to 64 at the next epoch")
	a.awaitRestart(3, "start after 3 3\n")
	a.runEpochs(4, 10)
	got := a.finish(16, 16, 16, 64, 64, 64, 64, 64, 64, 64)
	if n := strings.Count(a.stdout.String(), "start after"); n != 2 {
		t.Errorf("output = %q, want one restart after epoch 3", a.stdout)
	}
	if got.ExitCode != 0 || got.Cancelled || len(got.Moves) != 2 ||
		got.Moves[1].Outcome != schemas.MoveKept || got.Moves[0].Epoch != 4 {
		t.Errorf("result = %+v, want a finished job and a kept move", got)
	}
	ended := bustest.Stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventFinished), 1)[0].(*schemas.Ended)
	if ended.EpochsDone != 10 || ended.BatchSize != 64 {
		t.Errorf("finished = %+v, want ten epochs, the last with batch size 64", ended)
	}
	a.started() // a restart does not publish another started event
}

// The duration of the command's epochs does not depend on the batch size.
func TestRun_UndoesAMoveWithoutGain(t *testing.T) {
	command := trainingCommand("resume", "10", "{epoch}", "10", "{batch}")
	a := startAdaptive(t, runner.AdaptRestart, true, command)
	a.runEpochs(1, 2)
	a.advise(100, a.started().Run, 1, 32, "changing the batch size from 16 to 32")
	a.awaitRestart(2, "start after 2 2\n")
	a.runEpochs(3, 5)
	a.awaitRestart(5, "start after 5 5\n")
	a.runEpochs(6, 10)
	got := a.finish(16, 16, 32, 32, 32, 16, 16, 16, 16, 16)
	if len(got.Moves) != 2 || got.Moves[1].Outcome != schemas.MoveUndone ||
		!strings.Contains(a.stderr.String(), "returning to batch size 16: epochs take 0.8 s") {
		t.Errorf("moves = %+v, stderr %q, want the move undone", got.Moves, a.stderr)
	}
}

// A restarted command that begins with epoch 1 loses its progress, so it is not restarted again.
// Its epochs count when they exceed the last one.
func TestRun_DoesNotRestartACommandWithoutCheckpoint(t *testing.T) {
	a := startAdaptive(t, runner.AdaptRestart, true, trainingCommand("resume", "{batch}", "0", "4"))
	a.runEpochs(1, 3)
	a.advise(100, a.started().Run, 2, 64, "changing the batch size from 16 to 64")
	a.awaitRestart(3, "start after 0 3\n")
	got := a.finish(16, 16, 16, 64)
	if len(got.Moves) != 1 || got.Moves[0].Outcome != schemas.MoveRefused ||
		!strings.Contains(got.Moves[0].Reason, "began with epoch 1 instead of continuing after epoch 3") {
		t.Errorf("moves = %+v, want one rejected move", got.Moves)
	}
}

// A job that is cancelled while it stops for a restart is not restarted, and its epochs are kept.
func TestRun_CancelledDuringARestart(t *testing.T) {
	a := startAdaptive(t, runner.AdaptRestart, true, trainingCommand("lingering", "{batch}"))
	a.stdout.Await(t, `{"epoch":1,`)
	a.advise(100, a.started().Run, 1, 64, "changing the batch size from 16 to 64")
	if _, err := io.WriteString(a.input, "\n"); err != nil {
		t.Fatal(err)
	}
	a.stdout.Await(t, "asked to end")
	publishTo(t, a.bus, cancelled(a.id, a.started().Run, time.Now(), "changed my mind"))
	a.stderr.Await(t, "stopping the job: changed my mind")
	got := a.finish(16, 16)
	if !got.Cancelled || strings.Count(a.stdout.String(), `"epoch":1,`) != 1 {
		t.Errorf("result = %+v, output %q, want it cancelled and not restarted", got, a.stdout)
	}
	if len(got.Moves) != 1 || got.Moves[0].Outcome != schemas.MoveRefused ||
		got.Moves[0].Reason != "the job ended first" {
		t.Errorf("moves = %+v, want one rejected move", got.Moves)
	}
}

// A restart during an outage of NATS is published in order after the outage.
func TestRun_RestartsWhileNATSIsUnreachable(t *testing.T) {
	a := startAdaptive(t, runner.AdaptRestart, true, trainingCommand("resume", "{batch}", "{epoch}", "10"))
	a.runEpochs(1, 3)
	a.advise(100, a.started().Run, 2, 64, "changing the batch size from 16 to 64")
	a.server.Stop()
	a.awaitRestart(3, "start after 3 3\n")
	a.runEpochs(4, 7)
	a.server.Restart(t)
	a.batchSizes(6) // while the job is running
	a.runEpochs(7, 10)
	got := a.finish(16, 16, 16, 64, 64, 64, 64, 64, 64, 64)
	moved := bustest.Stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventMoved), 2)
	if moved[0].(*schemas.Moved).Outcome != schemas.MoveCarriedOut ||
		moved[1].(*schemas.Moved).Outcome != schemas.MoveKept || got.Spooled != 0 {
		t.Errorf("moves %+v, %d events on disk, want carried_out and kept in the log", moved, got.Spooled)
	}
}
