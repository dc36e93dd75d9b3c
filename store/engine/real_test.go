//go:build linux && amd64 && !noengine

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"courier/store/engine"
)

// libraryVariable is the path of the engine that the tests must use, or install, with which they
// install it.
const libraryVariable = "COURIER_TEST_ENGINE"

// findLibrary searches once. It does not check a named library, so that the tests fail if it does
// not load.
var findLibrary = sync.OnceValues(func() (string, error) {
	named := os.Getenv(libraryVariable)
	if named == "install" {
		installed, err := engine.Install(context.Background(), engine.InstallOptions{})
		return installed, err
	}
	if named != "" {
		return named, nil
	}
	return engine.FindLibrary("")
})

// withEngine returns Options for the real engine, or skips the test if there is none.
func withEngine(t testing.TB) engine.Options {
	t.Helper()
	library, err := findLibrary()
	missing := errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrUnsupported)
	if missing && os.Getenv(libraryVariable) == "" {
		withoutLibrary.Add(1)
		t.Skip("no ClickHouse engine")
	}
	must(t, err)
	return engine.Options{
		DataDir: t.TempDir(), Library: library, HostCommand: []string{testProgram(t), roleHost},
		MemoryBytes: 1 << 30, MaxRestartDelay: 10 * time.Millisecond, StartTimeout: patience,
	}
}

// client queries an engine over HTTP. It closes its connections, because an idle one would delay
// the end of the engine.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

type user struct{ name, password string }

// courier and reader return the users of an endpoint.
func courier(p engine.Connection) user { return user{p.User, p.Password} }
func reader(p engine.Connection) user  { return user{p.ReaderUser, p.ReaderPassword} }

// ask runs a statement with a body and settings, and returns the response.
func ask(p engine.Connection, u user, statement, body string, settings ...string) (string, error) {
	values := url.Values{"query": {statement}, "database": {p.Database}}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		values.Set(name, value)
	}
	request, err := http.NewRequest(http.MethodPost, p.HTTPURL+"/?"+values.Encode(), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(u.name, u.password)
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %.2000s", response.Status, answer)
	}
	return strings.TrimSpace(string(answer)), nil
}

// query runs a statement that must not fail.
func query(t testing.TB, p engine.Connection, statement string, settings ...string) string {
	t.Helper()
	answer, err := ask(p, courier(p), statement, "", settings...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return answer
}

func kill(t testing.TB, p engine.Connection) {
	t.Helper()
	must(t, syscall.Kill(p.PID, syscall.SIGKILL))
}

func TestEngine_KeepsItsDataOverRestarts(t *testing.T) {
	o := withEngine(t)
	e := run(t, o)
	p := e.ready()
	for _, statement := range []string{
		"CREATE TABLE events (id UInt64, body JSON, at DateTime64(9, 'UTC')) ENGINE = MergeTree ORDER BY id",
		"CREATE TABLE sums (k UInt8, n AggregateFunction(count)) ENGINE = AggregatingMergeTree ORDER BY k",
		"CREATE MATERIALIZED VIEW sums_of_events TO sums AS SELECT id % 2 AS k, countState() AS n FROM " +
			"events GROUP BY k",
		"CREATE VIEW even AS SELECT id, body.name AS name FROM events WHERE id % 2 = 0",
		"CREATE FUNCTION twice AS (x) -> x * 2",
		"INSERT INTO events SELECT number, concat('{\"name\":\"n', toString(number), '\"}')::JSON, " +
			"toDateTime64(number, 9, 'UTC') FROM numbers(1000)",
	} {
		query(t, p, statement)
	}
	check := func(p engine.Connection, after string) {
		t.Helper()
		for statement, want := range map[string]string{
			"SELECT count(), sum(id), max(at) FROM events":            "1000\t499500\t1970-01-01 00:16:39.000000000",
			"SELECT k, countMerge(n) FROM sums GROUP BY k ORDER BY k": "0\t500\n1\t500",
			"SELECT name, twice(id) FROM even WHERE id = 10":          "n10\t20",
		} {
			if got := query(t, p, statement); got != want {
				t.Errorf("after %s: %s = %q, want %q", after, statement, got, want)
			}
		}
	}
	check(p, "the inserts")
	if err := e.stop(); err != nil {
		t.Fatalf("Run() = %v", err)
	}
	e = run(t, o)
	p = e.ready()
	check(p, "a clean stop")
	kill(t, p)
	p = e.readyAfter(p.PID)
	check(p, "kill -9")
	query(t, p, "INSERT INTO events SELECT 1000, '{}'::JSON, toDateTime64(0, 9, 'UTC')")
	if got := query(t, p, "SELECT count() FROM events"); got != "1001" {
		t.Errorf("after an insert after kill -9: count = %s, want 1001", got)
	}
}

func TestEngine_ServesUsers(t *testing.T) {
	p := run(t, withEngine(t)).ready()
	for _, path := range []string{"/", "/ping", "/play", "/dashboard"} {
		response, err := client.Get(p.HTTPURL + path)
		must(t, err)
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("GET %s = %s, want 200", path, response.Status)
		}
	}
	if got, err := ask(p, reader(p), "SELECT currentUser(), currentDatabase()", ""); err != nil ||
		got != "reader\tcourier" {
		t.Errorf("query as reader = %q, %v, want user reader and database courier", got, err)
	}
}

func TestEngine_AnswersBadQueriesWithErrors(t *testing.T) {
	o := withEngine(t)
	o.MemoryBytes = 400_000_000 // the minimum
	p := run(t, o).ready()
	deep := "SELECT " + strings.Repeat("(", 50_000) + "1" + strings.Repeat(")", 50_000)
	for name, c := range map[string]struct {
		statement, want string
		settings        []string
	}{
		"group by over its memory": {
			"SELECT number, count() FROM numbers(100000000) GROUP BY number",
			"MEMORY_LIMIT_EXCEEDED", []string{"max_memory_usage=50000000"},
		},
		"more than all memory": {
			"SELECT length(groupArray(number)) FROM numbers(1000000000)", "MEMORY_LIMIT_EXCEEDED",
			nil,
		},
		"a deeply nested query": {deep, "TOO_DEEP", nil},
		"a deeply nested subquery": {
			strings.Repeat("SELECT * FROM (", 5000) + "SELECT 1" + strings.Repeat(")", 5000),
			"TOO_DEEP", nil,
		},
		"not a query":               {"SELEC 1", "SYNTAX_ERROR", nil},
		"a query of a million ones": {"SELECT " + strings.Repeat("1+", 1_000_000) + "1", "", nil},
		"exceeds its time limit": {
			"SELECT sum(sipHash64(number)) FROM numbers(100000000000)", "TIMEOUT_EXCEEDED",
			[]string{"max_execution_time=1"},
		},
	} {
		// Some statements are too long for a URL, so they are sent as the body.
		_, err := ask(p, courier(p), "", c.statement, c.settings...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %s", name, err, c.want)
		}
	}
	if got := query(t, p, "SELECT 1"); got != "1" {
		t.Errorf("SELECT 1 = %q, want 1", got)
	}
	// This query sends signals to the threads of the engine.
	query(t, p, "SELECT count() > 0 FROM system.stack_trace")
	query(t, p, "SELECT sum(sipHash64(number)) FROM numbers(20000000)",
		"query_profiler_real_time_period_ns=1000000", "query_profiler_cpu_time_period_ns=1000000")
	if again := p.PID; !alive(again) {
		t.Error("the engine ended")
	}
}

func TestEngine_RejectsALibraryThatDoesNotLoad(t *testing.T) {
	o := withEngine(t)
	o.Library = filepath.Join(t.TempDir(), "text.so")
	must(t, os.WriteFile(o.Library, []byte("text"), 0o600))
	if err := run(t, o).wait(); err == nil || !strings.Contains(err.Error(),
		"load engine library "+o.Library) {
		t.Errorf("Run() = %v, want an error that names %s", err, o.Library)
	}
}

// rudeClient is a connection that violates the protocol.
type rudeClient struct{ *net.TCPConn }

// dial connects to the HTTP or the native port of an address.
func dial(address string) (rudeClient, error) {
	u, err := url.Parse(address)
	if err != nil {
		return rudeClient{}, err
	}
	conn, err := net.DialTimeout("tcp", u.Host, patience)
	if err != nil {
		return rudeClient{}, err
	}
	return rudeClient{conn.(*net.TCPConn)}, conn.SetDeadline(time.Now().Add(10 * time.Second))
}

// send sends bytes. It ignores errors: the server may have closed the connection.
func (r rudeClient) send(text string) { _, _ = io.WriteString(r, text) }

// receive reads at most n bytes, or until the server closes the connection.
func (r rudeClient) receive(n int) { _, _ = io.CopyN(io.Discard, r, int64(n)) }

// reset closes the connection by RST, unless the server has closed it.
func (r rudeClient) reset() { _ = errors.Join(r.SetLinger(0), r.Close()) }

func request(p engine.Connection, query, more string) string {
	verb := "GET"
	if strings.Contains(more, "Content-Length") || strings.Contains(more, "chunked") {
		verb = "POST"
	}
	return fmt.Sprintf("%s /?query=%s HTTP/1.1\r\nHost: x\r\nX-ClickHouse-User: %s\r\nX-ClickHouse-Key: %s\r\n%s\r\n",
		verb, strings.ReplaceAll(query, " ", "+"), p.User, p.Password, more)
}

func TestEngine_SurvivesRudeClients(t *testing.T) {
	e := run(t, withEngine(t))
	p := e.ready()
	query(t, p, "CREATE TABLE sink (x Int64) ENGINE = MergeTree ORDER BY x")
	const hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage after a TLS hello\r\n\r\n"
	quick, endless := request(p, "SELECT 1", ""), request(p, "SELECT number FROM numbers(1000000000)", "")
	const insert = "INSERT INTO sink FORMAT CSV"
	cut := request(p, insert, "Content-Length: 100000\r\n") + "1\n2\n"
	chunked := request(p, insert, "Transfer-Encoding: chunked\r\n")
	const once, often = 1, 25
	for _, c := range []struct {
		name       string
		address    string
		times      int
		text       string
		closeWrite bool // after the text
		receive    int  // bytes before the reset
	}{
		{"TLS to the HTTP port", p.HTTPURL, once, hello, false, 1},
		{"garbage to the HTTP port", p.HTTPURL, once, "\x00\xff\r\n\r\n\r\n", false, 0},
		{"a header without end", p.HTTPURL, once, "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20), false, 0},
		{"reset before the answer", p.HTTPURL, often, quick, false, 0},
		{"reset within the answer", p.HTTPURL, often, quick, false, 1},
		{"reset after the answer", p.HTTPURL, often, quick, false, 20},
		{"reset with two requests under way", p.HTTPURL, often, quick + quick, false, 1},
		{"reset within a long answer", p.HTTPURL, once, endless, false, 100_000},
		{"half-closed within a long answer", p.HTTPURL, once, endless, true, 100_000},
		{"reset within an insert", p.HTTPURL, often, cut, false, 0},
		{"an incomplete insert", p.HTTPURL, once, cut, true, 1},
		{"a bad chunk", p.HTTPURL, once, chunked + "ZZZ\r\n", false, 1},
		{"an incomplete chunk", p.HTTPURL, once, chunked + "FFFF\r\n1\n", false, 0},
		{"nothing to the native port", p.NativeURL, often, "", false, 0},
		{"HTTP to the native port", p.NativeURL, once, "GET / HTTP/1.0\r\n\r\n", false, 1},
		{"TLS to the native port", p.NativeURL, once, hello, false, 1},
		{"garbage to the native port", p.NativeURL, often, "\xff\xff\xff\xff\xff\xff\xff\x7fgarbage", false, 0},
		{"half a native hello", p.NativeURL, once, "\x00\x0aClickHouse", false, 0},
		{"a native query before the hello", p.NativeURL, once, "\x01\x00\x00SELECT 1", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var group sync.WaitGroup
			for range min(8, c.times) {
				group.Go(func() {
					for range c.times {
						r, err := dial(c.address)
						if err != nil {
							t.Error(err)
							return
						}
						r.send(c.text)
						if c.closeWrite { // the engine answers or closes the connection
							_ = r.CloseWrite()
						}
						r.receive(c.receive)
						r.reset()
					}
				})
			}
			group.Wait()
			if got := query(t, p, "SELECT 1"); got != "1" {
				t.Errorf("SELECT 1 = %q, want 1", got)
			}
			if again := e.ready(); again.PID != p.PID || !alive(p.PID) {
				t.Fatalf("the engine has restarted as process %d, want still %d", again.PID, p.PID)
			}
		})
	}
	if got := query(t, p, "SELECT count() FROM sink"); got != "0" {
		t.Errorf("incomplete inserts left %s rows, want none", got)
	}
}
