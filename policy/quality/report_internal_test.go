package quality

import (
	"math"
	"testing"

	"courier/policy"
)

// silent returns a job that has been silent since its last report.
func silent(seconds float64, losses ...float64) policy.Losses {
	h := reportsOf(losses...)
	h.SilentSeconds = seconds
	return h
}

// steps returns a job with one report of 2 s, with the losses of its steps.
func steps(largest float64, losses ...float64) policy.Losses {
	h := reportsOf(3)
	h.Reports[0].Steps, h.Largest = losses, largest
	return h
}

// predicted returns a job whose last loss is predicted.
func predicted(final float64, losses ...float64) policy.Losses {
	h := reportsOf(losses...)
	h.Final = &final
	return h
}

// reportsOf returns reports every 2 s of a job that uses half of the CPU.
func reportsOf(losses ...float64) (h policy.Losses) {
	for _, loss := range losses {
		h.Reports = append(h.Reports, policy.LossReport{Seconds: 2, Loss: loss, CPURatio: 0.5})
		h.Largest = max(h.Largest, loss)
	}
	h.First = losses[0]
	return h
}

// Section 2.5 of the resource policies, row by row.
func TestObserve_DecidesWhatThePaperLeavesOpen(t *testing.T) {
	late := reportsOf(2, 1.6, 1.2)
	late.Reports[2].Seconds = 3
	window := func(seconds, before, after float64) *lossWindow {
		return &lossWindow{Seconds: seconds, Before: before, After: after, CPURatio: 0.5}
	}
	stale, diverging := window(2, 1, 0.5), window(2, 0.8, 1)
	stale.IsStale, diverging.IsDiverging = true, true
	const flat, done = watched, completing
	for _, test := range []struct {
		name  string
		h     policy.Losses
		phase phase
		want  *lossWindow
	}{
		{"windows are the last two reports, with their time distance, over the largest loss", late,
			growing, window(3, 0.8, 0.6)},
		{"a job without a report is a newcomer", policy.Losses{}, growing, nil},
		{"so is a job with one", reportsOf(2), growing, nil},
		{"one report with eight steps is split in halves", steps(4, 4, 4, 4, 4, 2, 2, 2, 2),
			growing, window(1, 1, 0.5)},
		{"one report with seven steps is not", steps(3, 4, 4, 4, 4, 2, 2, 2), growing, nil},
		{"a predicted last loss replaces the largest loss", predicted(0.5, 2.5, 1.5),
			growing, window(2, 1.25, 0.75)},
		{"but not one above the first loss", predicted(3, 2, 1), growing, window(2, 1, 0.5)},
		{"a job is not stale after three report times", silent(6, 2, 1), growing, window(2, 1, 0.5)},
		{"a job that is silent for longer is stale", silent(6.1, 2, 1), growing, stale},
		{"also after its first report", silent(6.1, 2), growing, &lossWindow{IsStale: true}},
		{"two rising windows are low rounds", reportsOf(1, 1.5, 2), flat, window(2, 0.75, 1)},
		{"three rising windows diverge", reportsOf(1, 1.2, 1.6, 2), done, diverging},
		{"three rises within the scatter of a converged loss do not", reportsOf(1, 1.01, 1.02, 1.024),
			done, window(2, 1.02/1.024, 1)},
		{"older reports do not count", reportsOf(1, 2, 1.8, 1.6, 1.4), growing, window(2, 0.8, 0.7)},
	} {
		t.Run(test.name, func(t *testing.T) {
			phase, w := observe(&test.h, Options{})
			if phase != test.phase || (w == nil) != (test.want == nil) {
				t.Fatalf("phase %d and window %+v, want %d and %+v", phase, w, test.phase, test.want)
			}
			if w != nil && *w != *test.want {
				t.Errorf("window %+v, want %+v", *w, *test.want)
			}
		})
	}
}

// The states of the table in section 2.2: a low round watches a growing job, the next one completes it,
// and a good one makes it grow.
func TestObserve_FollowsThePhases(t *testing.T) {
	for _, test := range []struct {
		losses []float64
		want   phase // after the last window
	}{
		{[]float64{2, 1}, growing},
		{[]float64{2, 2}, watched},
		{[]float64{2, 2, 2}, completing},
		{[]float64{2, 2, 2, 2}, completing},
		{[]float64{2, 2, 2, 1}, growing},
		{[]float64{2, 1, 1}, watched},
		{[]float64{1, 1.2, 1.6, 2}, watched}, // diverging
	} {
		h := reportsOf(test.losses...)
		phase, w := observe(&h, Options{})
		before := map[string]jobState{"a": {phase: phase, share: 1}}
		got, _ := divideNode(before, map[string]*lossWindow{"a": w}, Options{})
		if got["a"].phase != test.want {
			t.Errorf("phase after the losses %v = %d, want %d", test.losses, got["a"].phase, test.want)
		}
	}
}

// Where the node waits for IO, the progress counts per IO.
func TestDivideNode_CountsTheScarcestResource(t *testing.T) {
	a, b := fallingWindow(), fallingWindow()
	a.IORatio, b.IORatio = 0.2, 0.6
	windows := map[string]*lossWindow{"a": a, "b": b}
	for _, test := range []struct{ ioWait, want float64 }{
		{0.14, 0.5},
		{0.15, 0.75}, // as much progress for a third of the IO
	} {
		a.IOWaitRatio, b.IOWaitRatio = test.ioWait, test.ioWait
		got, _ := divideNode(nil, windows, Options{})
		if math.Abs(got["a"].share-test.want) > 1e-9 {
			t.Errorf("share with an IO-wait of %g = %g, want %g", test.ioWait, got["a"].share, test.want)
		}
	}
	b.IORatio = 0 // unknown: its CPU counts
	if got, _ := divideNode(nil, windows, Options{}); !(got["b"].share > 0.25) {
		t.Errorf("share without a known IO = %g", got["b"].share)
	}
}

// A stale job keeps its share; the other jobs divide the rest.
func TestDivideNode_StaleJobsKeepTheirShares(t *testing.T) {
	stale := func() *lossWindow {
		w := flatWindow()
		w.IsStale = true
		return w
	}
	states := map[string]jobState{
		"a": {share: 0.2}, "b": {phase: completing, share: 0.3},
	}
	for _, test := range []struct {
		name    string
		share   float64
		windows map[string]*lossWindow
		want    map[string]float64
	}{
		{
			"beside growing jobs", 0.5,
			map[string]*lossWindow{"stale": stale(), "a": fallingWindow(), "b": flatWindow()},
			map[string]float64{"stale": 0.5, "a": 1.0 / 3, "b": 1.0 / 6},
		},
		{
			"unless the others would fall below their floors", 0.9,
			map[string]*lossWindow{"stale": stale(), "a": fallingWindow(), "b": flatWindow()},
			map[string]float64{"stale": 2.0 / 3, "a": 1.0 / 6, "b": 1.0 / 6},
		},
		{"alone", 0.5, map[string]*lossWindow{"stale": stale()}, map[string]float64{"stale": 1}},
		{
			"without a share", 0,
			map[string]*lossWindow{"stale": stale(), "a": fallingWindow()},
			map[string]float64{"stale": 0.25, "a": 0.75},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := map[string]jobState{"stale": {phase: watched, share: test.share}}
			for name := range test.windows {
				if name != "stale" {
					before[name] = states[name]
				}
			}
			got, _ := divideNode(before, test.windows, Options{})
			for name, want := range test.want {
				if math.Abs(got[name].share-want) > 1e-9 {
					t.Errorf("share of %s = %g, want %g", name, got[name].share, want)
				}
			}
			if s := got["stale"]; !s.isStale || s.phase != watched {
				t.Errorf("state = %+v, want stale and watched as before", s)
			}
		})
	}
}

// Scaling all losses of a job changes nothing.
func TestObserve_IgnoresTheScaleOfTheLoss(t *testing.T) {
	final := 0.25
	for _, losses := range [][]float64{{2, 1}, {2, 2, 2}, {1, 1.2, 1.6, 2}, {4, 3, 2.5, 2.25}} {
		small, large := reportsOf(losses...), reportsOf(losses...)
		for i := range large.Reports {
			large.Reports[i].Loss *= 1024
		}
		large.First, large.Largest = 1024*large.First, 1024*large.Largest
		scaled := 1024 * final
		for range 2 {
			phase, w := observe(&small, Options{})
			scaledPhase, scaledWindow := observe(&large, Options{})
			if phase != scaledPhase || *w != *scaledWindow {
				t.Errorf("%v: %d and %+v, scaled %d and %+v", losses, phase, *w, scaledPhase, *scaledWindow)
			}
			small.Final, large.Final = &final, &scaled
		}
	}
}
