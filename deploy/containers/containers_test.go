package containers_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// requireDocker skips the test unless containers are requested and Docker is available.
func requireDocker(t *testing.T) {
	t.Helper()
	if os.Getenv("COURIER_CONTAINERS") == "" {
		t.Skip("set COURIER_CONTAINERS=1 to run the tests in containers")
	}
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: NO DOCKER ENGINE: %v\n%s", err, out)
	}
}

// jobRequest is the job request of the load.
var jobRequest = object{
	"model":       "digits-mlp",
	"cpus":        []int{1, 2},
	"batch_sizes": []int{8, 32, 128},
	"epochs":      10,
	"slo":         "20s",
}

func TestCluster(t *testing.T) {
	requireDocker(t)
	buildImages(t)
	c := newCluster(t)
	if os.Getenv("COURIER_CONTAINERS") != "keep" {
		t.Cleanup(func() { c.down(t) })
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.logs(t)
		}
	})
	var damaged, rolled *load
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"start", func(t *testing.T) { c.up(t, 30*time.Second) }},
		{"jobs", c.checkJobs},
		{"damage", func(t *testing.T) { damaged = c.damage(t) }},
		{"replacement", func(t *testing.T) { rolled = c.roll(t) }},
		{"lost quorum", c.loseQuorum},
		{"tables", func(t *testing.T) { c.checkTables(t, damaged, rolled) }},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// requestRate returns the requests per second of the load.
func requestRate(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("COURIER_CONTAINERS_RATE"), "100"))
	if err != nil || n < 1 {
		t.Fatalf("COURIER_CONTAINERS_RATE: want a positive number of requests per second")
	}
	return n
}

// checkJobs waits until the workers' jobs are stored as finished.
func (c *composeCluster) checkJobs(t *testing.T) {
	t.Helper()
	took := await(t, time.Minute, "finished jobs of the workers in the tables", func() error {
		n, err := c.sql(t,
			"SELECT uniqExact(job_id) FROM jobs WHERE state = 'finished' AND epochs_done = 6")
		if err == nil && (n == "0" || n == "1") {
			err = fmt.Errorf("%s finished jobs", n)
		}
		return err
	})
	t.Logf("two finished jobs of the workers were stored after another %.1f s", took.Seconds())
	c.checkReplicas(t)
}

// jetStream returns a connection to the log, which the end of the test closes.
func (c *composeCluster) jetStream(t *testing.T) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(c.nats)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// checkReplicas reports streams and buckets that do not have three replicas.
func (c *composeCluster) checkReplicas(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	list := c.jetStream(t).ListStreams(ctx)
	for s := range list.Info() {
		if s.Config.Replicas != 3 {
			t.Errorf("%s has %d replicas, want 3", s.Config.Name, s.Config.Replicas)
		}
	}
	if list.Err() != nil {
		t.Error(list.Err())
	}
}

// checkDeadLetters reports events that a service could not read.
func (c *composeCluster) checkDeadLetters(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := c.jetStream(t).Stream(ctx, "DEAD")
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Msgs; n > 0 {
		t.Errorf("%d dead letters", n)
	}
}

// up starts all services from existing images. It measures the time to the first advice, which
// must not exceed longest.
func (c *composeCluster) up(t *testing.T, longest time.Duration) {
	t.Helper()
	begin := time.Now()
	first := make(chan time.Duration, 1)
	body := encode(t, jobRequest)
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if status, _, err := c.post("/api/v1/predict", body, 2*time.Second); err == nil &&
				status == 200 {
				first <- time.Since(begin)
				return
			}
			if time.Since(begin) > 2*time.Minute {
				return
			}
		}
	}()
	if out, err := c.compose("up", "--detach", "--no-build"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	select {
	case took := <-first:
		t.Logf("from docker-compose up to the first advice: %.1f s (want %s at most)",
			took.Seconds(), longest)
		if took > longest {
			t.Errorf("the first advice took %s, want at most %s", took, longest)
		}
	case <-time.After(time.Minute):
		t.Fatal("no advice within a minute")
	}
}
