package advisor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	startEvents = "COURIER_START_EVENTS"     // number of events that BenchmarkStart publishes
	startURL    = "COURIER_START_ADVISOR_OF" // set for the process that BenchmarkStart starts

	epochsOfAJob = 30 // with submitted, started and finished: 33 events

	// startTail is the maximum number of events after the snapshot, which an advisor replays
	// after a crash.
	startTail = 20_000
)

// startReport is the report of the started advisor.
type startReport struct {
	Seconds   float64 // from the start of the process to its first answer
	CPU       float64 // CPU seconds until the first answer
	HeapBytes uint64  // in use after the first answer and a garbage collection
	PeakBytes uint64  // maximum resident memory until the first answer
}

// BenchmarkStart publishes COURIER_START_EVENTS job events, each job with its own model and node.
// It starts an advisor as a separate process, first without a snapshot, then with the snapshot that
// the first one stored.
//
//	COURIER_START_EVENTS=1000000 go test ./advisor -run '^$' -bench Start -benchtime 1x -timeout 2h
func BenchmarkStart(b *testing.B) {
	events, err := strconv.Atoi(os.Getenv(startEvents))
	if err != nil {
		b.Skipf("set %s to a number of events", startEvents)
	}
	begin := time.Now()
	server := bustest.NewServer(b)
	server.Connect(b)
	w := newJobWriter(b, server.URL())
	w.write(events - tailOf(events))
	b.Logf("published after %s", time.Since(begin))
	for b.Loop() {
		whole := startAdvisor(b, server.URL())
		b.Logf("without a snapshot: %+v", whole)
		w.write(tailOf(events))
		quick := startAdvisor(b, server.URL())
		b.Logf("with a snapshot: %+v", quick)
		b.ReportMetric(whole.Seconds, "replay-s")
		b.ReportMetric(float64(whole.PeakBytes)/1e6, "replay-MB")
		b.ReportMetric(quick.Seconds, "snapshot-s")
		b.ReportMetric(quick.CPU, "snapshot-cpu-s")
		b.ReportMetric(float64(quick.PeakBytes)/1e6, "snapshot-MB")
		b.ReportMetric(float64(quick.HeapBytes)/1e6, "heap-MB")
		b.ReportMetric(float64(savedBytes(b, server.Connect(b)))/1e6, "snapshot-size-MB")
	}
	b.ReportMetric(float64(events), "events")
}

func tailOf(events int) int { return min(startTail, events/10) }

func savedBytes(b *testing.B, c *bus.Bus) uint64 {
	all, err := c.Snapshots(within(b), "advisor", cluster.SnapshotVersion)
	if err != nil || len(all) == 0 {
		b.Fatalf("%d snapshots, %v", len(all), err)
	}
	return all[0].Bytes
}

// jobWriter publishes the events of jobs in order, ten jobs at a time.
type jobWriter struct {
	b       *testing.B
	nc      *nats.Conn
	js      jetstream.JetStream
	jobs    int
	written uint64 // events
	left    []schemas.Event
}

func newJobWriter(b *testing.B, url string) *jobWriter {
	nc, js := connect(b, url)
	limit(b, js, -1)
	return &jobWriter{b: b, nc: nc, js: js}
}

// write publishes events and waits until the stream has them. Most are published without an ack,
// which is several times as fast.
func (w *jobWriter) write(events int) {
	w.b.Helper()
	const together = 2000 // well below the limit of the server for pending messages
	for n := range events {
		e := w.next()
		data, err := schemas.Marshal(e)
		if err != nil {
			w.b.Fatal(err)
		}
		if (n+1)%together != 0 && n+1 < events {
			err = w.nc.Publish(e.Subject(), data)
		} else {
			err = w.publishAndWait(e.Subject(), data)
		}
		w.written++
		if err != nil {
			w.b.Fatal(err)
		}
	}
}

// publishAndWait publishes an event and waits until the stream has it and all before it.
func (w *jobWriter) publishAndWait(subject string, data []byte) error {
	ctx, cancel := context.WithTimeout(w.b.Context(), 2*time.Minute)
	defer cancel()
	ack, err := w.js.Publish(ctx, subject, data, jetstream.WithRetryAttempts(0))
	if err == nil && ack.Sequence != w.written+1 {
		err = fmt.Errorf("the stream has %d events, want %d", ack.Sequence, w.written+1)
	}
	return err
}

// next returns the next event; ten jobs run concurrently.
func (w *jobWriter) next() schemas.Event {
	if len(w.left) == 0 {
		const beside = 10
		var jobs [beside][]schemas.Event
		for i := range jobs {
			jobs[i] = eventsOf(w.jobs)
			w.jobs++
		}
		for n := range jobs[0] {
			for i := range jobs {
				w.left = append(w.left, jobs[i][n])
			}
		}
	}
	e := w.left[0]
	w.left = w.left[1:]
	return e
}

// eventsOf returns the events of one job.
func eventsOf(n int) []schemas.Event {
	id := fmt.Sprintf("job-%08d", n)
	setting := schemas.Setting{
		Model: fmt.Sprint("model-", n), BatchSize: 16, CPUs: 2, Epochs: epochsOfAJob,
		Nodes: []string{fmt.Sprint("pod-", n)},
	}
	q := advisortest.Request()
	q.JobID, q.Model, q.Epochs, q.Nodes = id, setting.Model, int(setting.Epochs), setting.Nodes
	q = q.WithDefaults()
	now := time.Now().UTC()
	submitted := &schemas.Submitted{Request: q}
	submitted.Advice = *decide.Decide(&decide.Question{Request: q, JobID: id, Nodes: q.Nodes},
		decide.Regressors{}, now)
	submitted.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: id + "/submitted", At: now}, JobID: id,
	}
	submitted.Advice.JobStamp = submitted.JobStamp
	started := advisortest.StartedEvent(id, 1)
	started.Setting = setting
	all := []schemas.Event{submitted, started}
	for number := range setting.Epochs {
		e := advisortest.EpochEvent(id, 1, number+1)
		e.Setting = setting
		all = append(all, e)
	}
	finished := advisortest.FinishedEvent(id, 1)
	finished.Setting, finished.EpochsDone = setting, setting.Epochs
	return append(all, finished)
}

// startAdvisor starts an advisor as a separate process, waits until it answers, and stops it.
func startAdvisor(b *testing.B, url string) startReport {
	b.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestStartedAdvisor$", "-test.timeout=2h")
	c.Env = append(os.Environ(), startURL+"="+url)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		b.Fatalf("advisor: %v\n%s", err, out)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	var r startReport
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		b.Fatalf("advisor reports %q: %v", line, err)
	}
	return r
}

// TestStartedAdvisor is the process that BenchmarkStart starts.
func TestStartedAdvisor(t *testing.T) {
	url := os.Getenv(startURL)
	if url == "" {
		t.Skip("it is a process of BenchmarkStart")
	}
	begin := time.Now()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c, err := bus.Connect(within(t), bus.Options{URL: url}, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Prepare(within(t)); err != nil {
		t.Fatal(err)
	}
	log.Info("prepared", "seconds", time.Since(begin).Seconds())
	a := New(c, Options{}, log, nil)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	<-a.Answering()
	log.Info("answering", "seconds", time.Since(begin).Seconds())
	q := advisortest.Request()
	q.NewNodes = true // no job of the log has run on its node
	predict(t, c, q)
	r := startReport{Seconds: time.Since(begin).Seconds(), CPU: cpuSeconds(t), PeakBytes: peakBytes(t)}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.HeapBytes = m.HeapInuse
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// peakBytes returns the maximum resident memory of this process.
func peakBytes(t *testing.T) uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("needs /proc")
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	return 0
}

// cpuSeconds returns the CPU time of this process.
func cpuSeconds(t *testing.T) float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Skip(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}
