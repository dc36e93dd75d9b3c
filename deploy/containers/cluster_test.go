package containers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// composeCluster is a running docker-compose.yml.
type composeCluster struct {
	project string   // name of the Compose project; differs from one that runs here already
	files   []string // of the composition
	tool    []string // command of Docker Compose
	env     []string
	page    string // address of the gateway
	nats    string // addresses of the three servers
	keys    *keys  // of the test as a client; nil: the cluster has no authentication
}

// newCluster returns a cluster that is ready to be started.
func newCluster(t *testing.T) *composeCluster {
	t.Helper()
	c := &composeCluster{
		project: "courier-test",
		files:   []string{"docker-compose.yml", "deploy/containers/compose.override.yml"},
	}
	c.prepare(t)
	return c
}

// prepare chooses the ports and the Compose command, and removes what a previous test left behind.
func (c *composeCluster) prepare(t *testing.T) {
	t.Helper()
	c.tool = []string{"docker-compose"}
	if exec.Command("docker", "compose", "version").Run() == nil {
		c.tool = []string{"docker", "compose"}
	}
	if named := os.Getenv("COURIER_COMPOSE"); named != "" {
		c.tool = strings.Fields(named)
	}
	var at []string
	for _, name := range []string{
		"COURIER_PORT", "COURIER_TEST_NATS1", "COURIER_TEST_NATS2", "COURIER_TEST_NATS3",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // after the loop, so that the ports differ
		at = append(at, l.Addr().String())
		c.env = append(c.env, fmt.Sprintf("%s=%d", name, l.Addr().(*net.TCPAddr).Port))
	}
	c.env = append(c.env, "COURIER_VERSION="+version, "COURIER_NETWORK="+c.project)
	c.page, c.nats = "http://"+at[0], "nats://"+strings.Join(at[1:], ",nats://")
	c.down(t)
}

func (c *composeCluster) compose(args ...string) (string, error) {
	words := append(slices.Clone(c.tool[1:]), "-p", c.project)
	for _, f := range c.files {
		words = append(words, "-f", f)
	}
	return run(root, c.env, c.tool[0], append(words, args...)...)
}

func (c *composeCluster) down(t *testing.T) {
	t.Helper()
	if out, err := c.compose("down", "--volumes", "--remove-orphans", "--timeout", "1"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// ids returns the container IDs of a service.
func (c *composeCluster) ids(t *testing.T, service string) []string {
	t.Helper()
	out := must(t, "docker", "ps", "--all", "--filter", "label=com.docker.compose.project="+
		c.project, "--filter", "label=com.docker.compose.service="+service,
		"--filter", "label=com.docker.compose.oneoff=False", "--no-trunc", "--format", "{{.ID}}")
	names := strings.Fields(out)
	if len(names) == 0 {
		t.Fatalf("no container of %s", service)
	}
	slices.Sort(names)
	return names
}

func (c *composeCluster) id(t *testing.T, service string) string { return c.ids(t, service)[0] }

// kill kills the processes of containers, like a crash. Docker does not restart a container that
// was killed by a command, so the test calls start.
func (c *composeCluster) kill(t *testing.T, ids ...string) {
	t.Helper()
	must(t, "docker", append([]string{"kill"}, ids...)...)
}

func (c *composeCluster) start(t *testing.T, ids ...string) {
	t.Helper()
	must(t, "docker", append([]string{"start"}, ids...)...)
	c.awaitHealth(t, ids...)
}

// awaitHealth waits until containers are healthy, or running if they have no health check. It
// runs the health checks itself and does not wait for their interval.
func (c *composeCluster) awaitHealth(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		var check []string
		if err := json.Unmarshal([]byte(must(t, "docker", "inspect", "--format",
			"{{if .Config.Healthcheck}}{{json .Config.Healthcheck.Test}}{{else}}[]{{end}}", id)),
			&check); err != nil {
			t.Fatal(err)
		}
		await(t, time.Minute, "health of "+id, func() error {
			if len(check) > 0 {
				_, err := run("", nil, "docker", append([]string{"exec", id}, check[1:]...)...)
				return err
			}
			state, err := run("", nil, "docker", "inspect", "--format", "{{.State.Status}}", id)
			if err == nil && state != "running" {
				err = errors.New(state)
			}
			return err
		})
	}
}

// await repeats check until it returns no error, and returns the time that this took.
func await(t *testing.T, longest time.Duration, what string, check func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(longest); ; {
		err := check()
		if err == nil {
			return time.Since(begin)
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("wait for %s: timeout after %s: %v", what, longest, err)
		}
	}
}

// post sends JSON to the gateway and returns the status and body of the answer.
func (c *composeCluster) post(
	path string, body []byte, longest time.Duration,
) (status int, answer []byte, err error) {
	q, err := http.NewRequest(http.MethodPost, c.page+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: longest}
	if c.keys != nil {
		q.Header.Set("Authorization", "Bearer "+c.keys.secret("worker.token"))
		client.Transport = c.keys.transport("127.0.0.1")
		defer client.CloseIdleConnections()
	}
	r, err := client.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer r.Body.Close()
	answer, err = io.ReadAll(r.Body)
	return r.StatusCode, answer, err
}

// sql runs a query as the read-only user and returns the result.
func (c *composeCluster) sql(t *testing.T, query string) (string, error) {
	t.Helper()
	at := "http://" + c.address(t, "clickhouse") + ":8123/?user=reader&password=reader"
	client := http.Client{Timeout: 10 * time.Second}
	if c.keys != nil {
		at = "https://" + c.address(t, "clickhouse") + ":8443/?user=reader&password=" +
			c.keys.secret(
				"reader.password",
			)
		client.Transport = c.keys.transport("clickhouse")
		defer client.CloseIdleConnections()
	}
	r, err := client.Post(at+"&database=courier", "text/plain", strings.NewReader(query))
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", query, answer)
	}
	return strings.TrimSpace(string(answer)), err
}

// address returns the IP address of a service's container in the network of the containers.
func (c *composeCluster) address(t *testing.T, service string) string {
	t.Helper()
	return must(t, "docker", "inspect", "--format",
		"{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", c.id(t, service))
}

// courier runs courier in a service's container.
func (c *composeCluster) courier(t *testing.T, service string, args ...string) (string, error) {
	t.Helper()
	return run("", nil, "docker", append([]string{
		"exec", c.id(t, service), "/courier",
	}, args...)...)
}

// logs prints the logs of the containers of a failed test.
func (c *composeCluster) logs(t *testing.T) {
	t.Helper()
	out, err := c.compose("logs", "--no-color", "--tail", "60")
	t.Logf("%s\n%v", out, err)
	out, err = run("", nil, "docker", "ps", "--all", "--filter",
		"label=com.docker.compose.project="+c.project)
	t.Logf("%s\n%v", out, err)
}

// object is a JSON object.
type object = map[string]any

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
