package resize

import (
	"strings"
	"testing"

	"courier/simulate/figures"
)

// A choice of batch sizes together with shapes beats both shapes alone and batch sizes alone, also
// with uncertain prices.
func TestAddBatches_GainFromBatchSizes(t *testing.T) {
	f := &figures.Comparisons{}
	if err := addBatches(t.Context(), f, &seedRuns{seeds: 1, progress: func(int, int) {}}); err != nil {
		t.Fatal(err)
	}
	simple, joint := 0.0, 1.0
	for _, figure := range f.Figures {
		switch {
		case figure.Name != effectCompletion:
		case strings.HasPrefix(figure.Variant, "learned model, batch sizes"):
			joint = min(joint, figure.Reached)
		default:
			simple = max(simple, figure.Reached)
		}
	}
	if joint <= simple {
		t.Errorf("completion -%.3f with batch sizes, want more than the best simple rule's -%.3f", joint, simple)
	}
}
