package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"courier/bus"
	"courier/bus/server"
	"courier/schemas"
	"courier/store/storetest"

	"github.com/nats-io/nats.go"
)

// secureServer is a NATS server with TLS and the permissions of deploy/nats/users.conf.
type secureServer struct {
	t      testing.TB
	dir    string // files of courier certs
	server *server.Server
}

// rights is the tested file.
var rights = filepath.Join("..", "..", "deploy", "nats", "users.conf")

// guard creates credentials for all users with courier certs, and starts the server with them.
func guard(t testing.TB, verify bool, persons ...string) *secureServer {
	t.Helper()
	g := &secureServer{t: t, dir: filepath.Join(t.TempDir(), "keys")}
	args := []string{"certs", "--out", g.dir, "--rights", rights}
	for _, p := range persons {
		args = append(args, "--person", p)
	}
	if _, err := courier(t, args...); err != nil {
		t.Fatal(err)
	}
	encryption := strings.NewReplacer("/etc/courier/tls", g.dir, "verify: false",
		fmt.Sprintf("verify: %t", verify)).Replace(read(t,
		filepath.Join(filepath.Dir(rights), "tls.conf")))
	config := "include \"keys/users.conf\"\n" + encryption
	path := filepath.Join(filepath.Dir(g.dir), "nats.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.server, err = server.New(server.Options{
		DataDir: t.TempDir(),
		Config:  path,
	}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := g.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.server.Stop)
	return g
}

func (g *secureServer) file(name string) string { return filepath.Join(g.dir, name) }

// url returns the address of the server. The client switches to TLS by itself.
func (g *secureServer) url() string { return g.server.URL() }

// flags returns the connection flags of a user.
func (g *secureServer) flags(user string) []string {
	return []string{
		"--nats-url=" + g.url(),
		"--nats-ca=" + g.file("ca.crt"),
		"--nats-nkey=" + g.file(user+".nk"),
	}
}

// as connects as a user: as a person, unless the user is a service.
func (g *secureServer) as(user string, person bool) *bus.Bus {
	g.t.Helper()
	b, err := bus.Connect(within(g.t, patience), bus.Options{
		URL: g.url(), Name: user,
		Identity: bus.Identity{CAFile: g.file("ca.crt"), SeedFile: g.file(user + ".nk")}, Person: person,
	}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { closeBus(b) })
	return b
}

// raw connects as a user with a plain NATS client. The channel receives permission violations.
func (g *secureServer) raw(user string) (*nats.Conn, <-chan error) {
	g.t.Helper()
	key, err := nats.NkeyOptionFromSeed(g.file(user + ".nk"))
	if err != nil {
		g.t.Fatal(err)
	}
	refused := make(chan error, 64)
	nc, err := nats.Connect(g.url(), key, nats.RootCAs(g.file("ca.crt")),
		nats.CustomInboxPrefix(schemas.InboxPrefix(user)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(nc.Close)
	return nc, refused
}

// command runs the program to its end and returns its output.
func (g *secureServer) command(user string, args ...string) (string, error) {
	g.t.Helper()
	sub, rest := args[:1], args[1:]
	if sub[0] == "regressor" {
		sub, rest = args[:2], args[2:]
	}
	var flags []string
	if user != "" {
		flags = g.flags(user)
	}
	c := exec.CommandContext(within(g.t, patience), program(g.t),
		append(append(sub[:len(sub):len(sub)], flags...), rest...)...)
	c.Env = append(os.Environ(), "USER=root",
		"XDG_CACHE_HOME="+filepath.Join(filepath.Dir(g.dir), "cache-"+user))
	out, err := c.CombinedOutput()
	return string(out), err
}

// The whole pipeline, from a sample to predictions and rows, runs with the permissions of
// deploy/nats/users.conf. Each service is its own user over TLS. No service violates a permission.
func TestSecure_ThePipelineNeedsNoOtherPermissions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a process for every service")
	}
	whole := storetest.Address(t)
	address, file, password := passwordFile(t, whole)
	g := guard(t, false, "ada", "bob")
	port := storetest.FreePort(t)
	service := func(name string, args ...string) *child {
		return spawn(t, append(append([]string{name}, g.flags(name)...), args...)...)
	}
	answers := func() bool { _, err := g.command("ada", "jobs"); return err == nil }
	parts := []*child{service("advisor")} // only the advisor may create the streams
	await(t, "the advisor", answers)
	parts = append(parts,
		service("store", "--clickhouse-url="+address, "--clickhouse-password-file="+file,
			"--batch-age=50ms"),
		service("trainer", "--new-epochs=100000", "--clickhouse-url="+address,
			"--clickhouse-password-file="+file),
		service("collector", "--interval=200ms", "--node=node-a",
			"--spool-dir="+filepath.Join(t.TempDir(), "spool")),
		service("gateway", fmt.Sprintf("--http-address=127.0.0.1:%d", port),
			"--tokens="+g.file("tokens"), "--tls-cert="+g.file("gateway.crt"), "--tls-key="+
				g.file("gateway.key")),
	)
	await(t, "a sample", func() bool {
		out, _ := g.command("ada", "predict", "--model=digits-mlp", "--cpus=1", "--epochs=2",
			"-o", "json")
		return strings.Contains(out, "node-a")
	})
	for i, batch := range []int{4, 16, 64, 4, 16, 64} {
		user := []string{"ada", "bob"}[i/3]
		g.train(user, fmt.Sprintf("%s-%d", user, i), 1+i/3, batch)
	}
	out, err := g.command("operator", "regressor", "train")
	if err != nil {
		t.Fatalf("train: %v\n%s", err, out)
	}
	await(t, "advice with figures", func() bool {
		out, err = g.command("bob", "predict", "--model=digits-mlp", "--cpus=1",
			"--batch-sizes=4,16", "--epochs=4", "--slo=1m", "-o", "json")
		return strings.Contains(out, `"meets_slo"`)
	})
	out, err = g.command("ada", "jobs", "-o", "json")
	if err != nil || strings.Count(out, `"state": "finished"`) != 6 ||
		strings.Count(out, `"user": "ada"`) != 3 {
		t.Errorf("jobs: %v\n%s\nwant six finished jobs, three of them by ada", err, out)
	}
	d := storetest.Open(t, whole)
	await(t, "rows of all epochs", func() bool {
		n, err := count(t, d, "SELECT count() AS n FROM job_epoch")
		return err == nil && n == 24
	})
	g.publishesLater(parts[0])
	g.checkGateway(fmt.Sprintf("https://127.0.0.1:%d", port))
	secrets := append(g.secrets(), password)
	for _, c := range parts {
		log := read(t, c.log.Name())
		for _, bad := range []string{"does not permit", "ermissions"} {
			if strings.Contains(log, bad) {
				t.Errorf("%s violated a permission:\n%s", c.args[0], log)
			}
		}
		checkNoSecret(t, c.args[0], log, secrets)
	}
}

// train runs a job of a person under courier run. A law sets the times of its epochs, regardless of
// the load of the machine, so that a regressor of them is always usable.
func (g *secureServer) train(user, id string, cpus, batch int) {
	g.t.Helper()
	seconds := 0.05 * (1 + 8/float64(batch)) / float64(cpus)
	script := fmt.Sprintf(`for e in 1 2 3 4; do sleep %.3f; echo "{\"epoch\":$e,\"seconds\":%.3f,\"accuracy\":0.9$e}"; done`,
		seconds, seconds)
	out, err := g.command(user, "run", "--model=digits-mlp", fmt.Sprintf("--cpus=%d", cpus),
		"--batch-sizes=4,16,64", fmt.Sprintf("--batch-size=%d", batch), "--epochs=4", "--slo=1m",
		"--node=node-a",
		"--no-pty", "--no-progress", "--id="+id, "--", "sh", "-c", script, "{batch}")
	if err != nil {
		g.t.Fatalf("courier run as %s: %v\n%s", user, err, out)
	}
}

// publishesLater runs a job while NATS is down. The next run of the same person publishes its events
// under the name of that person.
func (g *secureServer) publishesLater(advisor *child) {
	g.t.Helper()
	advisor.kill()
	g.train("ada", "alone", 1, 64)
	advisor.start()
	await(g.t, "the advisor again", func() bool {
		_, err := g.command("ada", "jobs")
		return err == nil
	})
	g.train("ada", "next", 1, 64)
	out, err := g.command("bob", "status", "alone", "-o", "json")
	if err != nil || !strings.Contains(out, `"finished"`) || !strings.Contains(out,
		`"user": "ada"`) {
		g.t.Errorf("a job without the advisor: %v\n%s\nwant one finished job by ada", err,
			out)
	}
}

// checkGateway sends requests of a person over HTTPS with a token, which has the same permissions.
func (g *secureServer) checkGateway(at string) {
	g.t.Helper()
	if out, err := g.command("", "health", "--ca="+g.file("ca.crt"), at+"/readyz"); err != nil {
		g.t.Errorf("courier health: %v\n%s", err, out)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM([]byte(read(g.t, g.file("ca.crt"))))
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}},
	}
	defer client.CloseIdleConnections()
	for _, c := range []struct {
		user, method, path, body string
		status                   int
		says                     string
	}{
		{"", "GET", "/api/v1/jobs", "", 401, "missing token"},
		{
			"ada", "POST", "/api/v1/jobs",
			`{"id":"by-rest","model":"digits-mlp","cpus":1,"epochs":4}`, 201, `"by-rest"`,
		},
		{
			"ada", "POST", "/api/v1/jobs",
			`{"model":"digits-mlp","cpus":1,"epochs":4,"user":"bob"}`, 403, "cannot submit",
		},
		{"bob", "DELETE", "/api/v1/jobs/by-rest", "", 403, "belongs to ada"},
		{"bob", "GET", "/api/v1/jobs/by-rest/advice", "", 200, `"by-rest"`},
		{"bob", "GET", "/api/v1/nodes", "", 200, "node-a"},
		{"bob", "GET", "/api/v1/regressors", "", 200, "epoch_time"},
		{
			"bob", "POST", "/api/v1/regressors/epoch_time/rollback", "{}", 403,
			"needs the role admin",
		},
		{
			"operator", "POST", "/api/v1/regressors/epoch_time/promote",
			`{"model_digest":"` + strings.Repeat("0", 64) + `"}`, 404, "not_found",
		},
		{"ada", "DELETE", "/api/v1/jobs/by-rest", "", 200, `"cancelled"`},
		{
			"bob", "POST", "/api/v1/jobs",
			`{"id":"bobs","model":"digits-mlp","cpus":1,"epochs":4}`, 201, `"bobs"`,
		},
		{"operator", "DELETE", "/api/v1/jobs/bobs", "", 200, `"cancelled"`},
		{"operator", "GET", "/metrics", "", 200, "courier_gateway_requests_total"},
	} {
		r, err := http.NewRequestWithContext(within(g.t, patience), c.method, at+c.path,
			strings.NewReader(c.body))
		if err != nil {
			g.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if c.user != "" {
			r.Header.Set("Authorization",
				"Bearer "+strings.TrimSpace(read(g.t, g.file(c.user+".token"))))
		}
		answer, err := client.Do(r)
		if err != nil {
			g.t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil ||
			answer.StatusCode != c.status || !strings.Contains(string(body), c.says) {
			g.t.Errorf("%s: %s %s = %d %s (%v), want %d with %s", c.user, c.method, c.path,
				answer.StatusCode, body, err, c.status, c.says)
		}
	}
}

// secrets returns all secrets that courier certs created: seeds, tokens and the lines of keys.
func (g *secureServer) secrets() []string {
	g.t.Helper()
	var all []string
	for _, pattern := range []string{"*.nk", "*.token", "*.key"} {
		files, err := filepath.Glob(g.file(pattern))
		if err != nil || len(files) == 0 {
			g.t.Fatalf("no %s: %v", pattern, err)
		}
		for _, name := range files {
			for line := range strings.Lines(read(g.t, name)) {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
					all = append(all, line)
				}
			}
		}
	}
	return all
}

// checkNoSecret fails the test if a text contains a secret.
func checkNoSecret(t testing.TB, what, text string, secrets []string) {
	t.Helper()
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%s contains the secret %s:\n%s", what, s, text)
		}
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// passwordFile moves the password of an address to a file.
func passwordFile(t testing.TB, address string) (without, file, password string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("the address of ClickHouse is invalid")
	}
	password, _ = u.User.Password()
	if password == "" {
		t.Skip("the ClickHouse of the tests has no password")
	}
	u.User = url.User(u.User.Username())
	file = filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return u.String(), file, password
}

func program(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
