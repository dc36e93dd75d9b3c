package collector_test

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
	"courier/collector"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// adapting is a run that is told another batch size while it runs. Each epoch
// of its command waits for a line of input.
type adapting struct {
	t              *testing.T
	server         *bustest.Server
	bus            *bus.Bus
	id             string
	input          *os.File
	stdout, stderr *buffer
	cancel         context.CancelFunc
	done           chan collector.JobResult
}

// adapt runs ten epochs of the command.
func adapt(t *testing.T, how string, noPTY bool, command []string) *adapting {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	server := bustest.NewServer(t)
	a := &adapting{t: t, server: server, bus: server.Connect(t), id: how, input: w, stdout: newBuffer(), stderr: newBuffer(), done: make(chan collector.JobResult, 1)}
	o := options(t, command)
	o.Request.JobID, o.Request.Epochs, o.Request.BatchSizes = a.id, 10, []int{16, 32, 64}
	o.Connect, o.Adapt, o.BatchSize, o.Stdin, o.Stdout, o.Stderr = over(a.bus), how, 16, r, a.stdout, a.stderr
	o.NoPTY, o.Patience = noPTY, time.Millisecond // there is no advisor
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	go func() {
		defer close(a.done)
		got, err := collector.RunJob(ctx, o, quiet)
		if err != nil {
			t.Error(err)
		}
		a.done <- got
	}()
	t.Cleanup(func() {
		cancel()
		_ = w.Close() // perhaps the test has closed it
		<-a.done
		_ = r.Close()
	})
	return a
}

// epochs lets the command go on until it is within an epoch.
func (a *adapting) epochs(from, until int) {
	a.t.Helper()
	for i := from; i < until; i++ {
		a.stdout.await(a.t, fmt.Sprintf("begin %d\n", i))
		if _, err := io.WriteString(a.input, "\n"); err != nil {
			a.t.Fatal(err)
		}
		a.stdout.await(a.t, fmt.Sprintf(`{"epoch":%d,`, i))
	}
	a.stdout.await(a.t, fmt.Sprintf("begin %d\n", until))
}

// restart lets the running epoch end, and waits until the command was started
// again after it.
func (a *adapting) restart(epoch int, start string) {
	a.t.Helper()
	if _, err := io.WriteString(a.input, "\n"); err != nil {
		a.t.Fatal(err)
	}
	a.stdout.await(a.t, fmt.Sprintf(`{"epoch":%d,`, epoch))
	a.stdout.await(a.t, start)
}

// advise publishes that the run should take a batch size, until it says what it
// makes of that: who listens to advice may come late.
func (a *adapting) advise(cause uint64, run, after, to uint32, answer string) {
	a.t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !strings.Contains(a.stderr.String(), answer) {
		a.publish(cause, run, after, to)
		cause++
		select {
		case <-tick.C:
		case <-deadline.C:
			a.t.Fatalf("stderr = %q, want %q", a.stderr, answer)
		}
	}
}

func (a *adapting) publish(cause uint64, run, after, to uint32) {
	a.t.Helper()
	left := 10 - after
	seconds := func(batch uint32) *float64 { s := float64(left) * 8 / float64(batch); return &s }
	e := &schemas.Advice{CauseSequence: cause, Decision: schemas.MeetsSLO, Action: schemas.ActionBatch, Model: "digits-mlp", EpochsDone: after, Confidence: 0.95,
		Alternatives: []schemas.Alternative{{BatchSize: 16, CPUs: 2, Epochs: left, PredictedSeconds: seconds(16)}, {BatchSize: to, CPUs: 2, Epochs: left, PredictedSeconds: seconds(to)}}}
	e.Chosen = &e.Alternatives[1]
	e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: schemas.AdviceID(a.id, cause), At: time.Now().UTC()}, JobID: a.id, Run: run}
	if _, err := a.bus.Publish(a.t.Context(), e); err != nil {
		a.t.Fatal(err)
	}
}

// run of the job: nobody counted it.
func (a *adapting) started() *schemas.Started {
	a.t.Helper()
	return stored(a.t, a.bus, schemas.JobSubject(a.id, schemas.EventStarted), 1)[0].(*schemas.Started)
}

// sizes are the batch sizes of n epochs in the log.
func (a *adapting) sizes(n int) (all []uint32) {
	a.t.Helper()
	for i, e := range stored(a.t, a.bus, schemas.JobSubject(a.id, schemas.EventEpoch), n) {
		if e := e.(*schemas.Epoch); e.Epoch != uint32(i+1) {
			a.t.Errorf("event %d is of epoch %d: every epoch is told once, in order", i, e.Epoch)
		}
		all = append(all, e.(*schemas.Epoch).BatchSize)
	}
	return all
}

func TestRunJob_ChangesTheBatchSizeByTheControlFile(t *testing.T) {
	a := adapt(t, collector.AdaptControl, true, trainingCommand("control", "10"))
	a.epochs(1, 2)
	start := a.started()
	if diff := cmp.Diff([]string{schemas.MoveBatchSize}, start.Moves); diff != "" {
		t.Errorf("moves of started (-want +got):\n%s", diff)
	}
	a.publish(1, start.Run+1, 1, 64) // of another run: nobody heeds it
	a.advise(100, start.Run, 1, 48, "batch size 48 is not taken: it is not among the batch sizes that were asked for")
	a.advise(200, start.Run, 1, 32, "batch size 32 instead of 16 from the next epoch on: 2.3s instead of 4.5s to the end")
	a.epochs(2, 10)
	if err := a.input.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-a.done
	if diff := cmp.Diff([]uint32{16, 16, 32, 32, 32, 32, 32, 32, 32, 32}, a.sizes(10)); diff != "" {
		t.Errorf("batch sizes of the epochs (-want +got):\n%s", diff)
	}
	var outcomes []string
	for _, e := range stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventMoved), 3) {
		e := e.(*schemas.Moved)
		if err := e.Validate(); err != nil {
			t.Error(err)
		}
		outcomes = append(outcomes, fmt.Sprintf("%s %s %d→%d from %d", e.ID()[len(a.id):], e.Outcome, e.FromBatchSize, e.ToBatchSize, e.Epoch))
	}
	run := fmt.Sprintf("/%d/", start.Run)
	want := []string{run + "1/moved refused 16→48 from 0", run + "2/moved carried_out 16→32 from 3", run + "3/moved kept 16→32 from 3"}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	ended := stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventFinished), 1)[0].(*schemas.Ended)
	if ended.BatchSize != 32 || got.Setting.BatchSize != 32 || len(got.Moves) != 3 || *got.Moves[2].BeforeEpochSeconds != 0.5 || *got.Moves[2].AfterEpochSeconds != 0.25 {
		t.Errorf("finished = %+v, result = %+v, want batch size 32, and epochs of 0.5 s and 0.25 s measured", ended, got)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "courier-*", "control.json")); err != nil || len(left) > 0 {
		t.Errorf("control files are left: %v, %v", left, err)
	}
}

func TestRunJob_ChangesTheBatchSizeByARestart(t *testing.T) {
	for _, noPTY := range []bool{true, false} {
		t.Run(fmt.Sprintf("no-pty=%v", noPTY), func(t *testing.T) { changesByARestart(t, noPTY) })
	}
}

func changesByARestart(t *testing.T, noPTY bool) {
	a := adapt(t, collector.AdaptRestart, noPTY, trainingCommand("resume", "{batch}", "{epoch}", "10"))
	a.epochs(1, 3)
	start := a.started()
	a.advise(100, start.Run, 2, 64, "batch size 64 instead of 16 from the next epoch on")
	a.restart(3, "start after 3 3\n")
	a.epochs(4, 10)
	if err := a.input.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-a.done
	if diff := cmp.Diff([]uint32{16, 16, 16, 64, 64, 64, 64, 64, 64, 64}, a.sizes(10)); diff != "" {
		t.Errorf("batch sizes of the epochs (-want +got):\n%s", diff)
	}
	if n := strings.Count(a.stdout.String(), "start after"); n != 2 {
		t.Errorf("output = %q, want one restart after epoch 3", a.stdout)
	}
	if got.ExitCode != 0 || got.Cancelled || len(got.Moves) != 2 || got.Moves[1].Outcome != schemas.MoveKept || got.Moves[0].Epoch != 4 {
		t.Errorf("result = %+v, want it finished, and the move kept", got)
	}
	ended := stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventFinished), 1)[0].(*schemas.Ended)
	if ended.EpochsDone != 10 || ended.BatchSize != 64 {
		t.Errorf("finished = %+v, want ten epochs, at last with batch size 64", ended)
	}
	a.started() // one run, started once
}

// A move that brings nothing is taken back, by the same means.
func TestRunJob_UndoesWhatBroughtNothing(t *testing.T) {
	a := adapt(t, collector.AdaptRestart, true, trainingCommand("resume", "10", "{epoch}", "10", "{batch}")) // its epochs last as long with any
	a.epochs(1, 2)
	a.advise(100, a.started().Run, 1, 32, "batch size 32 instead of 16")
	a.restart(2, "start after 2 2\n")
	a.epochs(3, 5)
	a.restart(5, "start after 5 5\n")
	a.epochs(6, 10)
	if err := a.input.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-a.done
	if diff := cmp.Diff([]uint32{16, 16, 32, 32, 32, 16, 16, 16, 16, 16}, a.sizes(10)); diff != "" {
		t.Errorf("batch sizes of the epochs (-want +got):\n%s", diff)
	}
	if len(got.Moves) != 2 || got.Moves[1].Outcome != schemas.MoveUndone || !strings.Contains(a.stderr.String(), "back to batch size 16: epochs of 0.8 s") {
		t.Errorf("moves = %+v, stderr %q, want the move undone", got.Moves, a.stderr)
	}
}

// A command that begins anew would lose what it did: it is told so, and left
// alone from then on. Its epochs count again when they are new.
func TestRunJob_ToldWhoDoesNotGoOn(t *testing.T) {
	a := adapt(t, collector.AdaptRestart, true, trainingCommand("resume", "{batch}", "0", "4"))
	a.epochs(1, 3)
	a.advise(100, a.started().Run, 2, 64, "batch size 64 instead of 16")
	a.restart(3, "start after 0 3\n")
	if err := a.input.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-a.done
	if diff := cmp.Diff([]uint32{16, 16, 16, 64}, a.sizes(4)); diff != "" {
		t.Errorf("batch sizes of the epochs (-want +got):\n%s", diff)
	}
	if len(got.Moves) != 1 || got.Moves[0].Outcome != schemas.MoveRefused || !strings.Contains(got.Moves[0].Reason, "began anew with epoch 1 instead of going on after 3") {
		t.Errorf("moves = %+v, want one refused", got.Moves)
	}
}

// Cancelled while it ends to be started again, a job is not started again, and
// nothing of what it did is lost.
func TestRunJob_CancelledDuringARestart(t *testing.T) {
	a := adapt(t, collector.AdaptRestart, true, trainingCommand("lingering", "{batch}"))
	a.stdout.await(t, `{"epoch":1,`)
	a.advise(100, a.started().Run, 1, 64, "batch size 64 instead of 16")
	if _, err := io.WriteString(a.input, "\n"); err != nil {
		t.Fatal(err)
	}
	a.stdout.await(t, "asked to end")
	e := &schemas.Ended{Outcome: schemas.EventCancelled, Reason: "changed my mind"}
	e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: a.id + "/1/cancelled", At: time.Now().UTC()}, JobID: a.id, Run: a.started().Run}
	if _, err := a.bus.Publish(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	a.stderr.await(t, "the job is asked to end: changed my mind")
	if err := a.input.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-a.done
	if !got.Cancelled || strings.Count(a.stdout.String(), `"epoch":1,`) != 1 {
		t.Errorf("result = %+v, output %q, want it cancelled and not started again", got, a.stdout)
	}
	if diff := cmp.Diff([]uint32{16, 16}, a.sizes(2)); diff != "" {
		t.Errorf("batch sizes of the epochs (-want +got):\n%s", diff)
	}
	if len(got.Moves) != 1 || got.Moves[0].Outcome != schemas.MoveRefused || got.Moves[0].Reason != "the job ended before" {
		t.Errorf("moves = %+v, want one refused", got.Moves)
	}
}

// A change that falls into an outage of NATS is carried out, and the log has all
// of it in order when NATS is back.
func TestRunJob_ChangesWhileNATSIsAway(t *testing.T) {
	a := adapt(t, collector.AdaptRestart, true, trainingCommand("resume", "{batch}", "{epoch}", "10"))
	a.epochs(1, 3)
	a.advise(100, a.started().Run, 2, 64, "batch size 64 instead of 16")
	a.server.Stop()
	a.restart(3, "start after 3 3\n")
	a.epochs(4, 7)
	a.server.Restart(t)
	a.sizes(6) // while the job goes on
	a.epochs(7, 10)
	if err := a.input.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-a.done
	if diff := cmp.Diff([]uint32{16, 16, 16, 64, 64, 64, 64, 64, 64, 64}, a.sizes(10)); diff != "" {
		t.Errorf("batch sizes of the epochs (-want +got):\n%s", diff)
	}
	moved := stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventMoved), 2)
	if moved[0].(*schemas.Moved).Outcome != schemas.MoveCarriedOut || moved[1].(*schemas.Moved).Outcome != schemas.MoveKept || got.Spooled != 0 {
		t.Errorf("moves %+v, %d events on disk: want it carried out, then kept, and all in the log", moved, got.Spooled)
	}
}

func TestRunJob_RefusesToAdaptInVain(t *testing.T) {
	for _, test := range []struct{ adapt, want string }{{"sometimes", "adapt"}, {collector.AdaptRestart, "{batch}"}} {
		o := options(t, trainingCommand("epochs", "1"))
		o.Adapt = test.adapt
		if _, err := collector.RunJob(t.Context(), o, quiet); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("RunJob(adapt %s) = %v, want an error that names %s", test.adapt, err, test.want)
		}
	}
}
