package quality

import (
	"math"

	"courier/policy"
)

// MaxReports is the number of last reports that the policy reads.
const MaxReports = 4

const (
	// staleReports is the number of expected report times after which a silent job is stale.
	staleReports = 3
	// minSteps is the number of steps that a report must have to be split in halves.
	minSteps = 8
	// divergingWindows is the number of rising windows in a row that show a divergence. The loss of
	// a converged job rises as often by chance, once in 24 windows, but hardly by
	// minDivergence of its scale.
	divergingWindows = 3
	minDivergence    = 0.05
)

// IsDiverging reports whether the loss of a job rises.
func IsDiverging(l *policy.Losses) bool {
	_, w := observe(l, Options{})
	return w != nil && w.IsDiverging
}

// observe returns the last window of a job, and its phase before that window. The window is nil if
// nothing is known about the growth of the job yet.
func observe(l *policy.Losses, o Options) (phase, *lossWindow) {
	reports := lastReports(l)
	scale := scaleOf(l)
	windows := make([]lossWindow, 0, MaxReports)
	if len(reports) == 1 && len(reports[0].Steps) >= minSteps {
		windows = append(windows, halvesOf(&reports[0], scale))
	}
	for i := 1; i < len(reports); i++ {
		windows = append(windows, windowOf(&reports[i], reports[i-1].Loss, scale))
	}

	if len(windows) == 0 {
		return growing, nil
	}
	before, last := growing, &windows[len(windows)-1]
	for i := range windows[:len(windows)-1] {
		before = before.next(windows[i].growth(o.IsPublished) >= o.threshold())
	}
	last.IsDiverging = isDiverging(windows)
	return before, last
}

// scaleOf returns the divisor that makes the losses of different jobs comparable: the predicted fall of
// the loss, or its largest value.
func scaleOf(l *policy.Losses) float64 {
	if l.Final != nil {
		if fall := l.First - *l.Final; fall > 0 && !math.IsInf(fall, 1) {
			return fall
		}
	}
	if l.Largest > 0 {
		return l.Largest
	}
	return 1
}

func lastReports(l *policy.Losses) []policy.LossReport {
	return l.Reports[max(0, len(l.Reports)-MaxReports):]
}

// isStale reports whether the job has been silent for too long, so that its losses are too old to plan
// from.
func isStale(l *policy.Losses) bool {
	sum, reports := 0.0, lastReports(l)
	for i := range reports {
		sum += reports[i].Seconds
	}
	return sum > 0 && l.SilentSeconds > staleReports*sum/float64(len(reports))
}

// windowOf returns the window from a previous loss to the report.
func windowOf(r *policy.LossReport, previous, scale float64) lossWindow {
	return lossWindow{
		Seconds:     r.Seconds,
		Before:      previous / scale,
		After:       r.Loss / scale,
		CPURatio:    r.CPURatio,
		IORatio:     r.IORatio,
		IOWaitRatio: r.IOWaitRatio,
	}
}

// halvesOf returns the window between the halves of the steps of a report.
func halvesOf(r *policy.LossReport, scale float64) lossWindow {
	middle := len(r.Steps) / 2
	second := *r
	second.Seconds, second.Loss = r.Seconds/2, mean(r.Steps[middle:])
	return windowOf(&second, mean(r.Steps[:middle]), scale)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// isDiverging reports whether the loss rose in each of the last windows, and by enough.
func isDiverging(windows []lossWindow) bool {
	if len(windows) < divergingWindows {
		return false
	}
	last := windows[len(windows)-divergingWindows:]
	for i := range last {
		if !(last[i].After > last[i].Before) {
			return false
		}
	}
	return last[len(last)-1].After-last[0].Before >= minDivergence
}
