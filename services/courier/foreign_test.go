package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"courier/bus"
	"courier/collector"
	"courier/runner"
	"courier/runner/output"
	"courier/schemas"
)

// Simulated jobs run on a simulated node, where a foreign process uses the processors at times. The
// services are real. After the trainer has learned the effect, predictions are longer only while
// the process runs.
func TestForeign_AHogInTheLogChangesTheNextAdvice(t *testing.T) {
	const node = "hogged"
	l := startAll(t, nil)
	ctx := within(t, patience)
	publish := func(e schemas.Event) {
		t.Helper()
		if _, err := l.Bus().Publish(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	at := time.Now().UTC().Add(-50 * time.Minute).Truncate(time.Second)
	for n := range 40 {
		at = publishBesideHog(publish, node, n, float64(n%2), at, random)
	}
	var reply schemas.TrainReply
	request := &schemas.TrainRequest{Target: schemas.TargetEpochTime}
	if err := l.Bus().Request(ctx, schemas.SubjectRegressorTrain, request, &reply); err != nil {
		t.Fatal(err)
	}

	sampled := uint64(0)
	seconds := func(cpu float64) float64 {
		t.Helper()
		var a schemas.Advice
		await(t, fmt.Sprintf("an advice with a foreign load of %g", cpu), func() bool {
			sampled++
			s := sampleOf(node, sampled)
			s.CPURatio = &cpu
			publish(s)
			q := &schemas.JobRequest{
				Model:      "m",
				CPUs:       schemas.CPUs{2},
				BatchSizes: []int{16},
				Epochs:     3,
				Nodes:      []string{node},
			}
			if err := l.Bus().Request(ctx, schemas.SubjectJobPredict, q, &a); err != nil {
				t.Fatal(err)
			}
			return a.Load.ForeignCPURatio == schemas.RatioOf(cpu)
		})
		if a.Chosen.PredictedSeconds == nil || a.Chosen.Extrapolated {
			t.Fatalf("with a foreign load of %g nothing is predicted: %s", cpu, a.Message)
		}
		return *a.Chosen.PredictedSeconds
	}
	before, beside, after := seconds(0), seconds(0.5), seconds(0)
	if ratio := beside / before; ratio < 1.3 || ratio > 1.7 {
		t.Errorf("%.2f s without a hog, %.2f s with a hog, want at least 1.5 times that", before, beside)
	}
	if after != before {
		t.Errorf("prediction before the foreign load = %.2f s, %.2f s after it; want the same",
			before, after)
	}
}

// publishBesideHog publishes a job of three epochs on a node with two processors, of which a
// foreign process needs some, and returns after the end of the job.
func publishBesideHog(
	publish func(schemas.Event), node string, n int, hog float64, at time.Time, random *rand.Rand,
) time.Time {
	cpus := uint32(1 + n/2%2)
	set := schemas.Setting{
		Model: "m", BatchSize: []uint32{4, 16, 64}[n%3], CPUs: cpus, Epochs: 3,
		Nodes: []string{node},
	}
	job := fmt.Sprint("hog-", n)
	stamp := func(id string) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: job, Run: 1}
	}
	publish(&schemas.Started{JobStamp: stamp(schemas.StartedID(job, 1)), Setting: set, NodeCores: 2})
	slower := max(1, (float64(cpus)+hog)/2)
	rate := float64(cpus) / slower // processors that the job gets
	seconds := 8 * (1 + 8/float64(set.BatchSize)) / float64(cpus) * slower *
		math.Exp(0.02*random.NormFloat64())
	busy, used := min(1, (rate+hog/slower)/2), rate*seconds
	for k := range uint32(3) {
		at = at.Add(time.Duration(seconds * float64(time.Second)))
		publish(&schemas.Epoch{
			JobStamp: stamp(schemas.EpochID(job, 1, k+1)), Setting: set, Epoch: k + 1, NodeCores: 2,
			DurationSeconds: seconds, DurationSource: schemas.DurationReported,
			NodeCPURatio: &busy, JobCPUSeconds: &used,
		})
	}
	publish(&schemas.Ended{
		JobStamp: stamp(schemas.EndedID(job, 1, schemas.EventFinished)), Setting: set,
		Outcome: schemas.EventFinished, DurationSeconds: 3 * seconds, EpochsDone: 3,
	})
	return at.Add(time.Second)
}

// Real jobs run on this machine, with and without a real hog. The test needs an idle machine. The
// test of the disk needs a kernel that accounts delays (sysctl kernel.task_delayacct=1):
//
//	COURIER_LONG=1 go test ./services/courier -run Foreign_ARealHog -v
func TestForeign_ARealHogChangesTheNextAdvice(t *testing.T) {
	if os.Getenv(longVariable) != "1" {
		t.Skipf("set %s=1 on an idle machine to run this measurement", longVariable)
	}
	program, dir := program(t), t.TempDir()
	t.Run("cpu", func(t *testing.T) {
		realHog{
			model: "digits",
			job: []string{
				program, "workload", "digits", "--batch-size", "{batch}", "--cpus", "{cpus}",
				"--epochs", "{epochs}", "--augment", "14",
			},
			hog: []string{
				program, "workload", "digits", "--epochs", "100000", "--augment", "1000",
			},
			count: runtime.NumCPU(),
			load:  func(l *schemas.Load) schemas.Ratio { return l.ForeignCPURatio },
		}.test(t)
	})
	t.Run("disk", func(t *testing.T) {
		delays, _ := os.ReadFile("/proc/sys/kernel/task_delayacct") // absent in old kernels
		if !bytes.HasPrefix(delays, []byte("1")) {
			t.Skip("the kernel does not account delays: sysctl kernel.task_delayacct=1")
		}
		realHog{
			model: "writer",
			job:   diskProcess(program, dir, "{epochs}"),
			hog:   diskProcess(program, dir, "1000000"),
			count: 1,
			load:  func(l *schemas.Load) schemas.Ratio { return l.ForeignIOWaitRatio },
		}.test(t)
	})
}

// realHog is an experiment with a job and foreign processes on its node.
type realHog struct {
	model    string
	job, hog []string
	count    int // of hogs
	load     func(*schemas.Load) schemas.Ratio
}

func (h realHog) test(t *testing.T) {
	l := startAll(t, nil)
	for range 6 {
		h.runJobs(t, l.Bus())
		stop := h.start(t)
		h.runJobs(t, l.Bus())
		stop()
	}
	var reply schemas.TrainReply
	request := &schemas.TrainRequest{Target: schemas.TargetEpochTime}
	ctx := within(t, time.Minute)
	if err := l.Bus().Request(ctx, schemas.SubjectRegressorTrain, request, &reply); err != nil {
		t.Fatal(err)
	}

	calm := h.adviceWith(t, l.Bus(), 0, 0.2)
	defer h.start(t)()
	busy := h.adviceWith(t, l.Bus(), 0.3, 1)
	before, beside := *calm.Chosen.PredictedSeconds, *busy.Chosen.PredictedSeconds
	t.Logf("predicted %.2f s at a load of %g, %.2f s at %g with the hog",
		before, h.load(&calm.Load).Value, beside, h.load(&busy.Load).Value)
	if !(beside > before) {
		t.Error("the hog does not lengthen the prediction")
	}
}

// adviceWith waits for an advice that assumes a load within a range.
func (h realHog) adviceWith(t *testing.T, b *bus.Bus, least, most float64) (a schemas.Advice) {
	t.Helper()
	ctx := within(t, 3*time.Minute)
	q := h.request(2)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		a = schemas.Advice{}
		if err := b.Request(ctx, schemas.SubjectJobPredict, &q, &a); err != nil {
			t.Fatal(err)
		}
		r := h.load(&a.Load)
		if r.Known && r.Value >= least && r.Value <= most && a.Chosen.PredictedSeconds != nil {
			return a
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("advice assumes the load %+v, want one from %g to %g: %s",
				a.Load, least, most, a.Message)
		}
	}
}

// request returns a request for three epochs.
func (h realHog) request(cpus int) schemas.JobRequest {
	return schemas.JobRequest{
		Model: h.model, CPUs: schemas.CPUs{cpus}, BatchSizes: []int{16}, Epochs: 3,
	}
}

// runJobs runs the job with one and with two processes under courier run.
func (h realHog) runJobs(t *testing.T, b *bus.Bus) {
	for _, cpus := range []int{1, 2} {
		var printed bytes.Buffer
		r, err := runner.Run(within(t, 5*time.Minute), runner.Options{
			Observer: collector.NewObserver(slog.New(slog.DiscardHandler)),
			Request:  h.request(cpus), BatchSize: 16, NoPTY: true, Format: output.FormatJSON,
			SpoolDir: filepath.Join(t.TempDir(), "spool"),
			Command:  h.job, Stdout: &printed, Stderr: io.Discard,
			Connect: func(context.Context) (*bus.Bus, error) { return b, nil },
		}, slog.New(slog.DiscardHandler))
		if err != nil || r.ExitCode != 0 || len(r.Epochs) != 3 {
			t.Fatalf("exit code %d, %d epochs, error %v; want 0 and 3 epochs: %s",
				r.ExitCode, len(r.Epochs), err,
				printed.String())
		}
		before := r.Started
		for _, e := range r.Epochs {
			f := schemas.ForeignDuring(&e, before, nil)
			t.Logf("%s on %d: %.2f s, foreign %+v", h.model, cpus, e.DurationSeconds, f)
			before = e.At
		}
	}
}

// start starts the foreign processes; stop ends them and waits.
func (h realHog) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all []*exec.Cmd
	stop = func() {
		cancel()
		for _, c := range all {
			_ = c.Wait() // it was killed
		}
	}
	for range h.count {
		c := exec.CommandContext(ctx, h.hog[0], h.hog[1:]...)
		if err := c.Start(); err != nil {
			stop()
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return stop
}

// Environment of the process that writes to a disk.
const (
	diskVariable = "COURIER_TEST_DISK"        // directory
	diskEpochs   = "COURIER_TEST_DISK_EPOCHS" // number of epochs
	diskWrites   = 200                        // synchronous writes of an epoch, of a MiB each
)

// diskProcess is the command of a process that writes to the disk.
func diskProcess(program, dir, epochs string) []string {
	return []string{"env", diskVariable + "=" + dir, diskEpochs + "=" + epochs,
		program, "-test.run=^TestForeign_DiskProcess$"}
}

// TestForeign_DiskProcess runs in a separate process and writes to the disk, epoch by epoch.
func TestForeign_DiskProcess(t *testing.T) {
	dir := os.Getenv(diskVariable)
	if dir == "" {
		t.Skip("a process of TestForeign_ARealHogChangesTheNextAdvice")
	}
	epochs, err := strconv.Atoi(os.Getenv(diskEpochs))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(dir, "disk")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	block, out := make([]byte, 1<<20), json.NewEncoder(os.Stdout)
	for epoch := range epochs {
		begin := time.Now()
		for range diskWrites {
			if _, err := f.WriteAt(block, 0); err != nil {
				t.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		line := map[string]any{
			"epoch":   epoch + 1,
			"seconds": time.Since(begin).Seconds(),
			"loss":    1,
		}
		if err := out.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
}
