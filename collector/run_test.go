package collector_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/collector"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestRunJob_PublishesTheLifeOfAJob(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 4)
	stdout, stderr := newBuffer(), newBuffer()
	o := options(t, trainingCommand("epochs", "3"))
	o.Request.JobID, o.Connect, o.Stdout, o.Stderr = "life", over(b), stdout, stderr
	got, err := collector.RunJob(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	events := stored(t, b, schemas.JobSubject("life", "*"), 5)
	if diff := cmp.Diff([]string{"life/5/started", "life/5/1", "life/5/2", "life/5/3", "life/5/finished"}, ids(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	want := schemas.Setting{Model: "digits-mlp", BatchSize: 32, CPUs: 2, Epochs: 3, Nodes: []string{"testnode"}}
	for _, e := range events {
		if err := e.Validate(); err != nil {
			t.Errorf("%s: %v", e.ID(), err)
		}
		var setting schemas.Setting
		switch e := e.(type) {
		case *schemas.Started:
			setting = e.Setting
			if e.HeartbeatSeconds != 10 || e.NodeCores == 0 || e.User == "" || e.Command != filepath.Base(os.Args[0]) {
				t.Errorf("started = %+v, want heartbeat 10, cores, a user and the program's name", e)
			}
		case *schemas.Epoch:
			setting = e.Setting
			n := float64(e.Epoch)
			if e.DurationSeconds != 0.25*n || e.DurationSource != schemas.DurationReported || *e.Loss != 1/n || *e.Accuracy != 1-1/(n+1) {
				t.Errorf("epoch %d = %+v, want what the job printed", e.Epoch, e)
			}
		case *schemas.Ended:
			setting = e.Setting
			if *e.ExitCode != 0 || e.EpochsDone != 3 || *e.Accuracy != 0.75 || e.DurationSeconds <= 0 || e.StartupSeconds == nil {
				t.Errorf("finished = %+v, want exit 0, 3 epochs, accuracy 0.75, times", e)
			}
		}
		if diff := cmp.Diff(want, setting); diff != "" {
			t.Errorf("setting of %s (-want +got):\n%s", e.ID(), diff)
		}
	}
	if len(got.Epochs) != 3 || *got.Accuracy != 0.75 || got.ExitCode != 0 || got.Run != 5 || got.Advice == nil || got.Spooled != 0 ||
		got.Submitted.After(got.Started) || got.Started.After(got.Ended) {
		t.Errorf("RunJob() = %+v, want three epochs and times in order", got)
	}
	if !strings.Contains(stdout.String(), `{"epoch":2,"seconds":0.5,"loss":0.5,"accuracy":0.66`) {
		t.Errorf("stdout = %q, want the job's lines", stdout)
	}
	for _, text := range []string{"meets_slo: batch size 32, CPUs 2, epochs 3", "batch 32 meets the SLO", " * 32", "   8", "25s", "6.3s", "0.982", "slower"} {
		if !strings.Contains(stderr.String(), text) {
			t.Errorf("stderr = %q, want it to contain %q", stderr, text)
		}
	}
}

// A job's log tells its nodes apart without their samples, which are not kept as long.
func TestRunJob_TellsOfItsNodes(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	speed, cores := 1.5e9, uint32(runtime.NumCPU())
	sample := func(node string, cores uint32, cpu string) {
		e := &schemas.Sample{Node: node, BootID: "boot", Number: 1, IntervalSeconds: 2, Cores: cores, CPUModel: cpu, SpeedOperationsPerSecond: &speed}
		e.EventID, e.At = schemas.SampleID(node, "boot", 1), time.Now().UTC()
		if _, err := b.Publish(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	sample("other", 64, "a large one")
	sample("swapped", cores+1, "another machine of that name")
	sample("testnode", cores, "")
	for _, c := range []struct {
		name, node string
		nodes      []string
		cores      []uint32
		speeds     []float64
	}{
		{"this one and another", "testnode", []string{"testnode", "other", "nobody-knows"}, []uint32{cores, 64, 0}, []float64{speed, speed, 0}},
		{"samples of what this one was before", "swapped", []string{"swapped"}, []uint32{cores}, []float64{0}},
		{"without a collector", "fresh", []string{"fresh"}, []uint32{cores}, []float64{0}},
	} {
		o := options(t, trainingCommand("epochs", "1"))
		o.Node, o.Request.Nodes, o.Connect = c.node, c.nodes, over(b)
		got, err := collector.RunJob(t.Context(), o, quiet)
		if err != nil {
			t.Fatal(err)
		}
		e := stored(t, b, schemas.JobSubject(got.JobID, schemas.EventStarted), 1)[0].(*schemas.Started)
		if diff := cmp.Diff(c.cores, e.NodesCores) + cmp.Diff(c.speeds, e.NodesSpeedOperationsPerSecond); diff != "" {
			t.Errorf("%s: cores and speeds (-want +got):\n%s", c.name, diff)
		}
		if models := e.NodesCPUModel; len(models) != len(c.nodes) || len(models) > 1 && models[1] != "a large one" {
			t.Errorf("%s: CPU models %q", c.name, models)
		}
	}
}

func TestRunJob_FillsInTheNumbers(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	stdout := newBuffer()
	o := options(t, trainingCommand("environment", "--batch-size={batch}", "{cpus}", "x{epochs}x", "{other}", "{batch}{batch}"))
	o.Connect, o.Stdout, o.BatchSize = over(b), stdout, 16
	got, err := collector.RunJob(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	want := "arguments [--batch-size=16 2 x3x {other} 1616]\nCOURIER_JOB_ID " + got.JobID +
		"\nCOURIER_BATCH_SIZE 16\nCOURIER_CPUS 2\nCOURIER_EPOCHS 3\nCOURIER_SLO_SECONDS 60\nPYTHONUNBUFFERED 1\n"
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if got.Setting.BatchSize != 16 || got.Advice.Chosen.BatchSize != 32 {
		t.Errorf("ran with %d, advised %d, want 16 and 32", got.Setting.BatchSize, got.Advice.Chosen.BatchSize)
	}
	if !strings.HasPrefix(got.JobID, "digits-mlp-") || got.Run != 1 {
		t.Errorf("job %q run %d, want an identity made of the model, run 1", got.JobID, got.Run)
	}
}

func TestRunJob_RefusesWhatIsWrongBeforeTheStart(t *testing.T) {
	b := bustest.New(t)
	serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
			if q.JobID == "taken" {
				return nil, &schemas.Error{Code: schemas.CodeConflict, Field: "id", Message: "another body"}
			}
			return nil, schemas.Invalid("nodes", "no node has 2 CPUs")
		}),
	}})
	for _, test := range []struct {
		name   string
		change func(o *collector.JobOptions)
		want   string
	}{
		{"refused by the advisor", func(*collector.JobOptions) {}, "nodes"},
		{"identity with another body", func(o *collector.JobOptions) { o.Request.JobID = "taken" }, "conflict: id"},
		{"no model", func(o *collector.JobOptions) { o.Request.Model = "" }, "model"},
		{"absurd epochs", func(o *collector.JobOptions) { o.Request.Epochs = -1 }, "epochs"},
		{"hostile id", func(o *collector.JobOptions) { o.Request.JobID = "../../x" }, "id"},
		{"hostile node", func(o *collector.JobOptions) { o.Node, o.Request.Nodes = "a.b", []string{"ok"} }, "node"},
		{"negative batch size", func(o *collector.JobOptions) { o.BatchSize = -4 }, "batch_size"},
		{"no command", func(o *collector.JobOptions) { o.Command = nil }, "command"},
		{"no such program", func(o *collector.JobOptions) { o.Command = []string{"no-such-program-here"} }, "no-such-program-here"},
		{"no such format", func(o *collector.JobOptions) { o.Format = "xml" }, "--format"},
		{"pattern without epoch", func(o *collector.JobOptions) { o.EpochPattern = `(\d+)` }, "--epoch-pattern"},
		{"pattern that does not compile", func(o *collector.JobOptions) { o.EpochPattern = `(?P<epoch>` }, "--epoch-pattern"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout := newBuffer()
			o := options(t, trainingCommand("epochs", "1"))
			o.Connect, o.Stdout = over(b), stdout
			test.change(&o)
			_, err := collector.RunJob(t.Context(), o, quiet)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("RunJob() = %v, want an error that names %q", err, test.want)
			}
			if stdout.String() != "" {
				t.Errorf("the command ran and printed %q", stdout)
			}
		})
	}
}

func TestRunJob_HintsAtThePattern(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	stderr := newBuffer()
	o := options(t, trainingCommand("chatter", "450"))
	o.Connect, o.Stderr = over(b), stderr
	got, err := collector.RunJob(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	text := stderr.String()
	if strings.Count(text, "no epoch is recognised") != 1 || !strings.Contains(text, "--epoch-pattern '"+collector.PatternExample+"'") || !strings.Contains(text, "\n  step ") {
		t.Errorf("stderr = %q, want one hint with the flag and the last line", text)
	}
	e := stored(t, b, schemas.JobSubject(got.JobID, schemas.EventFinished), 1)[0].(*schemas.Ended)
	if e.EpochsDone != 0 || e.DurationSeconds <= 0 || e.StartupSeconds != nil {
		t.Errorf("finished = %+v, want a whole-job example", e)
	}
}

func TestRunJob_PassesAFloodUnchanged(t *testing.T) {
	for _, noPTY := range []bool{true, false} {
		stdout, stderr := newBuffer(), newBuffer()
		o := options(t, trainingCommand("flood"))
		o.Stdout, o.Stderr, o.NoPTY = stdout, stderr, noPTY
		got, err := collector.RunJob(t.Context(), o, quiet)
		if err != nil || len(got.Epochs) != 1 {
			t.Fatalf("RunJob(no-pty %v) = %d epochs, %v, want 1", noPTY, len(got.Epochs), err)
		}
		all := stdout.String() + stderr.String()
		if n := strings.Count(all, "x"); n < 48<<16 {
			t.Errorf("no-pty %v: %d bytes of the long line, want %d", noPTY, n, 48<<16)
		}
		if !strings.Contains(all, "\x00\xff\x1b[\n") || strings.Contains(all, "\r") {
			t.Errorf("no-pty %v: bytes were changed on their way", noPTY)
		}
	}
}

func TestRunJob_AccountsForTheProcessTree(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("process trees are accounted for on Linux")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// A shell around the program: the work is done by a child.
	o := options(t, []string{"sh", "-c", `"$0" "$@"; exit $?`})
	o.Command = append(o.Command, trainingCommand("work")...)
	b := bustest.New(t)
	o.Stdin, o.Request.JobID, o.Connect = r, "tree", over(b)
	done := make(chan collector.JobResult, 1)
	go func() {
		got, err := collector.RunJob(context.Background(), o, quiet)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	stored(t, b, schemas.JobSubject("tree", schemas.EventEpoch), 1) // until then the job lives
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-done
	if len(got.Epochs) != 1 {
		t.Fatalf("%d epochs, want 1", len(got.Epochs))
	}
	e := got.Epochs[0]
	if e.JobCPUSeconds == nil || *e.JobCPUSeconds <= 0 || *e.JobCPUSeconds > 4*e.DurationSeconds {
		t.Errorf("CPU time = %v in %v s, want some of it", e.JobCPUSeconds, e.DurationSeconds)
	}
	if e.JobMemoryBytes == nil || *e.JobMemoryBytes < 1<<20 {
		t.Errorf("memory = %v, want at least a megabyte", e.JobMemoryBytes)
	}
	if e.NodeCPURatio == nil || *e.NodeCPURatio <= 0 || e.NodeIOWaitRatio == nil || e.NodeLoadAverage == nil {
		t.Errorf("node = %v busy, %v IO-wait, %v load, want all of them", e.NodeCPURatio, e.NodeIOWaitRatio, e.NodeLoadAverage)
	}
	if e.DurationSource != schemas.DurationArrival {
		t.Errorf("duration source = %q, want arrival", e.DurationSource)
	}
	if e.ConcurrentJobs != nil {
		t.Errorf("concurrent jobs = %v, want absent: the runner does not know", *e.ConcurrentJobs)
	}
}
