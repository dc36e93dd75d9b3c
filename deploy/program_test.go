package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// programs are built once, as the image has them: the services without the
// embedded engine, and NATS from the module that go.mod names.
var programs = struct {
	once sync.Once
	dir  string
	err  error
}{}

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(programs.dir) // a temporary directory
	os.Exit(status)
}

// program returns the path of a program.
func program(t *testing.T, name string) string {
	t.Helper()
	programs.once.Do(func() {
		if programs.dir, programs.err = os.MkdirTemp("", "courier-deploy-"); programs.err == nil {
			programs.err = errors.Join(build(programs.dir, "courier", "courier/services/courier"),
				build(programs.dir, "nats-server", "github.com/nats-io/nats-server/v2"))
		}
	})
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return filepath.Join(programs.dir, name)
}

func build(dir, name, from string) error {
	out, err := exec.Command("go", "build", "-tags", "noengine", "-o", filepath.Join(dir, name),
		from).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", from, err, out)
	}
	return nil
}

// patience is how long a test waits for a condition. It only guards against hanging.
const patience = 5 * time.Minute

// courier runs the program and returns what it printed.
func courier(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path := program(t, "courier") // built before the time runs
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	return string(out), err
}

// machine runs services of the composition as processes of this machine: each
// has its own port where it has its own address in a container.
type machine struct {
	composition
	nats  []string // addresses of the servers of NATS
	spool string
}

// address returns one of this machine that was free just now.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// here rewrites the words of a service for this machine: the program, NATS, and
// the port that its health check asks.
func (m *machine) here(t *testing.T, s *service) *strings.Replacer {
	t.Helper()
	words := []string{"nats://nats1:4222,nats://nats2:4222,nats://nats3:4222", m.natsURL()}
	if s.Healthcheck != nil {
		u, err := url.Parse(s.Healthcheck.Test[len(s.Healthcheck.Test)-1])
		if err != nil {
			t.Fatal(err)
		}
		at := address(t)
		words = append(words, "127.0.0.1:"+u.Port(), at, ":"+u.Port(), at)
	}
	return strings.NewReplacer(words...)
}

// natsURL is how a client names the servers of NATS.
func (m *machine) natsURL() string { return "nats://" + strings.Join(m.nats, ",nats://") }

// command is a service's, and healthy asks as its container would.
func (m *machine) command(t *testing.T, s *service) (c *exec.Cmd, healthy func() error) {
	t.Helper()
	here := m.here(t, s)
	var args []string
	for _, arg := range s.Command {
		if arg = here.Replace(arg); arg == "/courier" {
			arg = program(t, "courier")
		}
		args = append(args, arg)
	}
	c = exec.CommandContext(context.WithoutCancel(t.Context()), program(t, "courier"), args...)
	c.Env = []string{"HOME=" + t.TempDir(), "COURIER_SPOOL_DIR=" + m.spool}
	for _, key := range slices.Sorted(maps.Keys(s.Environment)) {
		c.Env = append(c.Env, key+"="+here.Replace(s.Environment[key]))
	}
	return c, func() error {
		if test := s.Healthcheck.Test; !slices.Equal(test[:3], []string{
			"CMD", "/courier", "health",
		}) {
			return fmt.Errorf("the health check is %q", test)
		}
		_, err := courier(t, "health", here.Replace(s.Healthcheck.Test[3]))
		return err
	}
}

// start runs a command until the test ends, then interrupts it: it must end well.
func start(t *testing.T, name string, c *exec.Cmd, healthy func() error) {
	t.Helper()
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt) // it may have ended
		select {
		case err := <-ended:
			if err != nil || t.Failed() {
				t.Errorf("%s ended with %v:\n%s", name, err, output.String())
			}
		case <-time.After(patience):
			_ = c.Process.Kill() // reported below
			<-ended
			t.Errorf("%s does not stop:\n%s", name, output.String())
		}
	})
	awaitHealthy(t, name, healthy, ended)
}

// awaitHealthy waits until a service is healthy; ended tells, if it is not nil, that its
// process has ended.
func awaitHealthy(t *testing.T, name string, healthy func() error, ended chan error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for err := healthy(); err != nil; err = healthy() {
		select {
		case <-tick.C:
		case status := <-ended:
			ended <- status
			t.Fatalf("%s ended before it was healthy", name)
		case <-deadline:
			t.Fatalf("%s is not healthy: %v", name, err)
		}
	}
}

// startNATS runs the three servers with the configuration of their containers, but
// ports and directories of their own.
func (m *machine) startNATS(t *testing.T) {
	t.Helper()
	names := []string{"nats1", "nats2", "nats3"}
	routes := map[string]string{}
	for _, name := range names {
		m.nats = append(m.nats, address(t))
		routes[name] = address(t)
	}
	healths := map[string]func() error{}
	for i, name := range names {
		s := m.Services[name]
		if want := []string{
			"nats-server", "--config", "/etc/courier/nats/nats.conf",
		}; !slices.Equal(s.Command, want) {
			t.Fatalf("%s is started by %q, want %q", name, s.Command, want)
		}
		if want := []string{
			"./deploy/nats:/etc/courier/nats:ro", name + "-data:/data",
		}; !slices.Equal(s.Volumes, want) {
			t.Fatalf("%s has the volumes %q, want %q", name, s.Volumes, want)
		}
		here := strings.NewReplacer("0.0.0.0:4222", m.nats[i], "127.0.0.1:8222", address(t), "0.0.0.0:6222",
			routes[name], " /data\n", " "+t.TempDir()+"\n",
			"nats1:6222", routes["nats1"], "nats2:6222", routes["nats2"], "nats3:6222", routes["nats3"])
		dir := t.TempDir()
		config := filepath.Join(dir, "nats.conf")
		for _, part := range []string{"nats.conf", "cluster.conf"} {
			if err := os.WriteFile(filepath.Join(dir, part),
				[]byte(here.Replace(read(t, "deploy/nats/"+part))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.CommandContext(context.WithoutCancel(t.Context()), program(t, "nats-server"),
			"--config", config)
		for key, value := range s.Environment {
			c.Env = append(c.Env, key+"="+value)
		}
		start(t, name, c, func() error { return nil })
		healths[name] = func() error {
			_, err := courier(t, "health",
				here.Replace(s.Healthcheck.Test[len(s.Healthcheck.Test)-1]))
			return err
		}
	}
	for _, name := range names { // none is before two of them run
		awaitHealthy(t, name, healths[name], nil)
	}
}

// The composition without its containers and its ClickHouse: every service starts
// in order, becomes healthy as its check says, and stops; the worker's job is
// advised, runs and is known as finished.
func TestCompose_RunsAJob(t *testing.T) {
	m := &machine{composition: compose(t), spool: t.TempDir()}
	m.startNATS(t)
	m.keepOnce(t)
	names, err := order(m.composition)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s := m.Services[name]
		if !s.ours() || name == "worker" || name == "store" { // the store has nothing to write to
			continue
		}
		if name == "trainer" {
			delete(s.Environment, "COURIER_CLICKHOUSE_URL") // the trainer reads its examples from the log
		}
		for range max(s.Scale, 1) {
			c, healthy := m.command(t, s)
			start(t, name, c, healthy)
		}
	}
	worker := m.Services["worker"]
	worker.Environment["COURIER_EPOCHS"] = "2" // shorter, but for real
	c, _ := m.command(t, worker)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("the worker's job: %v\n%s", err, out)
	}
	m.awaitJob(t)
	m.keepsThrice(t)
}

// keepOnce makes the streams and buckets as a cluster has them that had one server of
// NATS until now, by a service that asks for no more.
func (m *machine) keepOnce(t *testing.T) {
	t.Helper()
	s := *m.Services["trainer"]
	s.Environment = maps.Clone(s.Environment)
	delete(s.Environment, "COURIER_CLICKHOUSE_URL")
	s.Environment["COURIER_NATS_REPLICAS"] = "1"
	c, healthy := m.command(t, &s)
	start(t, "trainer of before", c, healthy)
	if out, err := courier(t, "streams", "--nats-url", m.natsURL(), "--nats-replicas", "3"); err == nil ||
		!strings.Contains(out, "replicas is 1, want at least 3") {
		t.Errorf("streams that one server keeps: %v\n%s", err, out)
	}
}

// keepsThrice reports every stream, those of the buckets among them, that not all three
// servers of NATS keep by now.
func (m *machine) keepsThrice(t *testing.T) {
	t.Helper()
	if out, err := courier(t, "streams", "--nats-url", m.natsURL(), "--nats-replicas", "3"); err != nil {
		t.Errorf("the streams are not kept by three servers: %v\n%s", err, out)
	}
	nc, err := nats.Connect(m.natsURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := 0
	list := js.ListStreams(ctx)
	for s := range list.Info() {
		seen++
		if s.Config.Replicas != 3 {
			t.Errorf("%s is kept by %d servers", s.Config.Name, s.Config.Replicas)
		}
	}
	if list.Err() != nil || seen < 9 {
		t.Errorf("%d streams and buckets, want 9 (%v)", seen, list.Err())
	}
}

// awaitJob waits until the one job is known as finished.
func (m *machine) awaitJob(t *testing.T) {
	t.Helper()
	type list struct {
		Jobs []struct {
			State      string `json:"state"`
			EpochsDone int    `json:"epochs_done"`
		} `json:"jobs"`
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		out, err := courier(t, "jobs", "--nats-url", m.natsURL(), "--output", "json")
		var l list
		if err == nil {
			err = json.Unmarshal([]byte(out), &l)
		}
		if err == nil && len(l.Jobs) == 1 && l.Jobs[0].State == "finished" &&
			l.Jobs[0].EpochsDone == 2 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("jobs: %v\n%s\nwant one that finished two epochs", err, out)
		}
	}
}
