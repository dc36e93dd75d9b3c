package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/collector"
	"courier/runner"
	"courier/schemas"
	"courier/services/local"
	"courier/spool"
	"courier/store"
	"courier/store/storetest"
)

// child is a service in a separate process that can be killed and restarted.
type child struct {
	t    testing.TB
	args []string
	cmd  *exec.Cmd
	log  *os.File
}

func spawn(t testing.TB, args ...string) *child {
	t.Helper()
	c := &child{t: t, args: append(args, "--log-level", "info")}
	var err error
	if c.log, err = os.Create(filepath.Join(t.TempDir(), args[0]+".log")); err != nil {
		t.Fatal(err)
	}
	c.start()
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			_, _ = c.log.Seek(0, io.SeekStart) // only for the report
			text, _ := io.ReadAll(c.log)
			t.Logf("%s:\n%s", args[0], text)
		}
		_ = c.log.Close() // only for the report
	})
	return c
}

func (c *child) start() {
	c.t.Helper()
	c.cmd = exec.Command(program(c.t), c.args...)
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
}

// kill kills the process with SIGKILL.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended already; the log has the reason
	_ = c.cmd.Wait()         // the status is that of the kill
}

// After a crash, courier all has the addresses that running jobs know, also those of free ports.
func TestRestart_KeepsTheAddresses(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	all := spawn(t, "all", "--data", data, "--engine", "off", "--nats-port", "0", "--http-port", "0")
	var first local.Endpoints
	isReady := func() bool {
		response, err := http.Get(first.HTTPURL + "/readyz")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}
	await(t, "the first start", func() bool {
		var err error
		first, err = local.ReadEndpoints(data)
		return err == nil && isReady()
	})
	all.kill()
	all.start()
	await(t, "the gateway at its address", isReady)
	await(t, "the file of the addresses", func() bool {
		next, err := local.ReadEndpoints(data)
		return err == nil && next == first
	})
}

// Each part is killed, then stands still for a while, and NATS is stopped. Afterwards the log has every
// event of every job once, the tables equal the log, and the advisor has recorded the end of every job.
func TestRestart_EachPartKilledMidwayLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	clickhouse := storetest.NewServer(t)
	address := clickhouse.Address(t)
	server := bustest.NewServer(t)
	b := server.Connect(t)
	nats := "--nats-url=" + server.URL()
	parts := []*child{
		spawn(t, "collector", nats, "--interval=200ms", "--node=node-a"),
		spawn(t, "trainer", nats, "--new-epochs=20", "--clickhouse-url="+address),
		spawn(t, "store", nats, "--clickhouse-url="+address, "--batch-age=50ms"),
		spawn(t, "gateway", nats, "--http-address=127.0.0.1:0"),
		spawn(t, "advisor", nats),
	}
	await(t, "the advisor", func() bool {
		var l schemas.JobList
		return b.Request(within(t, oneTry), schemas.SubjectJobList, &schemas.JobListRequest{}, &l) == nil
	})

	// Two jobs run at a time while the parts are killed.
	spoolDir := filepath.Join(t.TempDir(), "spool")
	stop, done := make(chan struct{}), make(chan []string, 2)
	for lane := range 2 {
		go func() { done <- runJobs(t, b, spoolDir, lane, stop) }()
	}
	awaitMore := func(what string, more int) {
		t.Helper()
		soFar := seen(t, b)
		await(t, "more events "+what, func() bool { return seen(t, b) > soFar+more })
	}
	for _, c := range parts {
		c.kill()
		c.start()
		awaitMore("after "+c.args[0]+" was killed", 15)
	}
	clickhouse.Kill(t)
	awaitMore("after ClickHouse was killed", 15)
	for what, p := range map[string]*os.Process{
		"the store": parts[2].cmd.Process, "the advisor": parts[4].cmd.Process, "ClickHouse": clickhouse.Process(t),
	} {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		awaitMore("while "+what+" stands still", 10)
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop()
	server.Restart(t)
	awaitMore("after the outage of NATS", 15)
	close(stop)
	jobs := append(<-done, <-done...)
	if _, err := spool.Replay(within(t, patience), spoolDir, b, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	checkLog(t, b, jobs)
	await(t, "the end of every job in the advisor", func() bool {
		var l schemas.JobList
		err := b.Request(within(t, oneTry), schemas.SubjectJobList, &schemas.JobListRequest{
			State: "finished",
			Limit: schemas.MaxPage,
		}, &l)
		return err == nil && len(l.Jobs) == len(jobs)
	})
	checkTables(t, b, storetest.Open(t, address))
}

const restartEpochs = 5

// runJobs runs short jobs one after another until stop, and returns their IDs.
func runJobs(t *testing.T, b *bus.Bus, spoolDir string, lane int, stop chan struct{}) []string {
	program := program(t)
	var jobs []string
	for n := 0; ; n++ {
		select {
		case <-stop:
			return jobs
		default:
		}
		var output bytes.Buffer
		q := schemas.JobRequest{
			JobID: fmt.Sprintf("lane%d-%d", lane, n), Model: digitsModel, CPUs: schemas.CPUs{1},
			BatchSizes: []int{4, 8, 16, 32, 64}, Epochs: restartEpochs, Nodes: []string{"node-a"},
		}
		r, err := runner.Run(t.Context(), runner.Options{
			Observer:  collector.NewObserver(slog.New(slog.DiscardHandler)),
			Request:   q,
			Node:      "node-a",
			BatchSize: q.BatchSizes[n%len(q.BatchSizes)],
			NoPTY:     true,
			SpoolDir:  spoolDir,
			Stdout:    &output,
			Stderr:    &output,
			Patience:  time.Second,
			Command: []string{
				program, "workload", "digits", "--batch-size", "{batch}", "--cpus", "{cpus}",
				"--epochs", "{epochs}", "--augment", "1",
			},
			Connect: func(context.Context) (*bus.Bus, error) { return b, nil },
		}, slog.New(slog.DiscardHandler))
		if err != nil || r.ExitCode != 0 || len(r.Epochs) != restartEpochs {
			t.Errorf("job %s: exit code %d, %d epochs, error %v; want 0 and all epochs\n%s",
				q.JobID, r.ExitCode, len(r.Epochs),
				err, output.String())
			return jobs
		}
		jobs = append(jobs, r.JobID)
	}
}

// seen returns the number of events of jobs in the log.
func seen(t *testing.T, b *bus.Bus) int {
	n := 0
	for _, events := range readLog(t, b) {
		n += len(events)
	}
	return n
}

// readLog returns the distinct event IDs of jobs, regressors and advice by table.
func readLog(t *testing.T, b *bus.Bus) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, stream := range []string{schemas.StreamJob, schemas.StreamRegressor, schemas.StreamAdvice} {
		o := bus.FollowOptions{Stream: stream}
		err := b.Read(within(t, patience), o, func(r bus.Record) error {
			table, _, ok := schemas.RowOf(r.Event)
			if ok && all[table] == nil {
				all[table] = map[string]bool{}
			}
			if ok {
				all[table][r.Event.ID()] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// checkLog compares the log with the jobs that ran.
func checkLog(t *testing.T, b *bus.Bus, jobs []string) {
	t.Helper()
	if len(jobs) < 6 {
		t.Errorf("%d jobs have run, want at least 6", len(jobs))
	}
	log := readLog(t, b)
	runs := map[string]bool{} // Each job runs once in this test.
	for id := range log["job_started"] {
		runs[id[:len(id)-len("/started")]] = true
	}
	if len(runs) != len(jobs) {
		t.Errorf("%d jobs with a started event, want %d", len(runs), len(jobs))
	}
	for run := range runs {
		for epoch := 1; epoch <= restartEpochs; epoch++ {
			if id := fmt.Sprintf("%s/%d", run, epoch); !log["job_epoch"][id] {
				t.Errorf("the log lost %s", id)
			}
		}
		if id := run + "/" + schemas.EventFinished; !log["job_ended"][id] {
			t.Errorf("the log lost %s", id)
		}
	}
}

// checkTables waits until the tables have as many events as the log, and then compares the IDs.
func checkTables(t *testing.T, b *bus.Bus, d *store.Database) {
	t.Helper()
	for table, ids := range readLog(t, b) {
		var rows []struct {
			ID string `ch:"event_id"`
		}
		await(t, "all rows of "+table, func() bool {
			rows = rows[:0]
			return d.Query(within(t, oneTry), &rows, "SELECT event_id FROM "+table) == nil &&
				len(rows) >= len(ids)
		})
		times := map[string]int{}
		for _, r := range rows {
			if times[r.ID]++; times[r.ID] > 1 {
				t.Errorf("table %s has the event %s %d times, want once", table, r.ID, times[r.ID])
			}
		}
		for id := range ids {
			if times[id] == 0 {
				t.Errorf("%s lacks %s", table, id)
			}
		}
	}
}

// one returns the single number of a query.
func one(t *testing.T, d *store.Database, sql string) uint64 {
	t.Helper()
	n, err := count(t, d, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// count returns the single number of a query, a column n.
func count(t testing.TB, d *store.Database, sql string) (uint64, error) {
	t.Helper()
	var rows []struct {
		N uint64 `ch:"n"`
	}
	if err := d.Query(within(t, oneTry), &rows, sql); err != nil {
		return 0, err
	}
	return rows[0].N, nil
}
