package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// elasticID is the job of elastic runs. Other test programs run on this machine, too.
var elasticID = "elastic-" + strconv.Itoa(os.Getpid())

// startInDocker starts an elastic run whose container holds the first of two numbers of CPUs.
func startInDocker(t *testing.T, resize string, cpus ...int) *adaptiveRun {
	return startRun(t, elasticID, trainingCommand("control", "10"), func(o *runner.Options) {
		o.Request.CPUs, o.Request.Elastic, o.Resize = cpus, true, resize
		o.Container = "train"
	})
}

// publishCPUs publishes advice to change the CPUs from one number to another. Predicted epochs take
// half a second with one CPU, which they do, and less with two.
func (a *adaptiveRun) publishCPUs(cause uint64, after, from, to uint32, isDryRun bool) {
	a.t.Helper()
	seconds := func(cpus uint32) float64 { return 0.5 / float64(cpus) }
	a.publishAdvice(cause, a.started().Run, after, schemas.Advice{
		Action: schemas.ActionCPUs,
		Alternatives: []schemas.Alternative{
			a.alternative(16, to, after, seconds(to)), a.alternative(16, from, after, seconds(from)),
		},
		Move: &schemas.PlannedMove{Purpose: schemas.MoveAtRisk, FromCPUs: from, ToCPUs: to, DryRun: isDryRun},
	})
}

// adviseCPUs publishes advice after an epoch until the run prints a message.
func (a *adaptiveRun) adviseCPUs(after, from, to uint32, isDryRun bool, message string) {
	a.t.Helper()
	if diff := cmp.Diff([]string{schemas.MoveCPUs}, a.started().Moves); diff != "" {
		a.t.Errorf("moves of started (-want +got):\n%s", diff)
	}
	cause := uint64(100)
	a.repeat(message, func() {
		a.publishCPUs(cause, after, from, to, isDryRun)
		cause++
	})
}

// adviseTwoCPUs advises a run with one CPU to use two after an epoch.
func (a *adaptiveRun) adviseTwoCPUs(after uint32) {
	a.t.Helper()
	a.adviseCPUs(after, 1, 2, false, "changing the number of CPUs from 1 to 2 at the next epoch")
}

// moves returns the outcomes of the n moves in the log.
func (a *adaptiveRun) moves(n int) (outcomes []string) {
	a.t.Helper()
	for _, e := range bustest.Stored(a.t, a.bus, schemas.JobSubject(a.id, schemas.EventMoved), n) {
		e := e.(*schemas.Moved)
		if err := e.Validate(); err != nil {
			a.t.Error(err)
		}
		outcomes = append(outcomes, fmt.Sprintf("%s %s %s %d→%d by %s from %d, %d measured",
			e.Purpose, e.Move, e.Outcome, e.FromCPUs, e.ToCPUs, e.Means, e.Epoch, e.EpochsMeasured))
	}
	return outcomes
}

// cpus returns the CPUs of the n epochs in the log.
func (a *adaptiveRun) cpus(n int) (all []uint32) {
	a.t.Helper()
	for _, e := range bustest.Stored(a.t, a.bus, schemas.JobSubject(a.id, schemas.EventEpoch), n) {
		all = append(all, e.(*schemas.Epoch).CPUs)
	}
	return all
}

// Docker gets a weight, and with docker-cap an upper limit. The epochs of the training take 8 / batch size
// seconds with every number of CPUs, so that a predicted gain never comes: the move is undone.
func TestRun_UndoesMoreCPUsThatDoNotHelp(t *testing.T) {
	calls := standInDocker(t, "none")
	a := startInDocker(t, runner.ResizeDockerCap, 1, 2)
	a.runEpochs(1, 2)
	a.adviseTwoCPUs(1)
	a.runEpochs(2, 3)
	a.stderr.Await(t, "running with 2 CPUs")
	a.runEpochs(3, 6)
	a.stderr.Await(t, "running with 1 CPU\n")
	a.runEpochs(6, 7)
	a.end([]uint32{1, 1, 2, 2, 2, 1, 1, 1, 1, 1}, []string{
		"at_risk cpus applied 1→2 by docker from 3, 0 measured",
		"at_risk cpus carried_out 1→2 by docker from 3, 1 measured",
		"at_risk cpus undone 1→2 by docker from 3, 3 measured",
		" cpus applied 2→1 by docker from 6, 0 measured",
	})
	const one = "update --cpu-shares 1024 --cpus 1 train"
	want := []string{one, "update --cpu-shares 2048 --cpus 2 train", one}
	if diff := cmp.Diff(want, calls()); diff != "" {
		t.Errorf("calls of docker (-want +got):\n%s", diff)
	}
}

// A job that lends a CPU expects no gain, so the move is kept. The log has the change before the first
// epoch with it ends, because other jobs wait for the CPU.
func TestRun_KeepsALentCPU(t *testing.T) {
	calls := standInDocker(t, "none")
	a := startInDocker(t, runner.ResizeDocker, 2, 1)
	a.runEpochs(1, 2)
	a.adviseCPUs(1, 2, 1, false, "changing the number of CPUs from 2 to 1 at the next epoch")
	a.runEpochs(2, 3)
	a.stderr.Await(t, "running with 1 CPU")
	applied := []string{"at_risk cpus applied 2→1 by docker from 3, 0 measured"}
	if diff := cmp.Diff(applied, a.moves(1)); diff != "" {
		t.Errorf("moves before the third epoch ends (-want +got):\n%s", diff)
	}
	a.runEpochs(3, 7)
	a.end([]uint32{2, 2, 1, 1, 1, 1, 1, 1, 1, 1}, append(applied,
		"at_risk cpus carried_out 2→1 by docker from 3, 1 measured",
		"at_risk cpus kept 2→1 by docker from 3, 3 measured",
	))
	want := []string{"update --cpu-shares 2048 train", "update --cpu-shares 1024 train"}
	if diff := cmp.Diff(want, calls()); diff != "" {
		t.Errorf("calls of docker (-want +got):\n%s", diff)
	}
}

func TestRun_OnlyReportsADryRun(t *testing.T) {
	standInDocker(t, "none")
	a := startInDocker(t, runner.ResizeDocker, 1, 2)
	a.runEpochs(1, 2)
	a.adviseCPUs(1, 1, 2, true, "1 CPU would be changed to 2 CPUs, but moves are not turned on")
	a.runEpochs(2, 6)
	a.end([]uint32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []string{
		"at_risk cpus dry_run 1→2 by docker from 0, 0 measured",
	})
}

// standInDocker puts a program docker into PATH that appends its arguments to a file, and refuses
// those that match a pattern of the shell. It returns a function that reads the calls.
func standInDocker(t *testing.T, refused string) (calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho \"$*\" >> '" + log + "'\n" +
		"case \"$*\" in " + refused + ") echo 'no space'; exit 1;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() []string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

// A refused update is reported once, and not tried again although the advice stays.
func TestRun_BarsCPUsThatDockerRefuses(t *testing.T) {
	calls := standInDocker(t, "*2048*")
	a := startInDocker(t, runner.ResizeDocker, 1, 2)
	a.runEpochs(1, 2)
	a.adviseTwoCPUs(1)
	a.runEpochs(2, 3)
	a.awaitMoves(1)
	a.publishCPUs(1000, 2, 1, 2, false)
	a.awaitMoves(2)
	a.runEpochs(3, 5)
	a.close()
	if got := len(calls()); got != 2 {
		t.Errorf("docker was called %d times, want once at the start and once for the move", got)
	}
	var got []string
	for _, e := range bustest.Stored(t, a.bus, schemas.JobSubject(a.id, schemas.EventMoved), 2) {
		got = append(got, e.(*schemas.Moved).Outcome+": "+e.(*schemas.Moved).Reason)
	}
	want := []string{
		"refused: docker update of container train: no space",
		"refused: it was undone or failed recently",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
}

// awaitMoves waits until the log has n outcomes of moves or more.
func (a *adaptiveRun) awaitMoves(n int) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	subject, found := schemas.JobSubject(a.id, schemas.EventMoved), 0
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: []string{subject}}
	if err := a.bus.Follow(ctx, o, func(bus.Record) error {
		if found++; found >= n {
			cancel()
		}
		return nil
	}); err != nil || found < n {
		a.t.Fatalf("%d events of %s, want %d: %v", found, subject, n, err)
	}
}

// startResizable starts a run on one CPU that may get two, without a cgroup.
func startResizable(t *testing.T, resize string, command []string) *adaptiveRun {
	t.Helper()
	return startRun(t, "resizable", command, func(o *runner.Options) {
		o.Request.CPUs, o.Request.Elastic, o.Resize = []int{1, 2}, true, resize
		o.NoCgroup = true
	})
}

// end lets the training run to its end, and compares the CPUs of its ten epochs and its moves.
func (a *adaptiveRun) end(cpus []uint32, moves []string) runner.Result {
	a.t.Helper()
	result := a.close()
	if diff := cmp.Diff(cpus, a.cpus(10)); diff != "" {
		a.t.Errorf("CPUs of the epochs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(moves, a.moves(len(moves))); diff != "" {
		a.t.Errorf("moves (-want +got):\n%s", diff)
	}
	return result
}

func TestRun_ChangesTheCPUsWithTheControlFile(t *testing.T) {
	a := startResizable(t, runner.ResizeControl, trainingCommand("workers", "{cpus}", "10"))
	a.runEpochs(1, 2)
	a.adviseTwoCPUs(1)
	a.runEpochs(2, 10)
	result := a.end([]uint32{1, 1, 2, 2, 2, 2, 2, 2, 2, 2}, []string{
		"at_risk cpus carried_out 1→2 by control from 3, 1 measured",
		"at_risk cpus kept 1→2 by control from 3, 3 measured",
	})
	kept := result.Moves[len(result.Moves)-1]
	if result.Setting.CPUs != 2 || *kept.BeforeEpochSeconds != 0.5 || *kept.AfterEpochSeconds != 0.25 {
		t.Errorf("moves = %+v, want two CPUs, and measured epochs of 0.5 s and 0.25 s", result.Moves)
	}
}

// An epoch of the training takes 8 s divided by its CPUs.
func TestRun_ChangesTheCPUsWithARestart(t *testing.T) {
	command := trainingCommand("resume", "{cpus}", "{epoch}", "10")
	a := startResizable(t, runner.ResizeRestart, command)
	a.runEpochs(1, 3)
	a.adviseTwoCPUs(2)
	a.awaitRestart(3, "start after 3 3\n")
	applied := "at_risk cpus applied 1→2 by restart from 4, 0 measured"
	if got := a.moves(1); got[0] != applied {
		t.Errorf("moves after the restart = %q, want %q", got, applied)
	}
	a.runEpochs(4, 10)
	result := a.end([]uint32{1, 1, 1, 2, 2, 2, 2, 2, 2, 2}, []string{
		applied,
		"at_risk cpus carried_out 1→2 by restart from 4, 1 measured",
		"at_risk cpus kept 1→2 by restart from 4, 3 measured",
	})
	first := result.Moves[1]
	if result.ExitCode != 0 || result.Cancelled || result.Setting.CPUs != 2 ||
		*first.BeforeEpochSeconds != 8 || *first.AfterEpochSeconds != 4 || *first.GainRatio < 0.5 {
		t.Errorf("moves = %+v, want two CPUs, and measured epochs of 8 s and 4 s", result.Moves)
	}
	if n := strings.Count(a.stdout.String(), "start after"); n != 2 {
		t.Errorf("output = %q, want one restart after epoch 3", a.stdout)
	}
}
