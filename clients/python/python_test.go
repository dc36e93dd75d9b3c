package python_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/advisor"
	"courier/bus"
	"courier/bus/bustest"
	"courier/bus/server"
	"courier/schemas"
	"courier/services/certs"

	gocmp "github.com/google/go-cmp/cmp"
)

// run runs a command, and returns its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// install builds the wheel, and installs it into a virtual environment. It skips the test where
// Python or the package registry is not available.
func install(t *testing.T) (python string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a wheel, which needs the package registry")
	}
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := run(t, ".", nil, "python3", "-m", "venv", venv); err != nil {
		t.Skipf("python3 -m venv is not available: %v\n%s", err, out)
	}
	python = filepath.Join(venv, "bin", "python")
	if out, err := run(t, ".", nil, python, "-m", "pip", "install", "--quiet", "--retries=1",
		"--timeout=10", "setuptools", "wheel", "nats-py[nkeys]"); err != nil {
		t.Skipf("the package registry is not available: %v\n%s", err, out)
	}

	source := t.TempDir() // setuptools writes into it
	if err := os.CopyFS(source, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, source, nil, python, "-m", "pip", "wheel", "--quiet", "--no-deps",
		"--no-build-isolation", "--wheel-dir", "dist", "."); err != nil {
		t.Fatalf("build the wheel: %v\n%s", err, out)
	}
	wheels, err := filepath.Glob(filepath.Join(source, "dist", "courier_client-*.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("wheels %v, %v; want one", wheels, err)
	}
	if out, err := run(t, ".", nil, python, "-m", "pip", "install", "--quiet", "--no-deps",
		wheels[0]); err != nil {
		t.Fatalf("install the wheel: %v\n%s", err, out)
	}
	return python
}

// The instrumentation passes its tests, which need no package.
func TestInstrumentation(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	env := []string{"PYTHONDONTWRITEBYTECODE=1"}
	for _, name := range []string{"keras", "loop", "passes", "process"} {
		out, err := run(t, "tests", env, python, "-m", "unittest", "test_instrument_"+name)
		if err != nil {
			t.Errorf("unittest: %v\n%s", err, out)
		}
	}
}

// The wheel is installed once for all tests of the client.
func TestPythonClient(t *testing.T) {
	python := install(t)
	t.Run("publishes the events of the contract", func(t *testing.T) { testEvents(t, python) })
	t.Run("is typed", func(t *testing.T) { testTypes(t, python) })
	t.Run("asks", func(t *testing.T) { testQuestions(t, python) })
	t.Run("has the rights of its nkey", func(t *testing.T) { testPerson(t, python) })
	t.Run("names the fields of replies", func(t *testing.T) { testReplies(t, python) })
}

// The installed wheel passes its tests, and publishes events of the contract.
func testEvents(t *testing.T, python string) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	tests, err := filepath.Abs("tests")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"COURIER_TEST_NATS=" + server.URL(), "PYTHONDONTWRITEBYTECODE=1"}
	if out, err := run(t, tests, env, python, "-m", "unittest", "-v", "test_core"); err != nil {
		t.Fatalf("unittest: %v\n%s", err, out)
	}

	loop, err := filepath.Abs(filepath.Join("examples", "loop.py"))
	if err != nil {
		t.Fatal(err)
	}
	env = []string{"COURIER_NATS_URL=" + server.URL(), "COURIER_JOB_ID=py-3"}
	if out, err := run(t, t.TempDir(), env, python, loop); err != nil {
		t.Fatalf("loop.py: %v\n%s", err, out)
	}

	for job, want := range map[string][]string{
		"py-1": {"started", "epoch 1 in 1.5 s: 0.75", "epoch 2 in 1.25 s: 0.875", "finished after 2"},
		"py-2": {"started", "failed after 0: ValueError: out of memory"},
	} {
		if diff := gocmp.Diff(want, eventsOf(t, b, job, len(want))); diff != "" {
			t.Errorf("events of %s (-want +got):\n%s", job, diff)
		}
	}
	if events := eventsOf(t, b, "py-3", 7); events[6] != "finished after 5" {
		t.Errorf("events of the example: %v, want started, 5 epochs and finished", events)
	}
}

// eventsOf returns n valid events of a job as text.
func eventsOf(t *testing.T, b *bus.Bus, job string, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all []string
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: []string{schemas.JobSubject(job, "*")}}
	err := b.Follow(ctx, o, func(r bus.Record) error {
		if all = append(all, text(r.Event)); len(all) == n {
			cancel()
		}
		return nil
	})
	if err != nil || len(all) != n {
		t.Fatalf("events of %s: %v, %v; want %d", job, all, err, n)
	}
	return all
}

// text returns the figures of an event.
func text(e schemas.Event) string {
	switch e := e.(type) {
	case *schemas.Started:
		return "started"
	case *schemas.Epoch:
		return fmt.Sprintf("epoch %d in %g s: %g", e.Epoch, e.DurationSeconds, *e.Accuracy)
	case *schemas.Ended:
		s := fmt.Sprintf("%s after %d", e.Outcome, e.EpochsDone)
		if e.Reason != "" {
			s += ": " + e.Reason
		}
		return s
	}
	return e.Subject()
}

// mypy accepts the package and right calls, and refuses wrong ones.
func testTypes(t *testing.T, python string) {
	out, err := run(t, ".", nil, python, "-m", "pip", "install", "--quiet", "--retries=1", "--timeout=10", "mypy")
	if err != nil {
		t.Skipf("mypy is not available: %v\n%s", err, out)
	}
	check := func(file string) (string, error) {
		return run(t, t.TempDir(), nil, python, "-m", "mypy", "--strict", file)
	}
	right, err := filepath.Abs(filepath.Join("examples", "typed.py"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := check(right); err != nil {
		t.Errorf("mypy refuses %s: %v\n%s", right, err, out)
	}

	wrong := []string{
		`courier_client.Job("m").epoch("first")`,
		`courier_client.Job("m").epoch(1, acuracy=0.5)`,
		`courier_client.Job("m").close(1)`,
		`courier_client.Client().predict("m", cpus=2)`,
		`courier_client.Client().submit("m", epoch=2)`,
		`courier_client.Client().submit("m")["decison"]`,
		`courier_client.Client().status(7)`,
		`courier_client.Client().jobs(users="ada")`,
		`courier_client.Client().jobs_frame(users="ada")`,
		`courier_client.Client().epochs_frame(7)`,
	}
	file := filepath.Join(t.TempDir(), "wrong.py")
	text := "import courier_client\n" + strings.Join(wrong, "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ = check(file)
	for i, call := range wrong {
		if place := fmt.Sprintf("wrong.py:%d: error:", i+2); !strings.Contains(out, place) {
			t.Errorf("mypy accepts %s:\n%s", call, out)
		}
	}
}

// The client asks services of the contract, and raises their refusals.
func testQuestions(t *testing.T, python string) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	answer := func(_ context.Context, q *schemas.JobRequest) (any, error) {
		if q.User != "ada" || q.Labels["team"] != "vision" || len(q.CPUs) != 2 || q.JobID == "taken" {
			return nil, schemas.Errorf(schemas.CodeConflict, "id", "the request is %+v", *q)
		}
		return &schemas.Advice{Decision: schemas.MeetsSLO}, nil
	}
	go func() {
		ended <- b.Serve(ctx, bus.Service{
			Name: "advisor", Version: "1.0.0", Ready: func() { close(ready) },
			Endpoints: []bus.Endpoint{
				bus.Handle(schemas.SubjectJobPredict, answer),
				bus.Handle(schemas.SubjectJobSubmit, answer),
				bus.Handle(schemas.SubjectJobList, func(_ context.Context, q *schemas.JobListRequest) (any, error) {
					return &schemas.JobList{Jobs: []schemas.JobStatus{{JobID: "a", User: q.User}}}, nil
				}),
			},
		})
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-ready

	const script = `
import courier_client
client = courier_client.Client(user="ada")
fields = dict(cpus=(2, 4), epochs=3, slo="10m", labels={"team": "vision"})
assert client.predict("m", **fields)["decision"] == "meets_slo"
assert client.submit("m", **fields)["decision"] == "meets_slo"
assert [job["job_id"] for job in client.jobs(user="ada")] == ["a"]
for question, code in (
    (lambda: client.submit("m", job_id="taken", **fields), "conflict"),
    (lambda: client.predict("m", cpus=(2, 4)), "invalid"),
    (lambda: client.status("a"), "unavailable"),
    (lambda: courier_client.Client("nats://127.0.0.1:1").status("a"), "unavailable"),
):
    try:
        question()
    except courier_client.RequestError as error:
        assert error.code == code, error
    else:
        raise AssertionError(code)
`
	env := []string{"COURIER_NATS_URL=" + server.URL(), "PYTHONDONTWRITEBYTECODE=1"}
	if out, err := run(t, t.TempDir(), env, python, "-c", script); err != nil || out != "" {
		t.Errorf("the script: %v, want neither an error nor output:\n%s", err, out)
	}
}

// With the keys of a person the client submits, asks and reports in a secured cluster, and not for others.
func testPerson(t *testing.T, python string) {
	dir := t.TempDir()
	keys, deploy := filepath.Join(dir, "keys"), filepath.Join("..", "..", "deploy", "nats")
	_, err := certs.Create(certs.Options{
		Out: keys, Persons: []string{"ada", "bob"}, Rights: filepath.Join(deploy, "users.conf"), Days: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	encryption, err := os.ReadFile(filepath.Join(deploy, "tls.conf"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "nats.conf")
	text := "include \"keys/users.conf\"\n" + strings.ReplaceAll(string(encryption), "/etc/courier/tls", keys)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s, err := server.New(server.Options{DataDir: t.TempDir(), Config: config}, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	ca := filepath.Join(keys, "ca.crt")
	b, err := bus.Connect(t.Context(), bus.Options{
		URL: s.URL(), Identity: bus.Identity{CAFile: ca, SeedFile: filepath.Join(keys, "advisor.nk")},
	}, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }() // the server stops
	if err := b.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	runAdvisor(t, b)

	const script = `
import courier_client
client = courier_client.Client()
advice = client.submit("m", cpus=[1], batch_sizes=[8], epochs=2)
with courier_client.Job("m", batch_size=8, epochs=2, job_id=advice["job_id"]) as job:
    for epoch in job.epochs():
        epoch.report(accuracy=0.5)
status = client.status(advice["job_id"])
print(status["state"], status["epochs_done"], status["user"])
try:
    courier_client.Client(user="bob").submit("m", cpus=[1], epochs=2)
except courier_client.RequestError as error:
    print(error.code)
`
	context := filepath.Join(dir, "ada.json")
	data, err := json.Marshal(map[string]string{"url": s.URL(), "ca": ca, "nkey": filepath.Join(keys, "ada.nk")})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(context, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{
		"nkey":    {"COURIER_NATS_CA=" + ca, "COURIER_NATS_NKEY=" + filepath.Join(keys, "ada.nk")},
		"context": {"COURIER_NATS_CONTEXT=" + context, "COURIER_NATS_USER=ada"},
	} {
		env = append(env, "COURIER_NATS_URL="+s.URL(), "PYTHONDONTWRITEBYTECODE=1")
		out, err := run(t, dir, env, python, "-c", script)
		if err != nil || !strings.Contains(out, "finished 2 ada\n") || !strings.HasSuffix(out, "forbidden\n") {
			t.Errorf("with the %s of a person: %v\n%s", name, err, out)
		}
	}
}

// The types of replies have the fields of the contract.
func testReplies(t *testing.T, python string) {
	for name, reply := range map[string]reflect.Type{
		"Alternative": reflect.TypeFor[schemas.Alternative](),
		"JobAdvice":   reflect.TypeFor[schemas.Advice](),
		"JobStatus":   reflect.TypeFor[schemas.JobStatus](),
	} {
		var want []string
		for _, f := range reflect.VisibleFields(reply) {
			if field, _, _ := strings.Cut(f.Tag.Get("json"), ","); field != "" && field != "-" {
				want = append(want, field)
			}
		}
		script := "import courier_client as c; print(*sorted(c." + name + ".__annotations__))"
		out, err := run(t, t.TempDir(), nil, python, "-c", script)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		slices.Sort(want)
		if diff := gocmp.Diff(want, strings.Fields(out)); diff != "" {
			t.Errorf("fields of %s (-contract +client):\n%s", name, diff)
		}
	}
}

// runAdvisor runs an advisor until the test ends.
func runAdvisor(t *testing.T, b *bus.Bus) {
	t.Helper()
	a := advisor.New(b, advisor.Options{}, slog.New(slog.DiscardHandler), nil)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for tick := time.NewTicker(20 * time.Millisecond); a.Ready() != nil; <-tick.C {
		if t.Context().Err() != nil || len(ended) > 0 {
			t.Fatal("the advisor does not answer")
		}
	}
}

// The notebook of the examples runs against an advisor, where COURIER_TEST_PYTHON names a Python with
// Jupyter and pandas. It is not installed here, because that can take minutes.
func TestNotebook(t *testing.T) {
	python := cmp.Or(os.Getenv("COURIER_TEST_PYTHON"), "python3")
	if out, err := run(t, ".", nil, python, "-c", "import ipykernel, nats, nbclient, pandas"); err != nil {
		t.Skipf("THE NOTEBOOK WAS NOT RUN: %s has no Jupyter or pandas, see CONTRIBUTING.md: %v\n%s",
			python, err, out)
	}
	server := bustest.NewServer(t)
	runAdvisor(t, server.Connect(t))

	notebook, err := filepath.Abs(filepath.Join("examples", "notebook.ipynb"))
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(filepath.Dir(filepath.Dir(notebook)), "src")
	const script = `
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=300).execute()
print(*(output["data"]["text/plain"] for cell in notebook.cells for output in cell.get("outputs", ())
        if "data" in output), sep="\n")
`
	env := []string{
		"COURIER_NATS_URL=" + server.URL(), "PYTHONPATH=" + source, "PYTHONDONTWRITEBYTECODE=1",
	}
	out, err := run(t, t.TempDir(), env, python, "-c", script, notebook)
	for _, want := range []string{"('exploring',", "('finished', 4, True)", "duration_seconds"} {
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("the notebook: %v, want %s in its results:\n%s", err, want, out)
		}
	}
}
