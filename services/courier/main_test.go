package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/services/local"
	"courier/store/storetest"
	"courier/trainer"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain runs a sub-command if it is the first argument, so that tests can start processes of the
// program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		os.Exit(0)
	}
	testscript.Main(sharedEngine{m}, map[string]func(){"courier": main})
}

// sharedEngine runs the tests with one ClickHouse engine if it is installed.
type sharedEngine struct{ m *testing.M }

// Run keeps the events of earlier jobs, which wait in the user's spool directory, out of the tests.
func (s sharedEngine) Run() int {
	dir, err := os.MkdirTemp("", "courier-spool-")
	if err == nil {
		err = os.Setenv("COURIER_SPOOL_DIR", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "set the spool directory:", err)
		return 1
	}
	status := storetest.Main(s.m)
	_ = os.RemoveAll(dir) // it is in the directory for temporary files
	return status
}

// patience is the maximum wait of a test. It only guards against hanging, on any machine.
const patience = 5 * time.Minute

// oneTry is the timeout of one attempt of a repeated request.
const oneTry = time.Minute

// testLongVariable runs the tests that take a minute, as in .ci/run.
const testLongVariable = "COURIER_TEST_LONG"

// longOnly skips a test that takes a minute, unless testLongVariable is set.
func longOnly(t *testing.T) {
	t.Helper()
	if os.Getenv(testLongVariable) == "" {
		t.Skipf("takes a minute: set %s=1", testLongVariable)
	}
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// await waits for a condition.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond) // a look is often a query, or reads a log
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

// digitsModel is the model name of jobs that run the digits workload.
const digitsModel = "digits-mlp"

// courier runs the program in this process without an environment, and returns its output.
func courier(t testing.TB, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(within(t, patience), args, func(string) string { return "" }, &out, &out)
	return out.String(), err
}

// connect connects to a NATS server until the test ends.
func connect(t testing.TB, url string) *bus.Bus {
	t.Helper()
	o := bus.Options{URL: url, Name: t.Name()}
	b, err := bus.Connect(within(t, patience), o, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBus(b) })
	return b
}

// sampleOf returns a numbered sample of a node with two processors.
func sampleOf(node string, n uint64) *schemas.Sample {
	s := &schemas.Sample{Node: node, BootID: "boot", Number: n, IntervalSeconds: 2, Cores: 2}
	s.EventID, s.At = schemas.SampleID(s.Node, s.BootID, n), time.Now().UTC()
	return s
}

// testEnvironment returns an environment and its output.
func testEnvironment(ctx context.Context) (*environment, *bytes.Buffer) {
	var out bytes.Buffer
	return &environment{
		ctx:    ctx,
		stdout: &out,
		stderr: io.Discard,
		getenv: os.Getenv,
		log:    slog.New(slog.DiscardHandler),
	}, &out
}

// startAll runs courier all in this process until the test ends, on free ports. change may change
// its flags.
func startAll(t testing.TB, change func(*localFlags)) *local.Instance {
	t.Helper()
	f := localFlags{
		Options: local.Options{Data: t.TempDir(), Engine: "off", Interval: 200 * time.Millisecond},
		Fits:    trainer.Options{NewEpochs: 1 << 30},
	}
	if change != nil {
		change(&f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w, _ := testEnvironment(ctx)
	o, err := f.options(w)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	o.Printf, o.Grace = t.Logf, patience
	l, err := local.Start(ctx, o, w.log)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("courier all ended with %v", err)
		}
	})
	if !l.AwaitReady(ended) {
		t.Fatal("courier all ended before it was ready")
	}
	if l.Trainer() != nil {
		awaitTrainer(t, l.Bus())
	}
	return l
}

// awaitTrainer waits until a trainer answers.
func awaitTrainer(t testing.TB, b *bus.Bus) {
	t.Helper()
	await(t, "the trainer", func() bool {
		var reply schemas.RegressorList
		ctx, cancel := context.WithTimeout(t.Context(), oneTry)
		defer cancel()
		return b.Request(ctx, schemas.SubjectRegressorList, &schemas.RegressorListRequest{},
			&reply) == nil
	})
}

// get reads JSON from the gateway.
func get(t testing.TB, url string, into any) {
	t.Helper()
	status, body := scrape(t, url)
	if err := json.Unmarshal([]byte(body), into); err != nil || status != http.StatusOK {
		t.Fatalf("GET %s: %d, %v in %s", url, status, err, body)
	}
}

func TestAll_RefusesAUsedPortAndAUsedDirectory(t *testing.T) {
	var dir string
	first := startAll(t, func(f *localFlags) { dir = f.Data })
	used, err := url.Parse(first.Endpoints().NATSURL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(used.Port())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags localFlags
		want  string
	}{
		{localFlags{Options: local.Options{Data: t.TempDir(), NATSPort: port}}, "--nats-port"},
		{localFlags{Options: local.Options{Data: dir}}, "in use by another courier"},
	} {
		w, _ := testEnvironment(t.Context())
		c.flags.Engine, c.flags.Interval = "off", time.Second
		_, err := c.flags.start(w, t.Logf)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("start = %v, want an error with %q", err, c.want)
		}
	}
}
