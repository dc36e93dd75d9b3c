package collector_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/collector"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var quiet = slog.New(slog.DiscardHandler)

// request is a job that needs no advisor to be valid.
func request() schemas.JobRequest {
	return schemas.JobRequest{Model: "digits-mlp", CPUs: schemas.CPUs{2}, BatchSizes: []int{8, 32}, Epochs: 3, SLO: schemas.Duration(time.Minute)}
}

// options runs the command without a bus, on pipes.
func options(t *testing.T, command []string) collector.JobOptions {
	return collector.JobOptions{Request: request(), Node: "testnode", Command: command, NoPTY: true, SpoolDir: t.TempDir(), Patience: 10 * time.Second}
}

// over connects the run to a bus that is there already.
func over(b *bus.Bus) func(context.Context) (*bus.Bus, error) {
	return func(context.Context) (*bus.Bus, error) { return b, nil }
}

// buffer is a writer for several goroutines that tests may wait on.
type buffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func newBuffer() *buffer { return &buffer{changed: make(chan struct{}, 1)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await waits until the text was written.
func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	b.awaitThat(t, "contain "+text, func(all string) bool { return strings.Contains(all, text) })
}

// awaitThat waits until what was written is as wanted.
func (b *buffer) awaitThat(t *testing.T, want string, is func(all string) bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !is(b.String()) {
		select {
		case <-b.changed:
		case <-deadline:
			t.Fatalf("output = %q, want it to %s", b.String(), want)
		}
	}
}

// advise serves job.submit and job.status as an advisor would: the last
// candidate, and the given number of earlier runs.
func advise(t *testing.T, b *bus.Bus, runs uint32) {
	t.Helper()
	serve(t, b, bus.Service{Name: "advisor", Version: "0.0.1", Endpoints: []bus.Endpoint{
		bus.Handle(schemas.SubjectJobSubmit, func(_ context.Context, q *schemas.JobRequest) (any, error) {
			return adviceFor(q), nil
		}),
		bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
			return &schemas.JobStatus{JobID: q.JobID, Run: runs}, nil
		}),
	}})
}

func adviceFor(q *schemas.JobRequest) *schemas.Advice {
	a := &schemas.Advice{Decision: schemas.MeetsSLO, Action: schemas.ActionStart, Message: "batch 32 meets the SLO", Model: q.Model, Nodes: q.Nodes, SLOSeconds: q.SLO.Seconds()}
	a.EventID, a.At, a.JobID = q.JobID+"/0/advice", time.Now().UTC(), q.JobID
	for _, batch := range q.BatchSizes {
		seconds, accuracy := 200/float64(batch), 0.99-float64(batch)/1000
		a.Alternatives = append(a.Alternatives, schemas.Alternative{BatchSize: uint32(batch), CPUs: uint32(q.CPUs[0]), Epochs: uint32(q.Epochs),
			PredictedSeconds: &seconds, PredictedAccuracy: &accuracy, Reason: "slower"})
	}
	chosen := a.Alternatives[len(a.Alternatives)-1]
	a.Chosen = &chosen
	return a
}

// serve runs a service until the test ends and waits until it answers.
func serve(t *testing.T, b *bus.Bus, s bus.Service) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	ask, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	for {
		var reply any
		err := b.Request(ask, schemas.SubjectJobSubmit, struct{}{}, &reply)
		if !errors.Is(err, schemas.ErrUnavailable) {
			return
		}
		if ask.Err() != nil {
			t.Fatal(err)
		}
	}
}

// stored returns the events of JOB that match the subject, when there are n.
func stored(t *testing.T, b *bus.Bus, subject string, n int) []schemas.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var all []schemas.Event
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: []string{subject}}
	if err := b.Follow(ctx, o, func(r bus.Record) error {
		if all = append(all, r.Event); len(all) == n {
			cancel()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) != n {
		t.Fatalf("%d events of %s, want %d", len(all), subject, n)
	}
	return all
}

// ids returns the identities of events.
func ids(events []schemas.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.ID())
	}
	return all
}

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

func TestRunJob_RunsWithoutAnybody(t *testing.T) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	server.Stop()
	stdout, stderr := newBuffer(), newBuffer()
	o := options(t, trainingCommand("epochs", "2"))
	o.Request.JobID, o.Connect, o.Stdout, o.Stderr, o.Patience = "alone", over(b), stdout, stderr, 50*time.Millisecond
	got, err := collector.RunJob(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if got.ExitCode != 0 || len(got.Epochs) != 2 || got.Setting.BatchSize != 8 || got.Advice != nil || got.Spooled != 4 {
		t.Errorf("RunJob() = %+v, want 2 epochs with the first batch size, no advice, 4 events on disk", got)
	}
	if got.Run < 1<<27 {
		t.Errorf("run = %d, want seconds since 2020, because nobody knows earlier runs", got.Run)
	}
	for _, text := range []string{"no advice", "batch size 8", "4 events could not be published"} {
		if !strings.Contains(stderr.String(), text) {
			t.Errorf("stderr = %q, want it to contain %q", stderr, text)
		}
	}

	// The next run, of whatever job, publishes what this one kept.
	server.Restart(t)
	advise(t, b, 0)
	o.Request.JobID, o.Patience = "next", 10*time.Second
	if next, err := collector.RunJob(t.Context(), o, quiet); err != nil || next.Spooled != 0 {
		t.Fatalf("RunJob() = %+v, %v, want nothing on disk", next, err)
	}
	events := stored(t, b, schemas.JobSubject("alone", "*"), 4)
	for i, e := range got.Epochs {
		if found, ok := events[i+1].(*schemas.Epoch); !ok || !found.At.Equal(e.At) || found.EventID != e.EventID {
			t.Errorf("event %d = %+v, want epoch %s at its own time %s", i+1, events[i+1], e.EventID, e.At)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(o.SpoolDir, "*")); len(left) > 0 {
		t.Errorf("spool holds %v, want nothing", left)
	}
}

func TestRunJob_PublishesWhatItKeptWhenNATSComesBack(t *testing.T) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	advise(t, b, 0)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := newBuffer()
	o := options(t, trainingCommand("epochs", "3"))
	o.Request.JobID, o.Connect, o.Stdout, o.Stdin = "outage", over(b), stdout, r
	done := make(chan collector.JobResult, 1)
	go func() {
		got, err := collector.RunJob(context.Background(), o, quiet)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	step := func(epoch string) {
		if _, err := io.WriteString(w, "\n"); err != nil {
			t.Fatal(err)
		}
		stdout.await(t, epoch)
	}
	step(`{"epoch":1`)
	stored(t, b, schemas.JobSubject("outage", "*"), 2)
	server.Stop()
	step(`{"epoch":2`)
	awaitFile(t, filepath.Join(o.SpoolDir, "outage-1.jsonl"), "outage/1/2")
	server.Restart(t)
	stored(t, b, schemas.JobSubject("outage", "*"), 3) // while the job goes on
	step(`{"epoch":3`)
	got := <-done
	events := stored(t, b, schemas.JobSubject("outage", "*"), 5)
	if diff := cmp.Diff([]string{"outage/1/started", "outage/1/1", "outage/1/2", "outage/1/3", "outage/1/finished"}, ids(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got.Spooled != 0 {
		t.Errorf("%d events on disk, want none", got.Spooled)
	}
}

// awaitFile waits until the file holds the text.
func awaitFile(t *testing.T, path, text string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), text) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s = %q, %v, want it to contain %q", path, data, err, text)
		}
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

func TestRunJob_ReturnsTheExitStatus(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	for _, noPTY := range []bool{true, false} {
		o := options(t, trainingCommand("exit", "42"))
		o.Connect, o.NoPTY = over(b), noPTY
		got, err := collector.RunJob(t.Context(), o, quiet)
		if err != nil || got.ExitCode != 42 || got.Cancelled {
			t.Errorf("RunJob(no-pty %v) = %+v, %v, want exit status 42", noPTY, got, err)
		}
		events := stored(t, b, schemas.JobSubject(got.JobID, schemas.EventFailed), 1)
		if e := events[0].(*schemas.Ended); *e.ExitCode != 42 || e.Reason != "exit status 42" || e.EpochsDone != 0 || e.DurationSeconds <= 0 {
			t.Errorf("failed = %+v, want exit status 42 and the whole job's duration", e)
		}
	}
}

func TestRunJob_EndsWhenCancelled(t *testing.T) {
	b := bustest.New(t)
	advise(t, b, 0)
	stdout := newBuffer()
	o := options(t, trainingCommand("signals"))
	o.Request.JobID, o.Connect, o.Stdout = "halt", over(b), stdout
	done := make(chan collector.JobResult, 1)
	go func() {
		got, err := collector.RunJob(context.Background(), o, quiet)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	stdout.await(t, "ready")
	stored(t, b, schemas.JobSubject("halt", schemas.EventStarted), 1)
	old := &schemas.Ended{Outcome: schemas.EventCancelled}
	old.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: "halt/0/cancelled", At: time.Now().Add(-time.Hour)}, JobID: "halt"}
	e := &schemas.Ended{Outcome: schemas.EventCancelled, Reason: "not needed\x1b[31m any more"}
	e.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: "halt/1/cancelled", At: time.Now().UTC()}, JobID: "halt", Run: 1}
	for _, e := range []schemas.Event{old, e} {
		if _, err := b.Publish(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	got := <-done
	if !got.Cancelled || got.ExitCode != 7 || !strings.Contains(stdout.String(), "got terminated") {
		t.Errorf("RunJob() = %+v, output %q, want cancelled by SIGTERM", got, stdout)
	}
	stored(t, b, schemas.JobSubject("halt", schemas.EventCancelled), 2) // ours is the advisor's: one identity
}

func TestRunJob_KillsWhoDoesNotListen(t *testing.T) {
	stdout, stderr := newBuffer(), newBuffer()
	o := options(t, trainingCommand("stubborn"))
	o.Stdout, o.Stderr, o.Grace = stdout, stderr, 50*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan collector.JobResult, 1)
	go func() {
		got, err := collector.RunJob(ctx, o, quiet)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	stdout.await(t, "ready")
	cancel()
	if got := <-done; !got.Cancelled || got.ExitCode != 128+9 {
		t.Errorf("RunJob() = %+v, want cancelled, exit status 137", got)
	}
	if !strings.Contains(stderr.String(), "did not end within 50ms") {
		t.Errorf("stderr = %q, want the kill explained", stderr)
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
	stdout := newBuffer()
	// A shell around the program: the work is done by a child.
	o := options(t, []string{"sh", "-c", `"$0" "$@"; exit $?`})
	o.Command = append(o.Command, trainingCommand("work")...)
	o.Stdin, o.Stdout = r, stdout
	done := make(chan collector.JobResult, 1)
	go func() {
		got, err := collector.RunJob(context.Background(), o, quiet)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	stdout.await(t, "epoch")
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
