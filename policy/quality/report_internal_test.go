package quality

import (
	"testing"

	"courier/policy"

	"github.com/google/go-cmp/cmp"
)

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

// phaseOf returns the phase of a job, and its last window without its report; nil without a window.
func phaseOf(l *policy.Losses) (phase, *lossWindow) {
	jobs, _ := observe(&policy.View{Jobs: []policy.Job{{Losses: l}}}, Options{})
	windows := windowsOf(l)
	if len(windows) == 0 {
		return jobs[0].phase, nil
	}
	last := windows[len(windows)-1]
	last.LossReport = &policy.LossReport{Seconds: last.Seconds, CPURatio: last.CPURatio}
	return jobs[0].phase, &last
}

// Section 2.5 of the resource policies, row by row.
func TestObserve_DecidesWhatThePaperLeavesOpen(t *testing.T) {
	late := reportsOf(2, 1.6, 1.2)
	late.Reports[2].Seconds = 3
	window := func(seconds, before, after float64) *lossWindow {
		return &lossWindow{&policy.LossReport{Seconds: seconds, CPURatio: 0.5}, before, after}
	}
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
		{"a predicted last loss replaces the largest loss", predicted(0.5, 2.5, 1.5),
			growing, window(2, 1.25, 0.75)},
		{"but not one above the first loss", predicted(3, 2, 1), growing, window(2, 1, 0.5)},
		{"two rising windows are low rounds", reportsOf(1, 1.5, 2), completing, window(2, 0.75, 1)},
		{"three rising windows diverge", reportsOf(1, 1.2, 1.6, 2), watched, window(2, 0.8, 1)},
		{"three rises within the scatter of a converged loss do not", reportsOf(1, 1.01, 1.02, 1.024),
			completing, window(2, 1.02/1.024, 1)},
		{"older reports do not count", reportsOf(1, 2, 1.8, 1.6, 1.4), growing, window(2, 0.8, 0.7)},
	} {
		t.Run(test.name, func(t *testing.T) {
			phase, w := phaseOf(&test.h)
			if diff := cmp.Diff(test.want, w, cmp.AllowUnexported(lossWindow{})); phase != test.phase || diff != "" {
				t.Errorf("phase %d, want %d; window (-want +got):\n%s", phase, test.phase, diff)
			}
		})
	}
}

// Scaling all losses of a job changes nothing, also if the last one is predicted.
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
			phase, w := phaseOf(&small)
			scaledPhase, scaledWindow := phaseOf(&large)
			if phase != scaledPhase || w.before != scaledWindow.before || w.after != scaledWindow.after {
				t.Errorf("%v: %d and %+v, scaled %d and %+v", losses, phase, *w, scaledPhase, *scaledWindow)
			}
			small.Final, large.Final = &final, &scaled
		}
	}
}
