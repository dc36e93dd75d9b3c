package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/runner"
	"courier/schemas"
	"courier/services/local"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The epochs of a training job become eight times as long. The advisor then advises a larger batch
// size, and the run applies it at the end of an epoch. The log and the tables have the move.
func TestAdapt_MovesAJobThatIsSlowedDown(t *testing.T) {
	library := testLibrary(t)
	l := startAll(t, func(f *localFlags) {
		if library != "" {
			f.Engine, f.EngineLibrary = "auto", library
		}
	})
	sizes := []int{4, 16, 64}
	learn(t, l.Bus(), func() {
		for _, batch := range sizes {
			for _, cpus := range []int{1, 2} {
				q := schemas.JobRequest{CPUs: schemas.CPUs{cpus}, BatchSizes: sizes, Epochs: 4}
				digitsJob(t, l.Bus(), q, batch)
			}
		}
	})
	q := schemas.JobRequest{
		JobID: "slowed", Model: digitsModel, CPUs: schemas.CPUs{1}, BatchSizes: sizes, Epochs: 30,
		SLO: schemas.Duration(24 * time.Hour), Confidence: 0.6,
	}
	q.SLO = schemas.Duration(1.6 * predictedSeconds(t, l.Bus(), q) * float64(time.Second))

	j := slowedJob{t: t, bus: l.Bus(), id: q.JobID, epochs: q.Epochs}
	r := j.run(q)
	t.Logf("%s", j.output.String())
	checkMoves(t, q, r, j.output.String())

	var status schemas.JobStatus
	await(t, "the end of the job", func() bool {
		status = j.status()
		return status.State == schemas.StateFinished
	})
	if status.BatchSize != r.Setting.BatchSize || status.EpochsDone != uint32(q.Epochs) {
		t.Errorf("status %+v, want the last batch size of the run, %d",
			status, r.Setting.BatchSize)
	}
	if n := countLog(t, l.Bus())["job_moved"]; n != uint64(len(r.Moves)) {
		t.Errorf("the log has %d moves, want %d", n, len(r.Moves))
	}
	if library != "" {
		checkMovesInSQL(t, l, r.Moves)
	}
}

// predictedSeconds waits until the job can be predicted, and returns its predicted time with batch
// size 4.
func predictedSeconds(t *testing.T, b *bus.Bus, q schemas.JobRequest) float64 {
	t.Helper()
	var seconds *float64
	await(t, "a prediction", func() bool {
		var a schemas.Advice
		err := b.Request(within(t, oneTry), schemas.SubjectJobPredict, &q, &a)
		if alt := a.Running(4, 1); err == nil && alt != nil {
			seconds = alt.PredictedSeconds
		}
		return seconds != nil
	})
	return *seconds
}

// slowedJob is a job whose epochs become slower.
type slowedJob struct {
	t      *testing.T
	bus    *bus.Bus
	id     string
	epochs int
	output sharedBuffer // of courier run
}

// run runs the job, first with batch size 4.
func (j *slowedJob) run(q schemas.JobRequest) runner.Result {
	j.t.Helper()
	end, begin, err := os.Pipe()
	if err != nil {
		j.t.Fatal(err)
	}
	defer end.Close()
	o := runner.Options{
		Request: q, BatchSize: 4, Adapt: runner.AdaptControl,
		Stdin: end, Stdout: io.Discard, Stderr: &j.output,
	}
	var paced sync.WaitGroup
	paced.Go(func() { j.pace(begin) })
	r := runClocked(j.t, j.bus, o, &j.output)
	paced.Wait()
	return r
}

const (
	firstSlow = 6  // number of the first slow epoch
	decided   = 16 // after this epoch, the recent epochs are all slow, and the job waits for a move
)

// pace completes one epoch after another, each after the advisor has received the previous one.
func (j *slowedJob) pace(input io.WriteCloser) {
	defer input.Close()
	for n := 1; n <= j.epochs && !j.t.Failed(); n++ {
		slower := 1
		if n >= firstSlow {
			slower = 8
		}
		if _, err := fmt.Fprintln(input, slower); err != nil {
			j.t.Errorf("epoch %d: %v", n, err)
			return
		}
		known := func() bool { return j.status().EpochsDone >= uint32(n) }
		moved := func() bool { return strings.Contains(j.output.String(), moveMessage) }
		if !j.waitFor(known) || n == decided && !j.waitFor(moved) {
			j.t.Errorf("timeout after epoch %d: %s", n, j.output.String())
		}
	}
}

const moveMessage = "changing the batch size from 4 to"

// waitFor waits for a condition and reports whether it became true. It may be called in any
// goroutine.
func (j *slowedJob) waitFor(ok func() bool) bool {
	ctx := within(j.t, patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// status returns the state of the job in the advisor; zero if the advisor has not received it yet.
func (j *slowedJob) status() (s schemas.JobStatus) {
	q := schemas.JobStatusRequest{JobID: j.id}
	_ = j.bus.Request(within(j.t, oneTry), schemas.SubjectJobStatus, &q, &s) // the caller retries
	return s
}

// checkMoves compares the moves in the result of the run with the expected ones.
func checkMoves(t *testing.T, q schemas.JobRequest, r runner.Result, said string) {
	t.Helper()
	i := slices.IndexFunc(r.Moves, func(m schemas.Moved) bool {
		return m.Outcome == schemas.MoveCarriedOut
	})
	if i < 0 || r.Moves[i].FromBatchSize != 4 {
		t.Fatalf("moves %+v, want one from batch size 4", r.Moves)
	}
	first := r.Moves[i]
	if first.PredictedEpochSeconds == nil || first.UnmovedEpochSeconds == nil ||
		*first.PredictedEpochSeconds >= *first.UnmovedEpochSeconds ||
		first.BeforeEpochSeconds == nil || first.AfterEpochSeconds == nil {
		t.Errorf("move %+v, want predicted and measured epoch times", first)
	}
	for i, e := range r.Epochs[:first.Epoch] {
		want := uint32(4)
		if e.Epoch == first.Epoch {
			want = first.ToBatchSize
		}
		if e.Epoch != uint32(i+1) || e.BatchSize != want {
			t.Errorf("epoch %d has number %d and batch size %d, want %d",
				i+1, e.Epoch, e.BatchSize, want)
		}
	}
	if len(r.Epochs) != q.Epochs || !strings.Contains(said, moveMessage) {
		t.Errorf("%d epochs, want %d, and a message about the move", len(r.Epochs), q.Epochs)
	}
}

// checkMovesInSQL waits until the tables have the moves, and compares them.
func checkMovesInSQL(t *testing.T, l *local.Instance, want []schemas.Moved) {
	t.Helper()
	ctx := within(t, patience)
	await(t, "SQL", func() bool { return l.Database() != nil })
	var rows []schemas.Moved
	await(t, "the moves in SQL", func() bool {
		rows = nil
		err := l.Database().Query(ctx, &rows, "SELECT * FROM job_moved ORDER BY sequence")
		return err == nil && len(rows) == len(want)
	})
	for i := range rows {
		rows[i].Sequence, rows[i].At = 0, want[i].At
	}
	// A column has no nil.
	if diff := cmp.Diff(want, rows, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("moves in SQL (-run +table):\n%s", diff)
	}
}
