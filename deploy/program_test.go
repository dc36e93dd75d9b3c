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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/store/storetest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// programs are built once: courier as in the image, without the embedded engine, and nats-server
// from the module in go.mod.
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

// courier runs courier and returns its output.
func courier(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path := program(t, "courier") // built before the timeout starts
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	return string(out), err
}

// flagsOf returns the help of a command, which checks its arguments, and that of the flags that
// several commands have.
func flagsOf(t *testing.T, args []string) (string, error) {
	t.Helper()
	own, err := courier(t, append(slices.Clone(args), "--help")...)
	if err != nil {
		return own, err
	}
	shared, err := courier(t, "help", "flags")
	return own + shared, err
}

// machine runs the services of docker-compose.yml as local processes. Instead of an address of its
// own, each has a port of its own.
type machine struct {
	composition
	nats  []string // addresses of the NATS servers
	spool string
}

// address returns a local address with a free port.
func address(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(storetest.FreePort(t)))
}

// localAddresses replaces the addresses of NATS and of the health check in the configuration of
// a service by local ones.
func (m *machine) localAddresses(t *testing.T, s *service) *strings.Replacer {
	t.Helper()
	pairs := []string{"nats://nats1:4222,nats://nats2:4222,nats://nats3:4222", m.natsURL()}
	if s.Healthcheck != nil {
		u, err := url.Parse(s.Healthcheck.Test[len(s.Healthcheck.Test)-1])
		if err != nil {
			t.Fatal(err)
		}
		at := address(t)
		pairs = append(pairs, "127.0.0.1:"+u.Port(), at, ":"+u.Port(), at)
	}
	return strings.NewReplacer(pairs...)
}

// natsURL returns the URL of the NATS servers for clients.
func (m *machine) natsURL() string { return "nats://" + strings.Join(m.nats, ",nats://") }

// command returns the command of a service, and a function that runs its health check.
func (m *machine) command(t *testing.T, s *service) (c *exec.Cmd, healthy func() error) {
	t.Helper()
	local := m.localAddresses(t, s)
	var args []string
	for _, arg := range s.Command {
		if arg = local.Replace(arg); arg == "/courier" {
			arg = program(t, "courier")
		}
		args = append(args, arg)
	}
	c = exec.CommandContext(context.WithoutCancel(t.Context()), program(t, "courier"), args...)
	c.Env = []string{"HOME=" + t.TempDir(), "COURIER_SPOOL_DIR=" + m.spool}
	for _, key := range slices.Sorted(maps.Keys(s.Environment)) {
		c.Env = append(c.Env, key+"="+local.Replace(s.Environment[key]))
	}
	return c, func() error {
		if test := s.Healthcheck.Test; !slices.Equal(test[:3], []string{
			"CMD", "/courier", "health",
		}) {
			return fmt.Errorf("health check %q, want courier health", test)
		}
		_, err := courier(t, "health", local.Replace(s.Healthcheck.Test[3]))
		return err
	}
}

// start runs a command until the test ends. It must then end without error after an interrupt.
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
				t.Errorf("%s: exit %v:\n%s", name, err, output.String())
			}
		case <-time.After(patience):
			_ = c.Process.Kill() // reported below
			<-ended
			t.Errorf("%s does not stop:\n%s", name, output.String())
		}
	})
	awaitHealthy(t, name, healthy, ended)
}

// awaitHealthy waits until a service is healthy. It fails if its process has ended, which ended
// reports if it is not nil.
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

// startNATS runs the three NATS servers with the configuration of their containers, and with
// their own ports and directories.
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
		local := strings.NewReplacer("0.0.0.0:4222", m.nats[i], "127.0.0.1:8222", address(t), "0.0.0.0:6222",
			routes[name], " /data\n", " "+t.TempDir()+"\n",
			"nats1:6222", routes["nats1"], "nats2:6222", routes["nats2"], "nats3:6222", routes["nats3"])
		dir := t.TempDir()
		config := filepath.Join(dir, "nats.conf")
		for _, part := range []string{"nats.conf", "cluster.conf"} {
			if err := os.WriteFile(filepath.Join(dir, part),
				[]byte(local.Replace(read(t, "deploy/nats/"+part))), 0o600); err != nil {
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
				local.Replace(s.Healthcheck.Test[len(s.Healthcheck.Test)-1]))
			return err
		}
	}
	for _, name := range names { // a server is healthy only if two of them run
		awaitHealthy(t, name, healths[name], nil)
	}
}

// The services run without containers and without ClickHouse. Each starts in the order of
// depends_on, becomes healthy, and stops. The worker's job gets advice, runs and finishes.
func TestCompose_RunsAJob(t *testing.T) {
	m := &machine{composition: compose(t), spool: t.TempDir()}
	m.startNATS(t)
	m.createWithOneReplica(t)
	names, err := order(m.composition)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s := m.Services[name]
		if !s.runsCourier() || name == "worker" || name == "store" { // the store needs ClickHouse
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
	worker.Environment["COURIER_EPOCHS"] = "2" // a short job
	c, _ := m.command(t, worker)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("the worker's job: %v\n%s", err, out)
	}
	m.awaitJob(t)
	m.checkReplicas(t, 3)
}

// createWithOneReplica creates the streams and buckets by a service that requires one replica, as
// in a cluster with a single NATS server.
func (m *machine) createWithOneReplica(t *testing.T) {
	t.Helper()
	s := *m.Services["trainer"]
	s.Environment = maps.Clone(s.Environment)
	delete(s.Environment, "COURIER_CLICKHOUSE_URL")
	s.Environment["COURIER_NATS_REPLICAS"] = "1"
	c, healthy := m.command(t, &s)
	start(t, "trainer with one replica", c, healthy)
	m.checkReplicas(t, 1)
}

// checkReplicas reports streams and buckets that have another number of replicas.
func (m *machine) checkReplicas(t *testing.T, want int) {
	t.Helper()
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
		if s.Config.Replicas != want {
			t.Errorf("%s has %d replicas, want %d", s.Config.Name, s.Config.Replicas, want)
		}
	}
	if list.Err() != nil || seen < 9 {
		t.Errorf("%d streams and buckets, want 9 (%v)", seen, list.Err())
	}
}

// awaitJob waits until the only job has finished.
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
			t.Fatalf("jobs: %v\n%s\nwant one finished job with two epochs", err, out)
		}
	}
}
