package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/runner"
	"courier/schemas"
)

// fitScript reports a training as the hooks of frameworks do. The package is there without an
// installation.
const fitScript = `
import sys
try:
    from courier_instrument._session import Fit, session
except ImportError:
    sys.exit(3)
fit = Fit("test", 3, batch_size=64)
for epoch in range(3):
    fit.begin_unit()
    sum(range(2000000))
    fit.unit(epoch + 1, {"loss": 1.0, "val_accuracy": 0.25 * (epoch + 1)})
session().end_fit()
sys.exit(7)
`

// A Python job is measured from inside, and its exit status stays. Without the instrumentation, it is
// not.
func TestRun_MeasuresPythonFromInside(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(fitScript), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(t, []string{python, script})
	result, err := runner.Run(t.Context(), o, quiet)
	if err != nil || result.ExitCode != 7 {
		t.Fatalf("Run() = exit code %d, %v; want 7", result.ExitCode, err)
	}
	if n := len(result.Epochs); n == 0 || result.Epochs[n-1].Epoch != 3 {
		t.Fatalf("epochs %+v, want the last to be 3", result.Epochs)
	}
	last := result.Epochs[len(result.Epochs)-1]
	if last.Accuracy == nil || *last.Accuracy != 0.75 || last.Metric != "val_accuracy" ||
		last.Loss == nil || *last.Loss != 1 || last.DurationSource != "reported" {
		t.Errorf("last epoch %+v, want accuracy 0.75, loss 1 and a reported duration", last)
	}
	if last.BatchSize != 64 { // the job was asked for 8
		t.Errorf("batch size %d, want the measured 64", last.BatchSize)
	}
	if result.StartupSeconds == nil || *result.StartupSeconds <= 0 {
		t.Errorf("start-up %v, want a positive one", result.StartupSeconds)
	}

	o = options(t, []string{python, script})
	o.NoInstrument = true
	result, err = runner.Run(t.Context(), o, quiet)
	if err != nil || result.ExitCode != 3 || len(result.Epochs) > 0 {
		t.Errorf("without: exit code %d, %d epochs, %v; want 3 and none", result.ExitCode, len(result.Epochs), err)
	}
}

// The batch size of a command that is not given one is unknown until the training measures it.
func TestRun_UnknownBatchSize(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(fitScript), 0o600); err != nil {
		t.Fatal(err)
	}
	printing := []string{"sh", "-c", `for i in 1 2 3; do echo "{\"epoch\":$i,\"loss\":1,\"seconds\":0.5}"; done`}
	for _, test := range []struct {
		name       string
		command    []string
		batchSizes []int
		started    uint32
		epochs     uint32
		isSaid     bool
	}{
		{"printed", printing, nil, 0, 0, false},
		{"printed, but it was named", printing, []int{16}, 16, 16, false},
		{"it reads the variable", append(printing, "$COURIER_BATCH_SIZE"), nil, 64, 64, false},
		{"measured", []string{python, script}, nil, 0, 64, true},
		{"measured as named", []string{python, script}, []int{64}, 64, 64, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, stderr := bustest.New(t), bustest.NewBuffer()
			o := options(t, test.command)
			o.Request.BatchSizes, o.Request.JobID, o.Connect, o.Stderr = test.batchSizes, "unknown", over(b), stderr
			o.Patience = time.Millisecond // there is no advisor
			result, err := runner.Run(t.Context(), o, quiet)
			if err != nil || len(result.Epochs) == 0 {
				t.Fatalf("Run() = %+v, %v", result, err)
			}
			events := bustest.Stored(t, b, schemas.JobSubject("unknown", "*"), 2+len(result.Epochs))
			started, _ := events[0].(*schemas.Started)
			if started.BatchSize != test.started || started.Validate() != nil {
				t.Errorf("started with batch size %d, %v, want %d", started.BatchSize, started.Validate(), test.started)
			}
			for _, e := range result.Epochs {
				if e.BatchSize != test.epochs {
					t.Errorf("epoch %d has batch size %d, want %d", e.Epoch, e.BatchSize, test.epochs)
				}
			}
			said := strings.Count(stderr.String(), "the training uses batch size 64")
			if said > 1 || (said == 1) != test.isSaid {
				t.Errorf("said %d times in:\n%s", said, stderr.String())
			}
		})
	}
}
