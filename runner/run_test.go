package runner_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestRun_PublishesTheEventsOfAJob(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 4)
	stdout, stderr := bustest.NewBuffer(), bustest.NewBuffer()
	o := options(t, trainingCommand("epochs", "3"))
	o.Request.JobID, o.Connect, o.Stdout, o.Stderr = "life", over(b), stdout, stderr
	o.Request.Dataset = "digits"
	got, err := runner.Run(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	events := bustest.Stored(t, b, schemas.JobSubject("life", "*"), 5)
	if diff := cmp.Diff([]string{
		"life/5/started", "life/5/1", "life/5/2", "life/5/3", "life/5/finished",
	}, ids(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	want := schemas.Setting{
		Model:     "digits-mlp",
		Dataset:   "digits",
		BatchSize: 32,
		CPUs:      2,
		Epochs:    3,
		Nodes:     []string{"testnode"},
	}
	for _, e := range events {
		if err := e.Validate(); err != nil {
			t.Errorf("%s: %v", e.ID(), err)
		}
		var setting schemas.Setting
		switch e := e.(type) {
		case *schemas.Started:
			setting = e.Setting
			if e.HeartbeatSeconds != 10 || e.NodeCores == 0 || e.User == "" ||
				e.Command != filepath.Base(os.Args[0]) {
				t.Errorf("started = %+v, want heartbeat 10, cores, a user and the program's name", e)
			}
		case *schemas.Epoch:
			setting = e.Setting
			n := float64(e.Epoch)
			if e.DurationSeconds != 0.25*n || e.DurationSource != schemas.DurationReported ||
				*e.Loss != 1/n || *e.Accuracy != 1-1/(n+1) {
				t.Errorf("epoch %d = %+v, want the printed figures", e.Epoch, e)
			}
		case *schemas.Ended:
			setting = e.Setting
			if *e.ExitCode != 0 || e.EpochsDone != 3 || *e.Accuracy != 0.75 || e.DurationSeconds <= 0 ||
				e.StartupSeconds == nil {
				t.Errorf("finished = %+v, want exit 0, 3 epochs, accuracy 0.75, times", e)
			}
		}
		if diff := cmp.Diff(want, setting); diff != "" {
			t.Errorf("setting of %s (-want +got):\n%s", e.ID(), diff)
		}
	}
	if len(got.Epochs) != 3 || *got.Accuracy != 0.75 || got.ExitCode != 0 || got.Run != 5 ||
		got.Advice == nil || got.Spooled != 0 ||
		got.Submitted.After(got.Started) || got.Started.After(got.Ended) {
		t.Errorf("Run() = %+v, want three epochs and times in order", got)
	}
	if !strings.Contains(stdout.String(), `{"epoch":2,"seconds":0.5,"loss":0.5,"accuracy":0.66`) {
		t.Errorf("stdout = %q, want the lines of the job", stdout)
	}
	for _, text := range []string{
		"meets_slo: batch size 32, 2 CPUs, 3 epochs", "batch 32 meets the SLO", " * 32", "   8",
		"25 s", "6.25 s", "0.982", "slower",
	} {
		if !strings.Contains(stderr.String(), text) {
			t.Errorf("stderr = %q, want it to contain %q", stderr, text)
		}
	}
}

// The started event contains the hardware of the nodes, because samples are not kept as long.
func TestRun_PublishesTheHardwareOfItsNodes(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	speed, cores := 1.5e9, uint32(runtime.NumCPU())
	sample := func(node string, cores uint32, cpu string) {
		e := &schemas.Sample{
			Node:                     node,
			BootID:                   "boot",
			Number:                   1,
			IntervalSeconds:          2,
			Cores:                    cores,
			CPUModel:                 cpu,
			SpeedOperationsPerSecond: &speed,
		}
		e.EventID, e.At = schemas.SampleID(node, "boot", 1), time.Now().UTC()
		if _, err := b.Publish(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	sample("other", 64, "a large one")
	sample("swapped", cores+1, "another machine with that name")
	sample("testnode", cores, "")
	for _, c := range []struct {
		name, node string
		nodes      []string
		cores      []uint32
		speeds     []float64
	}{
		{
			"this node and another", "testnode", []string{"testnode", "other", "nobody-knows"},
			[]uint32{cores, 64, 0}, []float64{speed, speed, 0},
		},
		{
			"samples of an earlier machine with this name", "swapped", []string{"swapped"},
			[]uint32{cores}, []float64{0},
		},
		{"without a collector", "fresh", []string{"fresh"}, []uint32{cores}, []float64{0}},
	} {
		o := options(t, trainingCommand("epochs", "1"))
		o.Node, o.Request.Nodes, o.Connect = c.node, c.nodes, over(b)
		got, err := runner.Run(t.Context(), o, quiet)
		if err != nil {
			t.Fatal(err)
		}
		e := bustest.Stored(t, b, schemas.JobSubject(got.JobID, schemas.EventStarted), 1)[0].(*schemas.Started)
		if diff := cmp.Diff(c.cores, e.NodesCores) +
			cmp.Diff(c.speeds, e.NodesSpeedOperationsPerSecond); diff != "" {
			t.Errorf("%s: cores and speeds (-want +got):\n%s", c.name, diff)
		}
		if models := e.NodesCPUModel; len(models) != len(c.nodes) ||
			len(models) > 1 && models[1] != "a large one" {
			t.Errorf("%s: CPU models %q", c.name, models)
		}
	}
}

func TestRun_ReplacesPlaceholders(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	stdout := bustest.NewBuffer()
	o := options(
		t,
		trainingCommand("environment", "--batch-size={batch}", "{cpus}", "x{epochs}x", "{other}", "{batch}{batch}"),
	)
	o.Connect, o.Stdout, o.BatchSize = over(b), stdout, 16
	got, err := runner.Run(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	want := "arguments [--batch-size=16 2 x3x {other} 1616]\nCOURIER_JOB_ID " + got.JobID +
		"\nCOURIER_BATCH_SIZE 16\nCOURIER_CPUS 2\nCOURIER_EPOCHS 3\nCOURIER_SLO_SECONDS 60\n" +
		"PYTHONUNBUFFERED 1\n"
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if got.Setting.BatchSize != 16 || got.Advice.Chosen.BatchSize != 32 {
		t.Errorf("ran with %d, advised %d, want 16 and 32", got.Setting.BatchSize, got.Advice.Chosen.BatchSize)
	}
	if !strings.HasPrefix(got.JobID, "digits-mlp-") || got.Run != 1 {
		t.Errorf("job %q run %d, want an ID with the name of the model, and run 1", got.JobID, got.Run)
	}
}

func TestRun_RejectsInvalidOptionsBeforeTheStart(t *testing.T) {
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
		change func(o *runner.Options)
		want   string
	}{
		{"rejected by the advisor", func(*runner.Options) {}, "nodes"},
		{"ID of another request", func(o *runner.Options) { o.Request.JobID = "taken" }, "conflict: id"},
		{
			"invalid node name",
			func(o *runner.Options) { o.Node, o.Request.Nodes = "a.b", []string{"ok"} },
			"node",
		},
		{"negative batch size", func(o *runner.Options) { o.BatchSize = -4 }, "batch_size"},
		{"no command", func(o *runner.Options) { o.Command = nil }, "command"},
		{
			"missing program",
			func(o *runner.Options) { o.Command = []string{"no-such-program-here"} },
			"no-such-program-here",
		},
		{"unknown adaptation", func(o *runner.Options) { o.Adapt = "sometimes" }, "adapt"},
		{"restart without {batch}", func(o *runner.Options) { o.Adapt = runner.AdaptRestart }, "{batch}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout := bustest.NewBuffer()
			o := options(t, trainingCommand("epochs", "1"))
			o.Connect, o.Stdout = over(b), stdout
			test.change(&o)
			_, err := runner.Run(t.Context(), o, quiet)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Run() = %v, want an error that names %q", err, test.want)
			}
			if stdout.String() != "" {
				t.Errorf("the command ran and printed %q", stdout)
			}
		})
	}
}

// A job is told what Courier makes of its output, of its number of CPUs and of a container that nothing
// uses.
func TestRun_ExplainsItself(t *testing.T) {
	const unused = "--container x has no effect: it needs --elastic, and --resize docker or docker-cap"
	for _, c := range []struct {
		name      string
		command   []string
		want      []string
		without   []string
		resize    string // with a container; empty: none
		isElastic bool
	}{
		{
			"all epochs, CPUs in the command",
			append(trainingCommand("epochs", "3"), "{batch}", "{cpus}"),
			nil,
			[]string{"incomplete", "{cpus}", "is read as", "--container"},
			"",
			false,
		},
		{
			"too few epochs, CPUs not in the command",
			trainingCommand("epochs", "2"),
			[]string{
				"the command ended after epoch 2 of 3: the job is incomplete",
				"the command has no {cpus}: numerical libraries get 2 threads",
			},
			nil,
			"",
			false,
		},
		{
			"words in braces",
			append(trainingCommand("epochs", "3"),
				"{batch}", "{cpus}", "{btch}", `{"lr": {"a": 1}}`, "${name}", "{print}-{btch}"),
			[]string{
				"the command has {btch}, which is not replaced: " +
					"want {batch}, {cpus}, {workers}, {loaders}, {epochs} or {epoch}\n",
				"the command has {print}, which",
			},
			[]string{"{name}", `"lr"`},
			"",
			false,
		},
		{
			"percentages", trainingCommand("percentages", "3"),
			[]string{"accuracy 91 is read as a percentage: accuracy 0.91"}, []string{"incomplete"}, "", false,
		},
		{
			"an old log", []string{"sh", "-c", "for e in 1 2 3; do echo epoch $e/3 loss=0.$e; done"},
			[]string{"all epochs of the output arrived together"}, []string{"finished early"}, "", false,
		},
		{"not elastic", trainingCommand("epochs", "3"), []string{unused}, nil, runner.ResizeDocker, false},
		{"not by Docker", trainingCommand("epochs", "3"), []string{unused}, nil, runner.ResizeControl, true},
		{"by Docker", trainingCommand("epochs", "3"), nil, []string{unused}, runner.ResizeDocker, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var messages bytes.Buffer
			o := options(t, c.command)
			o.Stderr = &messages
			if c.resize != "" {
				o.Container, o.Resize, o.Request.Elastic = "x", c.resize, c.isElastic
				o.Request.CPUs = schemas.CPUs{1, 2}
			}
			if _, err := runner.Run(t.Context(), o, quiet); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if n := strings.Count(messages.String(), want); n != 1 {
					t.Errorf("messages have %q %d times, want once:\n%s", want, n, &messages)
				}
			}
			for _, text := range c.without {
				if strings.Contains(messages.String(), text) {
					t.Errorf("messages have %q, want it absent:\n%s", text, &messages)
				}
			}
		})
	}
}

// No pattern is suggested for numbers above the requested epochs.
func TestRun_ShowsALineIfNoEpochIsRecognized(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	stderr := bustest.NewBuffer()
	o := options(t, trainingCommand("chatter", "450"))
	o.Connect, o.Stderr = over(b), stderr
	got, err := runner.Run(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	text := stderr.String()
	if strings.Count(text, "no epoch recognized") != 2 ||
		!strings.Contains(text, "describe their lines, for example with --epoch-pattern") ||
		!strings.Contains(text, "\n  step ") {
		t.Errorf("stderr = %q, want a hint with an example and the line, and again at the end", text)
	}
	e := bustest.Stored(t, b, schemas.JobSubject(got.JobID, schemas.EventFinished), 1)[0].(*schemas.Ended)
	if e.EpochsDone != 0 || e.DurationSeconds <= 0 || e.StartupSeconds != nil {
		t.Errorf("finished = %+v, want the duration of the whole run", e)
	}
}

func TestRun_CopiesLargeOutputUnchanged(t *testing.T) {
	for _, noPTY := range []bool{true, false} {
		stdout, stderr := bustest.NewBuffer(), bustest.NewBuffer()
		o := options(t, trainingCommand("flood"))
		o.Stdout, o.Stderr, o.NoPTY = stdout, stderr, noPTY
		got, err := runner.Run(t.Context(), o, quiet)
		if err != nil || len(got.Epochs) != 1 {
			t.Fatalf("Run(no-pty %v) = %d epochs, %v, want 1", noPTY, len(got.Epochs), err)
		}
		all := stdout.String() + stderr.String()
		if n := strings.Count(all, "x"); n < 48<<16 {
			t.Errorf("no-pty %v: %d bytes of the long line, want %d", noPTY, n, 48<<16)
		}
		if !strings.Contains(all, "\x00\xff\x1b[\n") || strings.Contains(all, "\r") {
			t.Errorf("no-pty %v: the output was changed", noPTY)
		}
	}
}

func TestRun_MeasuresTheProcessTree(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("process trees are measured on Linux only")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The work is done by a child of the command.
	o := options(t, []string{"sh", "-c", `"$0" "$@"; exit $?`})
	o.Command = append(o.Command, trainingCommand("work")...)
	b := bustest.New(t)
	o.Stdin, o.Request.JobID, o.Connect, o.Observer = r, "tree", over(b), steadyNode{}
	done := start(t, context.Background(), o)
	bustest.Stored(
		t, b, schemas.JobSubject("tree", schemas.EventEpoch), 1,
	) // until the event is stored, the job is running
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
	var want schemas.Epoch
	steadyNode{}.Load(&want)
	gotNode := schemas.Epoch{
		NodeCores:       e.NodeCores,
		NodeCPURatio:    e.NodeCPURatio,
		NodeIOWaitRatio: e.NodeIOWaitRatio,
		NodeLoadAverage: e.NodeLoadAverage,
	}
	if diff := cmp.Diff(want, gotNode); diff != "" {
		t.Errorf("node figures (-want +got):\n%s", diff)
	}
	if e.DurationSource != schemas.DurationArrival {
		t.Errorf("duration source = %q, want arrival", e.DurationSource)
	}
	if e.ConcurrentJobs != nil {
		t.Errorf("concurrent jobs = %v, want none, because the runner does not know it", *e.ConcurrentJobs)
	}
}

// A batch size without others is what the advice is about, unless the job may change it.
func TestRun_AsksForTheBatchSizeThatItHas(t *testing.T) {
	for _, c := range []struct {
		name, adapt string
		sizes, want []int
	}{
		{"alone", runner.AdaptOff, nil, []int{16}},
		{"with others", runner.AdaptOff, []int{8, 16}, []int{8, 16}},
		{"that may change", runner.AdaptControl, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			var asked []int
			serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
				bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
					asked = q.BatchSizes
					return nil, schemas.Invalid("model", "the test has seen enough")
				}),
			}})
			o := options(t, trainingCommand("percentages", "1"))
			o.Connect, o.BatchSize, o.Adapt, o.Request.BatchSizes = over(b), 16, c.adapt, c.sizes
			_, err := runner.Run(t.Context(), o, quiet)
			if !errors.Is(err, schemas.ErrInvalid) || !slices.Equal(asked, c.want) {
				t.Errorf("the advisor was asked for batch sizes %v, error %v, want %v", asked, err, c.want)
			}
		})
	}
}
