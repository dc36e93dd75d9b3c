package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// BenchmarkCollectorProcess measures a released courier collector in a separate process for a
// minute at the default interval, after its start. It reports the ratio of one core (limit 0.005),
// the resident memory at the end, and the highest one (limit 30 MB).
func BenchmarkCollectorProcess(b *testing.B) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		b.Skip("measuring a process requires /proc")
	}
	program := filepath.Join(b.TempDir(), "courier")
	build := exec.Command("go", "build", "-o", program, "courier/services/courier")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	server := bustest.NewServer(b)
	log := server.Connect(b)
	var cores, resident, highest float64
	n := 0.0
	for b.Loop() {
		node := fmt.Sprintf("bench-%.0f", n)
		cmd := exec.Command(program, "collector", "--nats-url", server.URL(), "--node", node)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		awaitSamples(b, log, node, 3)
		begin, before := time.Now(), processSeconds(b, cmd.Process.Pid)
		minute := time.NewTimer(time.Minute)
		<-minute.C
		cores += (processSeconds(b, cmd.Process.Pid) - before) / time.Since(begin).Seconds()
		resident += statusMB(b, cmd.Process.Pid, "VmRSS")
		highest = max(highest, statusMB(b, cmd.Process.Pid, "VmHWM"))
		n++
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(cores/n, "core-ratio")
	b.ReportMetric(resident/n, "MB/resident")
	b.ReportMetric(highest, "MB/highest")
}

// awaitSamples waits until the log has the given number of samples of a node.
func awaitSamples(b *testing.B, log *bus.Bus, node string, want int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	got := 0
	_ = log.Follow(ctx, bus.FollowOptions{
		Stream:   schemas.StreamNode,
		Subjects: []string{schemas.NodeSubject(node, schemas.EventSample)},
	}, func(bus.Record) error {
		if got++; got == want {
			cancel()
		}
		return nil
	})
	if got < want {
		b.Fatalf("%d samples of %s, want %d", got, node, want)
	}
}

// processSeconds returns the CPU time of all threads of a process, to the nanosecond.
func processSeconds(b *testing.B, pid int) (seconds float64) {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		b.Fatalf("threads of %d: %v, %v", pid, threads, err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		nanoseconds, err := strconv.ParseFloat(string(bytes.Fields(text)[0]), 64)
		if err != nil {
			b.Fatal(err)
		}
		seconds += nanoseconds / 1e9
	}
	return seconds
}

// statusMB returns an entry of /proc/<pid>/status in megabytes.
func statusMB(b *testing.B, pid int, entry string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, entry+":"); found {
			kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kilobytes * 1024 / 1e6
		}
	}
	b.Fatalf("no %s of %d", entry, pid)
	return 0
}
