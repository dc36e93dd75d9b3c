package decide

import (
	"strings"
	"testing"

	"courier/schemas"
)

// A change of the batch size costs accuracy, or gains some; it never costs a negative amount.
func TestWarning_NamesTheCostOrTheGain(t *testing.T) {
	saved := 0.97
	for loss, want := range map[float64]string{
		0.0224: "and costs 0.0224 of accuracy", -0.0224: "and gains 0.0224 of accuracy",
	} {
		got := warning(&schemas.Risk{BatchSize: 16, SavedProbability: &saved, AccuracyLoss: &loss})
		if !strings.HasSuffix(got, want) {
			t.Errorf("with a loss of %g: %q, want %q at its end", loss, got, want)
		}
	}
}
