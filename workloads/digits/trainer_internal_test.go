package digits

import (
	"math"
	"strings"
	"sync"
	"testing"
)

// RaceDetector reports whether the race detector is on, which makes arithmetic twenty times as
// slow.
var RaceDetector bool

func mustParse(t testing.TB, args ...string) options {
	t.Helper()
	o, err := parseOptions(args)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// oneEpoch returns the first epoch of a new trainer.
func oneEpoch(t testing.TB, args ...string) epochLine {
	t.Helper()
	training, heldOut := mustLoad(t)
	r, err := newTrainer(mustParse(t, args...), training, heldOut).epoch(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDescend_KeepsMomentum(t *testing.T) {
	params, exact, velocity := []float32{1}, []float64{1}, []float64{0}
	for i, want := range []float64{0.75, 0.375, -0.0625} {
		descend(params, exact, velocity, []float32{0.5}, 0.5, 0.5)
		// Steps of 0.25, 0.25+0.125, 0.25+0.1875.
		if exact[0] != want || params[0] != float32(want) {
			t.Errorf("after step %d the parameter = %g, rounded %g, want %g", i+1, exact[0],
				params[0], want)
		}
	}
}

func TestDescend_LosesNoSmallSteps(t *testing.T) {
	params, exact, velocity := []float32{1}, []float64{1}, []float64{0}
	for range 1 << 20 {
		descend(params, exact, velocity, []float32{-1}, 1e-8, 0) // a sixth of what 1 can move by
	}
	if want := 1 + float32(1<<20)*1e-8; params[0] != want {
		t.Errorf("after many small steps the parameter = %g, want %g", params[0], want)
	}
}

func TestTrainer_CPUsChangeOnlyTheLastBits(t *testing.T) {
	// 70 does not divide 1200, and 3 does not divide 70.
	args := []string{"--augment", "0", "--batch-size", "70", "--learning-rate", "0.01"}
	one := oneEpoch(t, args...)
	for _, cpus := range []string{"2", "3"} {
		more := oneEpoch(t, append(args, "--cpus", cpus)...)
		if math.Abs(more.Loss-one.Loss) > 1e-3*one.Loss || math.Abs(more.Accuracy-one.Accuracy) > 0.02 {
			t.Errorf("with %s CPUs: loss %g and accuracy %g, want about %g and %g as with one CPU", cpus,
				more.Loss, more.Accuracy, one.Loss, one.Accuracy)
		}
	}
}

func TestTrainer_MoreCPUsThanImages(t *testing.T) {
	one := oneEpoch(t, "--augment", "0", "--batch-size", "4")
	many := oneEpoch(t, "--augment", "0", "--batch-size", "4", "--cpus", "7")
	if math.Abs(many.Loss-one.Loss) > 1e-3*one.Loss {
		t.Errorf("loss with 7 CPUs = %g, want %g as with one", many.Loss, one.Loss)
	}
}

func TestTrainer_ReportsAnInfiniteLoss(t *testing.T) {
	training, heldOut := mustLoad(t)
	trainer := newTrainer(mustParse(t, "--augment", "0"), training, heldOut)
	for k := range trainer.params {
		trainer.params[k] *= 1e30
	}
	r, err := trainer.epoch(t.Context(), 3)
	if err == nil || !strings.Contains(err.Error(),
		"epoch 3: the loss is not finite: use a smaller --learning-rate than 0.001") {
		t.Errorf("epoch() = %+v, %v, want an error that names --learning-rate", r, err)
	}
}

func TestBarrier_HoldsAllParties(t *testing.T) {
	for _, parties := range []int{1, 2, 5} {
		b := newBarrier(parties)
		const turns = 300
		reached := make([]int, parties)
		var all sync.WaitGroup
		for i := range parties {
			all.Go(func() {
				for turn := range turns {
					reached[i] = turn
					b.wait()
					for other, at := range reached {
						if at != turn {
							t.Errorf("barrier of %d: worker %d is in turn %d when worker %d leaves turn %d, want equal",
								parties, other, at, i, turn)
						}
					}
					b.wait()
				}
			})
		}
		all.Wait()
	}
}
