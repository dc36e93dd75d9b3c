package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/advisor"
	"courier/bus"
	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"
	"courier/services/local"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// calmNode is a node with four cores without other load.
type calmNode struct{}

func (calmNode) Hardware() schemas.Hardware { return schemas.Hardware{Cores: 4, CPUModel: "calm"} }

func (n calmNode) Load(e *schemas.Epoch) { e.NodeCores = n.Hardware().Cores }

// An elastic job starts with the only number of CPUs that is known. When two CPUs become known, it
// gets a second one that no other job needs. It does not become faster, because its trainings of this
// test report the time of two CPUs in any case, so the move is undone. The log and the tables have
// each step.
func TestElastic_AMoveOfCPUsIsCarriedOutAndUndone(t *testing.T) {
	standInDocker(t)
	library := testLibrary(t)
	l := startAll(t, func(f *localFlags) {
		f.MoveCPUs = advisor.MovesOn
		if library != "" {
			f.Engine, f.EngineLibrary = "auto", library
		}
	})
	measure := func(cpus int) {
		learn(t, l.Bus(), func() {
			for range 4 {
				runClocked(t, l.Bus(), runner.Options{
					Request: schemas.JobRequest{
						CPUs: schemas.CPUs{cpus}, BatchSizes: []int{16}, Epochs: 8,
					},
					Node: "calm", Observer: calmNode{},
				})
			}
		})
	}
	measure(1)

	j := pacedJob{t: t, bus: l.Bus(), id: "elastic", epochs: 40, output: bustest.NewBuffer()}
	defer func() { t.Log(j.output) }()
	end, begin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	o := runner.Options{
		Request: schemas.JobRequest{
			JobID: j.id, CPUs: schemas.CPUs{1, 2}, Elastic: true, BatchSizes: []int{16},
			Epochs: j.epochs, SLO: schemas.Duration(24 * time.Hour),
		},
		Node: "calm", Observer: calmNode{}, Resize: runner.ResizeDocker, Container: "elastic",
		Stdin: end, Stdout: io.Discard, Stderr: j.output,
	}
	var paced sync.WaitGroup
	paced.Go(func() {
		defer begin.Close()
		j.pace(begin, func() { measure(2) })
	})
	r := runClocked(t, l.Bus(), o)
	paced.Wait()

	var steps []string
	for _, m := range r.Moves {
		steps = append(steps, fmt.Sprintf("%s %s %d→%d by %s", m.Purpose, m.Outcome, m.FromCPUs, m.ToCPUs, m.Means))
	}
	want := []string{
		"left_over applied 1→2 by docker",
		"left_over carried_out 1→2 by docker",
		"left_over undone 1→2 by docker",
	}
	if len(steps) < len(want) || !slices.Equal(steps[:len(want)], want) {
		t.Errorf("moves %q, want %q first", steps, want)
	}
	if n := len(readLog(t, l.Bus())["job_moved"]); n != len(r.Moves) {
		t.Errorf("the log has %d moves, want %d", n, len(r.Moves))
	}
	if library != "" {
		checkMovesInSQL(t, l, r.Moves)
	}
}

// loadingScript reports epochs that take 2 s without their input. Without data loaders the input takes 8 s
// more; with some of them it takes 8 s divided by their number, at the same time.
const loadingScript = `
import sys
from courier_instrument._session import clock, session
loaders, done = int(sys.argv[1]), int(sys.argv[2])
print("loaders", loaders, flush=True)
session().announce(clock())
for epoch in range(done + 1, 13):
    sys.stdin.readline()
    wait = max(0.0, 8.0 / loaders - 2) if loaders else 8.0
    session().send("unit", epoch=epoch, count=1, seconds=2 + wait, ago=0.0, wait=wait, source="test",
                   unit="epoch", batch_size=16)
`

// A training that waits for its input gets more data loaders by restarts, one step after the other, until
// it does not wait. The log, the tables and the next answer have their number.
func TestElastic_ATrainingThatWaitsForItsInputGetsLoaders(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(loadingScript), 0o600); err != nil {
		t.Fatal(err)
	}
	library := testLibrary(t)
	l := startAll(t, func(f *localFlags) {
		f.MoveCPUs = advisor.MovesOn
		if library != "" {
			f.Engine, f.EngineLibrary = "auto", library
		}
	})
	j := pacedJob{t: t, bus: l.Bus(), id: "loading", epochs: 12, output: bustest.NewBuffer()}
	defer func() { t.Log(j.output) }()
	end, begin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	request := schemas.JobRequest{
		JobID: j.id, Model: "loading", CPUs: schemas.CPUs{1}, Loaders: []int{0, 2, 4}, BatchSizes: []int{16},
		Epochs: j.epochs,
	}
	var paced sync.WaitGroup
	paced.Go(func() {
		defer begin.Close()
		texts := map[int]string{
			3: "number of loaders from 0 to 2", 4: "loaders 2", 7: "number of loaders from 2 to 4", 8: "loaders 4",
		}
		for n := 1; n <= j.epochs && !t.Failed(); n++ {
			_, err := fmt.Fprintln(begin)
			isDone := func() bool {
				return j.status().EpochsDone >= uint32(n) && strings.Contains(j.output.String(), texts[n])
			}
			if err != nil || !j.waitFor(isDone) {
				t.Errorf("epoch %d: %v, want it to end with %q", n, err, texts[n])
			}
		}
	})
	r, err := runner.Run(within(t, patience), runner.Options{
		Request: request, Node: "calm", Observer: calmNode{}, Adapt: runner.AdaptRestart, NoPTY: true,
		Command: []string{python, script, "{loaders}", "{epoch}"}, Patience: patience,
		Stdin: end, Stdout: j.output, Stderr: j.output, SpoolDir: filepath.Join(t.TempDir(), "spool"),
		Connect: func(context.Context) (*bus.Bus, error) { return l.Bus(), nil },
	}, slog.New(slog.DiscardHandler))
	paced.Wait()
	if err != nil || len(r.Epochs) != j.epochs || r.Epochs[j.epochs-1].Loaders != 4 {
		t.Fatalf("result %+v, %v, want 12 epochs, the last one with four loaders", r, err)
	}

	var steps []string
	for _, m := range r.Moves {
		steps = append(steps, fmt.Sprintf("%s %s %d→%d by %s",
			m.Purpose, m.Outcome, m.FromLoaders, m.ToLoaders, m.Means))
	}
	want := []string{
		"input carried_out 0→2 by restart", "input kept 0→2 by restart",
		"input carried_out 2→4 by restart", "input kept 2→4 by restart",
	}
	if !slices.Equal(steps, want) {
		t.Errorf("moves %q, want %q", steps, want)
	}
	if library != "" {
		checkMovesInSQL(t, l, r.Moves)
	}
	request.JobID = ""
	var advice schemas.Advice
	err = l.Bus().Request(within(t, patience), schemas.SubjectJobPredict, &request, &advice)
	if err != nil || advice.Chosen.Loaders != 4 {
		t.Errorf("the next advice has %+v, %v, want the last number of loaders", advice.Chosen, err)
	}
}

// standInDocker puts a program docker into PATH that does nothing.
func standInDocker(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// pacedJob is a job whose epochs the test ends.
type pacedJob struct {
	t      *testing.T
	bus    *bus.Bus
	id     string
	epochs int
	output *bustest.Buffer // of courier run
}

// pace completes one epoch after another, each after the advisor has received the previous
// one. After the third epoch it calls learn, and after the fifth it waits for the move.
func (j *pacedJob) pace(input io.Writer, learn func()) {
	for n := 1; n <= j.epochs && !j.t.Failed(); n++ {
		if _, err := fmt.Fprintln(input, 1); err != nil {
			j.t.Errorf("epoch %d: %v", n, err)
			return
		}
		known := func() bool { return j.status().EpochsDone >= uint32(n) }
		said := func(text string) func() bool {
			return func() bool { return strings.Contains(j.output.String(), text) }
		}
		isInTime := j.waitFor(known)
		switch n {
		case 3:
			learn()
		case 5:
			isInTime = isInTime && j.waitFor(said("changing the number of CPUs from 1 to 2"))
		case 6:
			isInTime = isInTime && j.waitFor(said("running with 2 CPUs"))
		case 9:
			isInTime = isInTime && j.waitFor(said("returning to 1 CPU"))
		}
		if !isInTime {
			j.t.Errorf("timeout after epoch %d: %s", n, j.output.String())
		}
	}
}

// waitFor waits for a condition and reports whether it became true. It may be called in any
// goroutine.
func (j *pacedJob) waitFor(ok func() bool) bool {
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
func (j *pacedJob) status() (s schemas.JobStatus) {
	q := schemas.JobStatusRequest{JobID: j.id}
	_ = j.bus.Request(within(j.t, oneTry), schemas.SubjectJobStatus, &q, &s) // the caller retries
	return s
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
