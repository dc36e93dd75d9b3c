package runner_test

import (
	"testing"

	"courier/runner"
)

// Epochs that a job writes to the side channel count, although it prints none, and other lines do
// no harm.
func TestRun_ReadsTheSideChannel(t *testing.T) {
	for _, c := range []struct {
		name    string
		command []string
		want    []float64 // accuracies of the epochs
	}{
		{"one connection", []string{"channel", "3"}, []float64{0.5, 0.75, 0.875}},
		{"lines that are no epochs", []string{"channel", "1", "garbage"}, []float64{0.5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t, trainingCommand(c.command[0], c.command[1:]...))
			result, err := runner.Run(t.Context(), o, quiet)
			if err != nil || result.ExitCode != 0 {
				t.Fatalf("Run() = exit code %d, %v; want 0 and no error", result.ExitCode, err)
			}
			if len(result.Epochs) != len(c.want) {
				t.Fatalf("%d epochs, want %d: %+v", len(result.Epochs), len(c.want), result.Epochs)
			}
			for i, e := range result.Epochs {
				if e.Epoch != uint32(i+1) || e.Accuracy == nil || *e.Accuracy != c.want[i] {
					t.Errorf("epoch %d has number %d and accuracy %v, want %d and %v",
						i+1, e.Epoch, e.Accuracy, i+1, c.want[i])
				}
			}
		})
	}
}
