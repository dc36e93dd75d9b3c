package collector

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/spool"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/node_exporter/collector"
	"golang.org/x/sys/unix"
)

// BenchmarkCollector_Sample measures the CPU time of a sample: reading the counters, making the
// sample, and publishing it to a server in another process until the acknowledgement. For
// comparison, node_exporter gathers the metrics of the same collectors. The target is at most 1.2
// times its CPU time. Both include their garbage collection.
func BenchmarkCollector_Sample(b *testing.B) {
	server := separateServer(b)
	c, err := New(server, Options{
		Node:              "bench",
		SpoolDir:          b.TempDir(),
		SamplesPerMessage: spool.MaxSampleBatch, // the benchmark publishes them itself
	}, quiet, nil)
	must(b, err)
	bare, err := collector.NewNodeCollector(slog.New(slog.DiscardHandler), sampleCollectors...)
	must(b, err)
	exporter := prometheus.NewRegistry()
	exporter.MustRegister(bare)
	before := c.read()
	const block = 25
	var gathering, sampling float64
	for b.Loop() {
		gathering += cpuOf(func() {
			for range block {
				if _, err := exporter.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
		sampling += cpuOf(func() {
			for range block {
				after := c.read()
				s, ok := sampleBetween(before, after)
				if !ok {
					b.Fatal("no sample")
				}
				c.enqueue(&s)
				c.message = nil
				if _, err := server.Publish(b.Context(), &s); err != nil {
					b.Fatal(err)
				}
				before = after
			}
		})
	}
	perSample := sampling / float64(b.N) / block
	b.ReportMetric(perSample*1e9, "cpu-ns/sample")
	b.ReportMetric(gathering/float64(b.N)/block*1e9, "cpu-ns/gather")
	b.ReportMetric(sampling/gathering, "times-gather")
	b.ReportMetric(perSample/defaultInterval.Seconds(), "core-ratio")
}

// cpuOf returns the CPU time of work in seconds, including its garbage collection.
func cpuOf(work func()) float64 {
	begin := processCPUTime()
	work()
	runtime.GC()
	return (processCPUTime() - begin).Seconds()
}

func processCPUTime() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0 // it cannot fail for this process
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// separateServer connects to a NATS server in another process.
func separateServer(b *testing.B) *bus.Bus {
	b.Helper()
	cmd := exec.Command(os.Args[0], "--nats-server", b.TempDir())
	input, err := cmd.StdinPipe()
	must(b, err)
	output, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() { _, _ = input.Close(), cmd.Wait() })
	address, err := bufio.NewReader(output).ReadString('\n')
	must(b, err)
	c, err := bus.Connect(b.Context(), bus.Options{
		URL:  strings.TrimSpace(address),
		Name: b.Name(),
	}, quiet, nil)
	must(b, err)
	b.Cleanup(func() { _ = c.Close(context.Background()) })
	must(b, c.Prepare(b.Context()))
	return c
}
