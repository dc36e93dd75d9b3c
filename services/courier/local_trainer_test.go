package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"courier/schemas"
	"courier/services/local"
	"courier/trainer"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestArguments_ParseToTheSameFlags(t *testing.T) {
	for _, want := range []trainerCommand{
		{},
		{
			Supervised: "data",
			Fits: trainer.Options{
				NewEpochs: 7, CoolDown: time.Second, Window: 24 * time.Hour, Examples: 100,
			},
			clickHouseFlags: clickHouseFlags{ClickHousePasswordFile: "with space and = sign"},
		},
	} {
		want.NATSReplicas = 1
		args, err := arguments(&want, "nats-url")
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(args, " "); strings.Contains(text, "--nats-url") {
			t.Errorf("arguments %s have the excluded flag", text)
		}
		var got trainerCommand
		parser, err := kong.New(&got)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Fatalf("parse %q: %v", args, err)
		}
		want.NATSURL = got.NATSURL // excluded
		ours := cmp.AllowUnexported(trainerCommand{}, serviceFlags{}, natsFlags{})
		if diff := cmp.Diff(want, got, ours, cmpopts.IgnoreUnexported(trainer.Options{})); diff != "" {
			t.Errorf("flags after arguments %q differ (-want +got):\n%s", args, diff)
		}
	}
}

// scrape returns the status and the body of a page of the gateway.
func scrape(t testing.TB, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t, patience), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// The trainer's process is killed. Readiness and metrics show this, it is restarted, and the next
// fit learns from every epoch, including those published in the meantime.
func TestAll_RestartsAKilledTrainerAndLosesNothing(t *testing.T) {
	t.Parallel()
	l := startAll(t, nil)
	publishPast(t, l.Bus(), "before", 200)
	if status, body := scrape(t, l.Endpoints().HTTPURL+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz = %d %s, want 200", status, body)
	}

	killed := l.Trainer().PID()
	process, err := os.FindProcess(killed)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	publishPast(t, l.Bus(), "after", 200)
	await(t, "another trainer process", func() bool {
		pid := l.Trainer().PID()
		return pid != 0 && pid != killed && l.Trainer().Ready() == nil
	})
	awaitTrainer(t, l.Bus())

	var reply schemas.TrainReply
	// Unlike an epoch time, an accuracy is an example regardless of neighbours.
	request := schemas.TrainRequest{Target: schemas.TargetAccuracy}
	err = l.Bus().Request(within(t, patience), schemas.SubjectRegressorTrain, &request, &reply)
	if err != nil || len(reply.Promoted) != 1 {
		t.Fatalf("train = %+v, %v, want one regressor promoted", reply, err)
	}
	if got := reply.Promoted[0].Examples; got != 400 {
		t.Errorf("the fit used %d epochs, want 400", got)
	}
	awaitMetrics(t, l,
		`courier_services_child_up{process="trainer"} 1`,
		`courier_services_child_restarts_total{process="trainer"} 1`,
		`courier_trainer_fits_total{outcome="promoted",process="trainer",target="accuracy"} 1`,
		`process_resident_memory_bytes{process="trainer"} `,
		"\nprocess_resident_memory_bytes ",
	)
}

// awaitMetrics waits until the metrics of the gateway contain all texts. They do not contain the
// metrics of a trainer that does not answer in time.
func awaitMetrics(t *testing.T, l *local.Instance, texts ...string) {
	t.Helper()
	var page string
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(page)
		}
	})
	for _, text := range texts {
		await(t, fmt.Sprintf("metrics with %q", text), func() bool {
			_, page = scrape(t, l.Endpoints().HTTPURL+"/metrics")
			return strings.Contains(page, text)
		})
	}
}

// A killed courier all ends its trainer. Both have the same standard error, which only closes after
// both have ended.
func TestAll_KilledLeavesNoTrainer(t *testing.T) {
	dir := t.TempDir()
	all := exec.Command(program(t), "all", "--data", dir, "--engine=off", "--nats-port=0",
		"--http-port=0", "--log-level=info")
	stderr, err := all.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = all.Process.Kill() }) // in case the test fails before its own kill
	log := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(stderr) // the part that was read is enough
		log <- string(text)
	}()
	e := awaitEndpoints(t, dir, func(e local.Endpoints) bool { return e.HTTPURL != "" })
	await(t, "the trainer's process", func() bool {
		status, _ := scrape(t, e.HTTPURL+"/readyz")
		return status == http.StatusOK
	})
	if err := all.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-log:
		if !strings.Contains(text, `"process":"trainer"`) {
			t.Errorf("the log has no line of the trainer:\n%s", text)
		}
	case <-within(t, patience).Done():
		t.Error("the trainer still runs after courier all was killed")
	}
	_ = all.Wait() // the status is that of the kill
}
