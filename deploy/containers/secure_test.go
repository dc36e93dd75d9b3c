package containers_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// keys are the files that courier certs created for a secured cluster.
type keys struct {
	t       *testing.T
	program string
	dir     string
}

func newKeys(t *testing.T) *keys {
	t.Helper()
	k := &keys{t: t, program: buildImages(t), dir: filepath.Join(t.TempDir(), "keys")}
	k.make()
	return k
}

// make runs courier certs with the options that docker-compose.secure.yml documents.
func (k *keys) make(args ...string) {
	k.t.Helper()
	must(k.t, k.program, append([]string{
		"certs", "--out", k.dir, "--rights", filepath.Join(root, "deploy/nats/users.conf"),
		"--containers",
	}, args...)...)
}

func (k *keys) file(name string) string { return filepath.Join(k.dir, name) }

// secret returns the content of a file without surrounding space.
func (k *keys) secret(name string) string {
	k.t.Helper()
	return strings.TrimSpace(readFile(k.t, k.file(name)))
}

// authorities returns the certificate authorities in a file.
func (k *keys) authorities(name string) *x509.CertPool {
	k.t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(readFile(k.t, k.file(name)))) {
		k.t.Fatalf("%s holds no certificate", name)
	}
	return pool
}

// transport returns an HTTP transport that expects a certificate for the server name.
func (k *keys) transport(server string) *http.Transport {
	k.t.Helper()
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: k.authorities("ca.crt"), ServerName: server},
	}
}

// replace replaces files by the new versions that courier certs has written beside them.
func (k *keys) replace(names ...string) {
	k.t.Helper()
	for _, name := range names {
		if err := os.Rename(k.file(name+".new"), k.file(name)); err != nil {
			k.t.Fatal(err)
		}
	}
}

// flags returns the flags to connect to NATS with a seed.
func (k *keys) flags(seed string) []string {
	return []string{"--nats-ca=" + k.file("ca.crt"), "--nats-nkey=" + k.file(seed)}
}

// newSecureCluster returns a cluster of docker-compose.secure.yml. The key files belong to a user
// that does not exist in the containers.
func newSecureCluster(t *testing.T) *composeCluster {
	t.Helper()
	k := newKeys(t)
	if os.Geteuid() == 0 {
		if err := filepath.WalkDir(k.dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, 4711, 4711))
		}); err != nil {
			t.Fatal(err)
		}
	}
	c := &composeCluster{project: "courier-secure", keys: k, env: []string{"COURIER_KEYS=" + k.dir},
		files: []string{
			"docker-compose.yml", "deploy/containers/compose.override.yml",
			"docker-compose.secure.yml", "deploy/containers/compose.secure.yml",
		}}
	c.prepare(t)
	c.page = strings.Replace(c.page, "http:", "https:", 1)
	return c
}

func TestSecureCluster(t *testing.T) {
	requireDocker(t)
	c := newSecureCluster(t)
	if os.Getenv("COURIER_CONTAINERS") != "keep" {
		t.Cleanup(func() { c.down(t) })
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.logs(t)
		}
	})
	c.up(t, time.Minute) // TestCluster checks the documented time
	for _, query := range []string{
		"SELECT count() FROM node_sample",
		"SELECT uniqExact(job_id) FROM job_submitted WHERE user = 'worker'",
		"SELECT count() FROM job_epoch",
	} {
		await(t, time.Minute, query, func() error {
			n, err := c.sql(t, query)
			if err == nil && n == "0" {
				err = errors.New("no row")
			}
			return err
		})
	}
	c.awaitHealth(t, slices.Concat(c.ids(t, "store"), c.ids(t, "trainer"), c.ids(t, "gateway"))...)
	t.Run("clients without key or TLS", c.checkClients)
	t.Run("routes", c.checkRoutes)
	t.Run("tables", c.checkClickHouse)
	t.Run("key rotation", c.checkKeyRotation)
	t.Run("no secret in logs", c.checkLogs)
}

// listJobs runs courier jobs against each NATS server, concurrently, because a rejected client
// retries for some seconds. With a non-empty want, courier must fail and print it.
func (c *composeCluster) listJobs(want string, flags ...string) error {
	servers := strings.Split(c.nats, ",")
	failed := make(chan error, len(servers))
	for _, at := range servers {
		go func() {
			out, err := run("", nil, c.keys.program, append([]string{
				"jobs", "--nats-url", at,
			}, flags...)...)
			switch {
			case want == "":
				failed <- err
			case err == nil || !strings.Contains(out, want):
				failed <- fmt.Errorf("courier jobs at %s = %q (%v), want %q", at, out, err, want)
			default:
				failed <- nil
			}
		}()
	}
	var all error
	for range servers {
		all = errors.Join(all, <-failed)
	}
	return all
}

// checkClients checks that NATS accepts a known user, and answers nobody without TLS. TestSecure of
// services/courier tries incomplete and foreign credentials.
func (c *composeCluster) checkClients(t *testing.T) {
	if err := c.listJobs("", c.keys.flags("worker.nk")...); err != nil {
		t.Errorf("list jobs with the worker's key: %v", err)
	}
	plain, err := net.Dial("tcp", strings.TrimPrefix(strings.Split(c.nats, ",")[0], "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	answer := exchange(t, plain, "CONNECT {\"verbose\":false}\r\nPING\r\n")
	if !strings.Contains(answer, `"tls_required":true`) || strings.Contains(answer, "PONG") {
		t.Errorf("NATS answers a client without TLS: %q", answer)
	}
}

// exchange sends text and returns what the server sends within two seconds, and the errors.
func exchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, failed := io.WriteString(conn, text)
	answer, ended := io.ReadAll(conn)
	return fmt.Sprintf("%s (%v, %v)", answer, failed, ended)
}

// checkRoutes connects as a further NATS server. Only the certificate for routes must be accepted:
// with any other certificate of the same authority, its owner could act as the whole cluster.
func (c *composeCluster) checkRoutes(t *testing.T) {
	at := net.JoinHostPort(c.address(t, "nats1"), "6222")
	otherKeys := newKeys(t)
	route := func(k *keys, name string) string {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		config := &tls.Config{RootCAs: c.keys.authorities("routes.crt"), ServerName: "nats1"}
		if name != "" {
			pair, err := tls.LoadX509KeyPair(k.file(name+".crt"), k.file(name+".key"))
			if err != nil {
				t.Fatal(err)
			}
			// An attacker ignores the authorities that the server requests.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &pair, nil
			}
		}
		return exchange(t, tls.Client(conn, config), "PING\r\n")
	}
	for _, name := range []string{"", "client", "nats", "gateway"} {
		if answer := route(c.keys, name); !strings.Contains(answer, "remote error: tls") {
			t.Errorf("NATS answers a route with the certificate %q: %q", name, answer)
		}
	}
	if answer := route(otherKeys, "routes"); !strings.Contains(answer, "remote error: tls") {
		t.Errorf("NATS answers a route of another cluster: %q", answer)
	}
	if answer := route(c.keys, "routes"); !strings.HasPrefix(answer, "INFO {") {
		t.Errorf("NATS answers a route with the right certificate: %q, want INFO", answer)
	}
}

// checkClickHouse connects to ClickHouse without TLS and with wrong passwords.
func (c *composeCluster) checkClickHouse(t *testing.T) {
	at := c.address(t, "clickhouse")
	for _, port := range []string{"8123", "9000"} {
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(at, port), time.Second); err == nil {
			conn.Close()
			t.Errorf("ClickHouse listens without TLS on port %s", port)
		}
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: c.keys.transport("clickhouse")}
	defer client.CloseIdleConnections()
	for _, try := range []struct {
		user, password, statement string
		status                    int
	}{
		{"reader", c.keys.secret("reader.password"), "SELECT count() FROM courier.jobs", 200},
		{"reader", "reader", "SELECT 1", 403},
		{"courier", "courier", "SELECT 1", 403},
		{"courier", "", "SELECT 1", 403},
		{"trainer", c.keys.secret("courier.password"), "SELECT 1", 403},
		{"trainer", c.keys.secret("trainer.password"), "SELECT count() FROM courier.jobs", 200},
		{"trainer", c.keys.secret("trainer.password"), "TRUNCATE TABLE courier.job_epoch", 500},
	} {
		q, err := http.NewRequest(http.MethodPost, "https://"+at+":8443/",
			strings.NewReader(try.statement))
		if err != nil {
			t.Fatal(err)
		}
		q.SetBasicAuth(try.user, try.password)
		status, answer := do(t, &client, q)
		if status != try.status {
			t.Errorf("%s: %s = %d %s, want %d", try.user, try.statement, status, answer, try.status)
		}
	}
}

func do(t *testing.T, client *http.Client, q *http.Request) (status int, answer string) {
	t.Helper()
	r, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// jobsStatus requests the list of jobs from the gateway and returns the HTTP status.
func (c *composeCluster) jobsStatus(t *testing.T, token string) int {
	t.Helper()
	q, err := http.NewRequest(http.MethodGet, c.page+"/api/v1/jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: c.keys.transport("gateway")}
	defer client.CloseIdleConnections()
	status, _ := do(t, &client, q)
	return status
}

// checkKeyRotation adds and removes a person and replaces keys of every kind, as
// docs/howto/secure-a-cluster.md describes. It restarts only the services named there.
func (c *composeCluster) checkKeyRotation(t *testing.T) {
	k, old := c.keys, t.TempDir()
	nats, page := c.serial(t, "nats1", "4222"), c.serial(t, "gateway", "8080")
	for _, name := range []string{
		"nats.crt", "nats.key", "gateway.crt", "gateway.key", "collector.nk", "reader.password",
	} {
		if err := os.Rename(k.file(name), filepath.Join(old, name)); err != nil {
			t.Fatal(err)
		}
	}
	k.make("--person", "eve")
	k.replace("users.conf", "tokens", "passwords.xml")
	k.make()
	c.reload(t)
	must(t, "docker", "restart", c.id(t, "collector"), c.id(t, "gateway"), c.id(t, "clickhouse"))
	await(t, 20*time.Second, "access of eve to every server", func() error {
		return c.listJobs("", k.flags("eve.nk")...)
	})
	c.awaitHealth(t, c.id(t, "collector"), c.id(t, "gateway"), c.id(t, "clickhouse"))
	await(t, 20*time.Second, "access of eve to the gateway", func() error {
		return compareStatus(c.jobsStatus(t, k.secret("eve.token")), 200)
	})
	if c.serial(t, "nats1", "4222") == nats || c.serial(t, "gateway", "8080") == page {
		t.Error("nats1 or the gateway still uses its old certificate")
	}
	await(t, 20*time.Second, "samples of the collector with the new key", func() error {
		n, err := c.sql(t, "SELECT count() FROM node_sample WHERE at > now() - INTERVAL 5 SECOND")
		if err == nil && n == "0" {
			err = errors.New("no sample")
		}
		return err
	})

	token := k.secret("eve.token")
	for _, name := range []string{"eve.nk", "eve.token"} {
		if err := os.Rename(k.file(name), filepath.Join(old, name)); err != nil {
			t.Fatal(err)
		}
	}
	k.make()
	k.replace("users.conf", "tokens")
	k.make()
	c.reload(t)
	for _, name := range []string{"eve.nk", "collector.nk"} {
		await(t, 20*time.Second, "rejection of "+name, func() error {
			return c.listJobs("knows no user", "--nats-ca="+k.file("ca.crt"),
				"--nats-nkey="+filepath.Join(old, name))
		})
	}
	await(t, 20*time.Second, "rejection of eve by the gateway", func() error {
		return compareStatus(c.jobsStatus(t, token), 401)
	})
}

// reload makes the NATS servers read their configuration again.
func (c *composeCluster) reload(t *testing.T) {
	t.Helper()
	must(t, "docker", "kill", "--signal", "HUP", c.id(t, "nats1"), c.id(t, "nats2"),
		c.id(t, "nats3"))
}

func compareStatus(got, want int) error {
	if got != want {
		return fmt.Errorf("status %d, want %d", got, want)
	}
	return nil
}

// serial returns the serial number of a service's certificate.
func (c *composeCluster) serial(t *testing.T, service, port string) string {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort(c.address(t, service), port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if service == "nats1" { // NATS sends INFO before the TLS handshake
		if _, err := bufio.NewReaderSize(conn, 1<<16).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	secured := tls.Client(conn, &tls.Config{
		RootCAs:    c.keys.authorities("ca.crt"),
		ServerName: service,
	})
	if err := secured.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return secured.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// checkLogs searches the logs and the start parameters of containers, which every user of Docker
// can read, for secrets. It also searches the logs for permission violations.
func (c *composeCluster) checkLogs(t *testing.T) {
	var secrets []string
	for _, pattern := range []string{"*.nk", "*.token", "*.key", "*.password"} {
		files, err := filepath.Glob(c.keys.file(pattern))
		if err != nil || len(files) < 2 {
			t.Fatalf("%s matches %v (%v), want at least 2 files", pattern, files, err)
		}
		for _, name := range files {
			for line := range strings.Lines(readFile(t, name)) {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
					secrets = append(secrets, line)
				}
			}
		}
	}
	for _, service := range []string{
		"nats1", "nats2", "nats3", "clickhouse", "store", "trainer", "advisor", "collector",
		"gateway", "worker",
	} {
		for _, id := range c.ids(t, service) {
			log, parameters := must(t, "docker", "logs", id), must(t, "docker", "inspect", id)
			if log == "" && service != "clickhouse" {
				t.Errorf("the log of %s is empty", service)
			}
			for _, s := range secrets {
				if strings.Contains(log, s) || strings.Contains(parameters, s) {
					t.Errorf("the log or the parameters of %s contain a secret", service)
				}
			}
			for _, bad := range []string{"does not permit", "ermissions Violation"} {
				if strings.Contains(withoutLateReplies(log), bad) {
					t.Errorf("%s violated a permission:\n%s", service, log)
				}
			}
		}
	}
}

// withoutLateReplies removes rejected replies from a log. A server that reloads its users forgets
// which requests wait for a reply, and the client then retries.
func withoutLateReplies(log string) string {
	var kept strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `Publish to \"_INBOX_`) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
