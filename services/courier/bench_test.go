package main

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/services/local"
)

// BenchmarkAll measures courier all in a separate process with the installed engine: the seconds
// until it answers a request (s/ready) and SQL is available (s/sql), and the resident memory of the
// program, the trainer and the engine without load (MB/idle; shared pages count for each).
func BenchmarkAll(b *testing.B) {
	library := testLibrary(b)
	if library == "" {
		b.Skip("no ClickHouse engine")
	}
	var ready, sql, idle float64
	n := 0.0
	for b.Loop() {
		dir := b.TempDir()
		cmd := exec.Command(program(b), "all", "--data", dir, "--nats-port=0", "--http-port=0",
			"--clickhouse-http-port=0", "--clickhouse-tcp-port=0", "--engine-library", library)
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		e := awaitEndpoints(b, dir, func(e local.Endpoints) bool { return e.NATSURL != "" })
		awaitAnswer(b, e.NATSURL)
		ready += time.Since(begin).Seconds()
		awaitEndpoints(b, dir, func(e local.Endpoints) bool { return e.ClickHouseHTTPURL != "" })
		sql += time.Since(begin).Seconds()
		wait := time.NewTimer(6 * time.Second) // includes three samples of the node
		<-wait.C
		idle += residentMB(b, cmd.Process.Pid)
		n++
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(ready/n, "s/ready")
	b.ReportMetric(sql/n, "s/sql")
	b.ReportMetric(idle/n, "MB/idle")
}

func awaitEndpoints(t testing.TB, dir string, ok func(local.Endpoints) bool) (e local.Endpoints) {
	t.Helper()
	await(t, "endpoints", func() bool {
		var err error
		e, err = local.ReadEndpoints(dir)
		return err == nil && ok(e)
	})
	return e
}

// awaitAnswer waits until the advisor answers.
func awaitAnswer(t testing.TB, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	b, err := bus.Connect(ctx, bus.Options{URL: url}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeBus(b)
	await(t, "the advisor", func() bool {
		var l schemas.JobList
		return b.Request(ctx, schemas.SubjectJobList, &schemas.JobListRequest{}, &l) == nil
	})
}

// residentMB returns the resident memory of a process and its children.
func residentMB(t testing.TB, pid int) float64 {
	t.Helper()
	sum := 0.0
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) == 0 {
		t.Skip("this system has no /proc")
	}
	var children []byte
	for _, name := range tasks { // children are listed by the thread that started them
		c, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		children = append(append(children, c...), ' ')
	}
	for _, id := range append([]string{strconv.Itoa(pid)}, strings.Fields(string(children))...) {
		status, err := os.ReadFile("/proc/" + id + "/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += kilobytes / 1024
	}
	return sum
}
