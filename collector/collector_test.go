package collector_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
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
	"courier/spool"

	"github.com/prometheus/client_golang/prometheus"
)

// requireLinux skips the test on other systems.
func requireLinux(t testing.TB) {
	if runtime.GOOS != "linux" {
		t.Skip("node samples require Linux")
	}
}

// start runs a collector. The returned function stops it and returns its error.
func start(
	t *testing.T, b *bus.Bus, o collector.Options, log *slog.Logger, reg prometheus.Registerer,
) (stop func() error) {
	t.Helper()
	o.SpoolDir = cmp.Or(o.SpoolDir, t.TempDir())
	c, err := collector.New(b, o, log, reg)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return func() error { cancel(); return <-done }
}

// samples waits for n samples of the node in the log and returns them.
func samples(t *testing.T, b *bus.Bus, node string, n int) []*schemas.Sample {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all []*schemas.Sample
	seen := map[string]bool{}
	o := bus.FollowOptions{
		Stream:   schemas.StreamNode,
		Subjects: []string{schemas.NodeSubject(node, schemas.EventSample)},
	}
	if err := b.Follow(ctx, o, func(r bus.Record) error {
		s := r.Event.(*schemas.Sample)
		if seen[s.EventID] {
			return nil // a message may repeat a sample whose acknowledgement was lost
		}
		seen[s.EventID] = true
		if all = append(all, s); len(all) == n {
			cancel()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) < n {
		t.Fatalf("%d samples of %s, want %d", len(all), node, n)
	}
	return all[:n]
}

const interval = 100 * time.Millisecond

func TestCollector_PublishesSamples(t *testing.T) {
	requireLinux(t)
	b, reg := bustest.New(t), prometheus.NewRegistry()
	stop := start(t, b, collector.Options{Node: "n1", Interval: interval}, quiet, reg)
	for i, s := range samples(t, b, "n1", 3) {
		if s.EventID != schemas.SampleID("n1", s.BootID, s.Number) ||
			s.Cores < 1 || s.IntervalSeconds < 0.05 {
			t.Errorf("sample %d = %+v, want a matching identity", i, s)
		}
		if s.LoadAverage == nil || s.MemoryTotalBytes == nil || *s.MemoryTotalBytes <= 0 ||
			s.MemoryAvailableBytes == nil {
			t.Errorf("sample %d = %+v, want load and memory", i, s)
		}
		if s.SpeedOperationsPerSecond == nil || *s.SpeedOperationsPerSecond < 1e6 {
			t.Errorf("speed in sample %d = %v, want at least 1e6 operations per second",
				i, s.SpeedOperationsPerSecond)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
	values := map[string]float64{}
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		values[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue() +
			f.GetMetric()[0].GetGauge().GetValue()
	}
	if values["courier_collector_published_samples_total"] < 2 ||
		values["courier_collector_waiting_age_seconds"] != 0 ||
		values["courier_collector_dropped_samples_total"] != 0 {
		t.Errorf("metrics = %v, want published samples, and none that waits or was dropped", values)
	}
}

// Numbers increase over a restart, because they are part of a sample's identity.
func TestCollector_ContinuesNumbersAfterARestart(t *testing.T) {
	requireLinux(t)
	b := bustest.New(t)
	for run := range 2 {
		stop := start(t, b, collector.Options{Node: "n1", Interval: interval}, quiet, nil)
		samples(t, b, "n1", 2*(run+1))
		must(t, stop())
	}
	checkOrder(t, samples(t, b, "n1", 4))
}

// checkOrder fails unless numbers and timestamps of samples increase.
func checkOrder(t *testing.T, all []*schemas.Sample) {
	t.Helper()
	for i := 1; i < len(all); i++ {
		if all[i].Number <= all[i-1].Number || !all[i].At.After(all[i-1].At) {
			t.Errorf("sample %d: number %d at %s after number %d at %s, want both to increase",
				i, all[i].Number, all[i].At, all[i-1].Number, all[i-1].At)
		}
	}
}

// publishOther publishes a sample of another boot under the name n1.
func publishOther(t *testing.T, b *bus.Bus, bootID string, intervalSeconds float64) {
	t.Helper()
	other := &schemas.Sample{Node: "n1", BootID: bootID, Number: 7, IntervalSeconds: intervalSeconds, Cores: 4}
	other.EventID, other.At = schemas.SampleID("n1", bootID, other.Number), time.Now().UTC()
	_, err := b.Publish(t.Context(), other)
	must(t, err)
}

func TestCollector_RejectsATakenName(t *testing.T) {
	requireLinux(t)
	b := bustest.New(t)
	publishOther(t, b, "another-machine", 2)
	o := collector.Options{Node: "n1", Interval: interval, SpoolDir: t.TempDir()}
	c, err := collector.New(b, o, quiet, nil)
	must(t, err)
	err = c.Run(t.Context())
	if !errors.Is(err, collector.ErrNodeTaken) || !strings.Contains(err.Error(), "another-machine") ||
		!strings.Contains(err.Error(), "--node") {
		t.Errorf("Run() = %v, want ErrNodeTaken with the boot ID and the flag", err)
	}
	stop := start(t, b, collector.Options{Node: "n2", Interval: interval}, quiet, nil)
	samples(t, b, "n2", 1) // another name is available
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestCollector_AcceptsAnUnusedName(t *testing.T) {
	requireLinux(t)
	b := bustest.New(t)
	publishOther(t, b, "before-the-reboot", 0.001)
	timer := time.NewTimer(3*interval + 20*time.Millisecond)
	<-timer.C
	stop := start(t, b, collector.Options{Node: "n1", Interval: interval}, quiet, nil)
	if got := samples(t, b, "n1", 2)[1]; got.BootID == "before-the-reboot" {
		t.Errorf("sample = %+v, want one of this boot", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// The next process first publishes the samples on disk.
func TestCollector_LosesNoSampleOverAnOutageAndARestart(t *testing.T) {
	requireLinux(t)
	server := bustest.NewServer(t)
	o := collector.Options{Node: "n1", Interval: interval, SpoolDir: t.TempDir()}
	b := server.Connect(t)
	stop := start(t, b, o, quiet, nil)
	samples(t, b, "n1", 1)
	server.Stop()
	awaitSpooled(t, o.SpoolDir, 4)
	if err := stop(); err != nil {
		t.Error(err)
	}
	server.Restart(t)
	b = server.Connect(t)
	stop = start(t, b, o, quiet, nil)
	all := samples(t, b, "n1", 8)
	if err := stop(); err != nil {
		t.Error(err)
	}
	checkOrder(t, all)
	for i := 1; i < 5; i++ {
		if all[i].Number != all[0].Number+uint64(i) {
			t.Errorf("sample %d of the first process has number %d, after %d", i, all[i].Number, all[0].Number)
		}
	}
	if left := spooled(o.SpoolDir); len(left) > 0 {
		t.Errorf("spool holds %v, want nothing", left)
	}
}

// spooled returns the samples in the spool of node n1, one per line.
func spooled(dir string) (lines []string) {
	for _, pattern := range []string{"*.jsonl", "*/*.jsonl"} {
		files, _ := filepath.Glob(filepath.Join(dir, "samples-n1", pattern))
		for _, f := range files {
			text, _ := os.ReadFile(f) // it may have been published meanwhile
			lines = append(lines, strings.Split(strings.TrimSpace(string(text)), "\n")...)
		}
	}
	return lines
}

func awaitSpooled(t *testing.T, dir string, n int) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for len(spooled(dir)) < n {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the spool has %d samples, want %d", len(spooled(dir)), n)
		}
	}
}

// A collector that starts while NATS is unreachable takes samples without knowing the last number.
func TestCollector_SamplesBeforeNATSIsReachable(t *testing.T) {
	requireLinux(t)
	server := bustest.NewServer(t)
	b := server.Connect(t)
	o := collector.Options{Node: "n1", Interval: interval, SpoolDir: t.TempDir()}
	stop := start(t, b, o, quiet, nil)
	samples(t, b, "n1", 2)
	must(t, stop())
	server.Stop()
	begin := time.Now()
	stop = start(t, b, o, quiet, nil)
	awaitSpooled(t, o.SpoolDir, 2)
	back := time.Now()
	server.Restart(t)
	all := samples(t, b, "n1", 6)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if first := all[2]; !first.At.After(begin) || !first.At.Before(back) {
		t.Errorf("the first sample has the timestamp %s, want one between %s and %s", first.At, begin, back)
	}
	checkOrder(t, all)
}

// Waiting samples are not published before the name check.
func TestCollector_RejectsATakenNameAfterAnOutage(t *testing.T) {
	requireLinux(t)
	server := bustest.NewServer(t)
	b := server.Connect(t)
	publishOther(t, b, "another-machine", 600)
	server.Stop()
	o := collector.Options{Node: "n1", Interval: interval, SpoolDir: t.TempDir()}
	c, err := collector.New(b, o, quiet, nil)
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(t.Context()) }()
	awaitSpooled(t, o.SpoolDir, 1)
	server.Restart(t)
	if err := <-ended; !errors.Is(err, collector.ErrNodeTaken) {
		t.Errorf("Run() = %v, want ErrNodeTaken", err)
	}
	if n, err := b.LastSequence(t.Context(), schemas.StreamNode); err != nil || n != 1 {
		t.Errorf("the stream has %d messages (%v), want only the other machine's", n, err)
	}
}

func TestCollector_PublishesEventsOfEarlierRuns(t *testing.T) {
	b := bustest.New(t)
	dir := t.TempDir()
	unreachable, cancel := context.WithCancel(t.Context())
	cancel()
	outbox := spool.NewOutbox(dir, "", "left", 1, quiet)
	for n := uint32(1); n <= 3; n++ {
		e := &schemas.Epoch{Epoch: n, DurationSeconds: 1, DurationSource: schemas.DurationReported}
		e.JobStamp = schemas.JobStamp{JobID: "left", Run: 1}
		e.EventID, e.At = schemas.EpochID("left", 1, n), time.Now().UTC()
		e.Setting = schemas.Setting{Model: "m", BatchSize: 8, CPUs: 1, Epochs: 3, Nodes: []string{"n1"}}
		outbox.Add(e)
	}
	go outbox.Run(unreachable, nil)
	if left := outbox.Finish(); left != 3 {
		t.Fatalf("%d events on disk, want 3", left)
	}

	stop := start(t, b, collector.Options{Node: "n1", SpoolDir: dir}, quiet, nil)
	bustest.Stored(t, b, schemas.JobSubject("left", "*"), 3)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestNew_NamesTheInvalidOption(t *testing.T) {
	for _, test := range []struct {
		o    collector.Options
		want string
	}{
		{collector.Options{Node: "No Such"}, "node"},
		{collector.Options{Node: "n", Interval: time.Millisecond}, "interval"},
		{collector.Options{Node: "n", Interval: -time.Second}, "interval"},
		{collector.Options{Node: "n", Interval: 2 * time.Hour}, "interval"},
	} {
		_, err := collector.New(nil, test.o, quiet, nil)
		var e *schemas.Error
		if !errors.As(err, &e) || e.Code != schemas.CodeInvalid || e.Field != test.want {
			t.Errorf("New(%+v) = %v, want invalid %s", test.o, err, test.want)
		}
	}
}

func TestObserver_MeasuresALoad(t *testing.T) {
	requireLinux(t)
	var text bytes.Buffer
	o := collector.NewObserver(slog.New(slog.NewTextHandler(&text, nil)))
	var first, load schemas.Epoch
	o.Load(&first)
	sum, until := 0.0, time.Now().Add(100*time.Millisecond)
	for time.Now().Before(until) {
		sum++
	}
	o.Load(&load)
	if load.NodeCPURatio == nil || *load.NodeCPURatio < 0.1/float64(load.NodeCores) ||
		load.NodeIOWaitRatio == nil || load.NodeLoadAverage == nil || load.NodeCores < 1 {
		t.Errorf("load = %+v after %g additions, want a busy node", load, sum)
	}
	if first.NodeCPURatio != nil || first.NodeIOWaitRatio != nil || first.NodeLoadAverage == nil ||
		first.NodeCores != load.NodeCores {
		t.Errorf("first load = %+v, want only cores and load average", first)
	}
	if h := o.Hardware(); h.Cores != load.NodeCores {
		t.Errorf("Hardware() = %+v, want %d cores", h, load.NodeCores)
	}
}

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
