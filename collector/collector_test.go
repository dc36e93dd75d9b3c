package collector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
		if s.Number != uint64(i+1) || s.EventID != schemas.SampleID("n1", s.BootID, s.Number) ||
			s.Cores < 1 || s.IntervalSeconds < 0.05 {
			t.Errorf("sample %d = %+v, want consecutive numbers and a matching identity", i, s)
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
	if values["courier_collector_published_samples_total"] < 3 ||
		values["courier_collector_cpu_seconds_total"] <= 0 ||
		values["courier_collector_resident_bytes"] < 1<<20 {
		t.Errorf("metrics = %v, want samples, CPU time and memory", values)
	}
}

// Numbers continue after a restart, because they are part of a sample's identity.
func TestCollector_ContinuesNumbersAfterARestart(t *testing.T) {
	requireLinux(t)
	b := bustest.New(t)
	for run := range 2 {
		stop := start(t, b, collector.Options{Node: "n1", Interval: interval}, quiet, nil)
		samples(t, b, "n1", 2*(run+1))
		must(t, stop())
	}
	for i, s := range samples(t, b, "n1", 4) {
		if s.Number != uint64(i+1) {
			t.Errorf("sample %d has number %d, want %d", i, s.Number, i+1)
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
	c, err := collector.New(b, collector.Options{Node: "n1", Interval: interval}, quiet, nil)
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
	if got := samples(t, b, "n1", 2)[1]; got.Number != 1 || got.BootID == "before-the-reboot" {
		t.Errorf("sample = %+v, want the first of this boot", got)
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
	text := bustest.NewBuffer()
	b := server.Connect(t)
	stop := start(t, b, o, slog.New(slog.NewTextHandler(text, nil)), nil)
	taken := samples(t, b, "n1", 1)
	server.Stop()
	text.Await(t, "node samples not published")
	waiting := filepath.Join(o.SpoolDir, "samples-n1", "00000000000000000001.samples")
	awaitFile(t, waiting, fmt.Sprintf("%s/%d\"", taken[0].BootID, taken[0].Number+4))
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
	for i, s := range all {
		if s.Number != uint64(i+1) || i > 0 && !s.At.After(all[i-1].At) {
			t.Errorf(
				"sample %d has number %d and timestamp %s, want each number once, in order, with "+
					"its own timestamp", i, s.Number, s.At)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(o.SpoolDir, "*", "*.samples")); len(left) > 0 {
		t.Errorf("spool holds %v, want nothing", left)
	}
}

// A collector that starts while NATS is unreachable takes samples without knowing the last number.
func TestCollector_SamplesBeforeNATSIsReachable(t *testing.T) {
	requireLinux(t)
	server := bustest.NewServer(t)
	b := server.Connect(t)
	o := collector.Options{Node: "n1", Interval: interval}
	stop := start(t, b, o, quiet, nil)
	samples(t, b, "n1", 2)
	must(t, stop())
	server.Stop()
	text := bustest.NewBuffer()
	begin := time.Now()
	stop = start(t, b, o, slog.New(slog.NewTextHandler(text, nil)), nil)
	text.Await(t, "node samples not published")
	back := time.Now()
	server.Restart(t)
	all := samples(t, b, "n1", 6)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if first := all[2]; !first.At.After(begin) || !first.At.Before(back) {
		t.Errorf("the first sample has the timestamp %s, want one between %s and %s", first.At, begin, back)
	}
	if n := strings.Count(text.String(), "node samples not published"); n != 1 {
		t.Errorf("%d messages about the outage, want one:\n%s", n, text)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Number <= all[i-1].Number || !all[i].At.After(all[i-1].At) {
			t.Errorf("sample %d: number %d at %s after number %d at %s, want both to increase",
				i, all[i].Number, all[i].At, all[i-1].Number, all[i-1].At)
		}
	}
}

// Waiting samples are not published before the name check.
func TestCollector_RejectsATakenNameAfterAnOutage(t *testing.T) {
	requireLinux(t)
	server := bustest.NewServer(t)
	b := server.Connect(t)
	publishOther(t, b, "another-machine", 600)
	server.Stop()
	text := bustest.NewBuffer()
	c, err := collector.New(b, collector.Options{
		Node:     "n1",
		Interval: interval,
	}, slog.New(slog.NewTextHandler(text, nil)), nil)
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(t.Context()) }()
	text.Await(t, "node samples not published")
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
	waitForEvents(t, b, schemas.JobSubject("left", "*"), 3)
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
