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

// cluster is docker-compose.yml, running.
type cluster struct {
	project string   // name of the composition, so that one that runs here already is left alone
	files   []string // of the composition
	tool    []string // docker-compose, or docker compose
	env     []string
	page    string // address of the gateway
	nats    string // addresses of the three servers
	keys    *keys  // by which we ask; nil: of an open cluster
}

// newCluster is a cluster as it comes, ready to be started.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		project: "courier-test",
		files:   []string{"docker-compose.yml", "deploy/containers/compose.override.yml"},
	}
	c.prepare(t)
	return c
}

// prepare chooses the ports and the tool, and removes what a test before left.
func (c *cluster) prepare(t *testing.T) {
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
		defer l.Close() // together, so that each is another
		at = append(at, l.Addr().String())
		c.env = append(c.env, fmt.Sprintf("%s=%d", name, l.Addr().(*net.TCPAddr).Port))
	}
	c.env = append(c.env, "COURIER_VERSION="+version, "COURIER_NETWORK="+c.project)
	c.page, c.nats = "http://"+at[0], "nats://"+strings.Join(at[1:], ",nats://")
	c.down(t)
}

func (c *cluster) compose(args ...string) (string, error) {
	words := append(slices.Clone(c.tool[1:]), "-p", c.project)
	for _, f := range c.files {
		words = append(words, "-f", f)
	}
	return run(root, c.env, c.tool[0], append(words, args...)...)
}

func (c *cluster) down(t *testing.T) {
	t.Helper()
	if out, err := c.compose("down", "--volumes", "--remove-orphans", "--timeout", "1"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// ids are the containers of a service.
func (c *cluster) ids(t *testing.T, service string) []string {
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

func (c *cluster) id(t *testing.T, service string) string { return c.ids(t, service)[0] }

// kill ends a container's process at once, as a crash would. The engine does not start
// again what was killed by hand, whatever its restart policy: start does.
func (c *cluster) kill(t *testing.T, ids ...string) {
	t.Helper()
	must(t, "docker", append([]string{"kill"}, ids...)...)
}

func (c *cluster) start(t *testing.T, ids ...string) {
	t.Helper()
	must(t, "docker", append([]string{"start"}, ids...)...)
	c.awaitHealth(t, ids...)
}

// awaitHealth waits until containers are healthy, or run if they have no health check.
// It asks what the check of the container asks, without waiting for the check's turn.
func (c *cluster) awaitHealth(t *testing.T, ids ...string) {
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

// await asks until there is no error.
func await(t *testing.T, longest time.Duration, what string, ask func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(longest); ; {
		err := ask()
		if err == nil {
			return time.Since(begin)
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not come within %s: %v", what, longest, err)
		}
	}
}

// post sends JSON to the gateway and reads the answer.
func (c *cluster) post(
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

// sql asks the tables as the user who only reads.
func (c *cluster) sql(t *testing.T, question string) (string, error) {
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
	r, err := client.Post(at+"&database=courier", "text/plain", strings.NewReader(question))
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", question, answer)
	}
	return strings.TrimSpace(string(answer)), err
}

// address is where a service's container is in the network of the containers.
func (c *cluster) address(t *testing.T, service string) string {
	t.Helper()
	return must(t, "docker", "inspect", "--format",
		"{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", c.id(t, service))
}

// courier runs our program in a service's container.
func (c *cluster) courier(t *testing.T, service string, args ...string) (string, error) {
	t.Helper()
	return run("", nil, "docker", append([]string{
		"exec", c.id(t, service), "/courier",
	}, args...)...)
}

// logs are what the containers said, for a test that failed.
func (c *cluster) logs(t *testing.T) {
	t.Helper()
	out, err := c.compose("logs", "--no-color", "--tail", "60")
	t.Logf("%s\n%v", out, err)
	out, err = run("", nil, "docker", "ps", "--all", "--filter",
		"label=com.docker.compose.project="+c.project)
	t.Logf("%s\n%v", out, err)
}

// object is JSON whose fields are not all known here.
type object = map[string]any

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
