package decide_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/decide"
	"courier/schemas"
)

// A job of a model whose jobs stop by themselves is predicted to stop where they did. Its bound is not
// above that of all of its epochs by much, and past the usual epoch it is predicted to run on.
func TestDecide_ExpectsEarlyStops(t *testing.T) {
	r, now := advisortest.Load(t, fittedOnOne), time.Unix(1_790_000_000, 0).UTC()
	for _, tc := range []struct {
		name     string
		stops    []uint32 // of 40 epochs
		done     uint32   // epochs of the job
		mayStop  bool     // said by the request
		target   float64
		from, to uint32 // expected epochs, with those done; 0: no early stop is expected
	}{
		{"no job stopped early", []uint32{40, 40, 40}, 0, true, 0, 0, 0},
		{"one did, which nobody expects", []uint32{12, 40, 40}, 0, false, 0, 0, 0},
		{"one did, as the request expects", []uint32{12}, 0, true, 0, 12, 12},
		{"all at one epoch", []uint32{12, 12, 12}, 0, false, 0, 12, 12},
		{"at different epochs", []uint32{10, 12, 15}, 0, false, 0, 11, 13},
		{"few of many", []uint32{38, 40, 40, 40, 40, 40, 39}, 0, false, 0, 0, 0},
		{"a running job", []uint32{12, 12, 12}, 8, false, 0, 12, 13},
		{"a running job past the usual epoch", []uint32{12, 12, 12}, 20, false, 0, 21, 30},
		{"a running job at its end", []uint32{12, 12, 12}, 39, false, 0, 0, 0},
		{"a target decides where it stops", []uint32{12, 12, 12}, 0, true, .7, 0, 0},
	} {
		question := questionAbout(tc.stops, tc.done > 0, tc.done, now, 0, func(q *schemas.JobRequest) {
			q.Epochs, q.MayStopEarly, q.TargetAccuracy = 40, tc.mayStop, tc.target
		})
		answer := decide.Decide(question, r, now)
		stopped := len(slices.DeleteFunc(slices.Clone(tc.stops), func(n uint32) bool { return n == 40 }))
		if want := tc.mayStop || stopped >= 2; answer.MayStopEarly != want {
			t.Errorf("%s: may stop early: got %t, want %t", tc.name, answer.MayStopEarly, want)
		}
		a := answer.Chosen
		last := tc.done + a.ExpectedEpochs
		if (a.ExpectedEpochs > 0) != (tc.to > 0) || tc.to > 0 && (last < tc.from || last > tc.to) {
			t.Errorf("%s: the job is expected to stop after epoch %d, want %d to %d", tc.name, last, tc.from, tc.to)
		}
		if a.ExpectedEpochs == 0 {
			continue
		}
		startup := advisortest.TrueStartup
		if tc.done > 0 {
			startup = 0
		}
		if want := startup + float64(a.ExpectedEpochs)*0.75; math.Abs(*a.PredictedSeconds/want-1) > .05 {
			t.Errorf("%s: %g s, want %g", tc.name, *a.PredictedSeconds, want)
		}
		bound, all := *a.UpperBoundSeconds, float64(40-tc.done)*0.75
		if bound > 1.2*all || bound < *a.PredictedSeconds {
			t.Errorf("%s: a bound of %g s, want between %g and %g", tc.name, bound, *a.PredictedSeconds, 1.2*all)
		}
	}
}
