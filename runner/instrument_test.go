package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"courier/runner"
)

// fitScript reports a training as the hooks of frameworks do. The package is there without an
// installation.
const fitScript = `
import sys
try:
    from courier_instrument._session import Fit
except ImportError:
    sys.exit(3)
fit = Fit("test", 3, batch_size=64)
for epoch in range(3):
    fit.begin_unit()
    sum(range(2000000))
    fit.unit(epoch + 1, {"loss": 1.0, "val_accuracy": 0.25 * (epoch + 1)})
fit.end()
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
		t.Errorf("without: exit code %d, %d epochs, %v; want 3 and none",
			result.ExitCode, len(result.Epochs), err)
	}
}
