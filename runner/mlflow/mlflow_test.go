//go:build !windows

package mlflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/runner/mlflow"
	"courier/schemas"
)

// patience bounds the start of the server. It only guards against hanging.
const patience = 3 * time.Minute

// server starts a tracking server until the test ends, and returns its address. It skips the test
// where MLflow is not installed.
func server(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("mlflow")
	if err != nil {
		t.Skip("MLflow is not installed: its tags are not tested")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	dir := t.TempDir()
	cmd := exec.Command(program, "server", "--host", "127.0.0.1", "--port", fmt.Sprint(port),
		"--backend-store-uri", "sqlite:///"+filepath.Join(dir, "mlflow.db"),
		"--default-artifact-root", dir, "--workers", "1")
	setGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killGroup(cmd) })
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	deadline, tick := time.After(patience), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for {
		reply, err := http.Get(address + "/health")
		if err == nil {
			_ = reply.Body.Close()
			return address
		}
		select {
		case <-deadline:
			t.Fatal("the server does not answer:", err)
		case <-tick.C:
		}
	}
}

// run returns the status and the tags of a run.
func run(t *testing.T, address, id string) (status string, tags map[string]string) {
	t.Helper()
	reply, err := http.Get(address + "/api/2.0/mlflow/runs/get?run_id=" + id)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var got struct {
		Run struct {
			Info struct{ Status string }
			Data struct {
				Tags []struct{ Key, Value string }
			}
		}
	}
	text, _ := io.ReadAll(reply.Body)
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	tags = map[string]string{}
	for _, tag := range got.Run.Data.Tags {
		if strings.HasPrefix(tag.Key, "courier.") {
			tags[tag.Key] = tag.Value
		}
	}
	return got.Run.Info.Status, tags
}

func advice(at time.Time, seconds, bound, probability float64) *schemas.Advice {
	a := schemas.Alternative{
		BatchSize: 16, CPUs: 2, PredictedSeconds: &seconds, UpperBoundSeconds: &bound,
		Probability: &probability,
	}
	other := 1.0
	return &schemas.Advice{
		JobStamp:     schemas.JobStamp{Stamp: schemas.Stamp{At: at}, JobID: "mlp-1"},
		Decision:     schemas.MeetsSLO,
		Chosen:       &schemas.Alternative{BatchSize: 32, CPUs: 2, PredictedSeconds: &other},
		Alternatives: []schemas.Alternative{a},
	}
}

func TestRun_HasTheLastPredictionAsTags(t *testing.T) {
	address := server(t)
	for _, experiment := range []string{"Default", "a new one"} {
		r, err := mlflow.Start(t.Context(), address, experiment, "mlp", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Environment(); len(got) != 2 || got[1] != "MLFLOW_RUN_ID="+r.ID || r.ID == "" {
			t.Errorf("environment = %q, want the address and the run %s", got, r.ID)
		}
		at := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
		r.Predict(advice(at, 100, 150, 0.5), 16, 2)
		r.Predict(advice(at.Add(10*time.Second), 60, 80, 0.975), 16, 2)
		r.End(context.Background(), true)
		status, tags := run(t, address, r.ID)
		want := map[string]string{
			mlflow.TagJob: "mlp-1", mlflow.TagEnds: "2026-11-23T12:01:10Z", mlflow.TagDecision: "meets_slo",
			mlflow.TagLatest: "2026-11-23T12:01:30Z", mlflow.TagProbability: "0.975",
		}
		if status != "FINISHED" || fmt.Sprint(tags) != fmt.Sprint(want) {
			t.Errorf("run in %q = %s with tags %v, want FINISHED with %v", experiment, status, tags, want)
		}
	}
}

func TestStart_NamesWhatIsWrong(t *testing.T) {
	for address, want := range map[string]string{
		"mlflow:5000":        `"mlflow:5000" is not an address such as http://mlflow:5000`,
		"file:///tmp/mlruns": "is not an address such as http://mlflow:5000",
		"http://127.0.0.1:1": "mlflow: ",
	} {
		_, err := mlflow.Start(t.Context(), address, "Default", "m", slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start(%s) = %v, want %s", address, err, want)
		}
	}
}
