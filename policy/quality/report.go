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
	// divergingWindows is the number of rising windows in a row that show a divergence. The loss of
	// a converged job rises as often by chance, once in 24 windows, but hardly by
	// minDivergence of its scale.
	divergingWindows = 3
	minDivergence    = 0.05
)

// IsDiverging reports whether the loss of a job rises.
func IsDiverging(l *policy.Losses) bool { return isDiverging(windowsOf(l)) }

// lossWindow is what a report showed about a job. Its losses are divided by the scale of the job.
type lossWindow struct {
	*policy.LossReport
	before, after float64 // mean loss of the previous window, and of this one
}

// windowsOf returns the windows of the last reports. There are none if nothing is known about the growth
// of the job yet.
func windowsOf(l *policy.Losses) (windows []lossWindow) {
	reports, scale := lastReports(l), scaleOf(l)
	for i := 1; i < len(reports); i++ {
		windows = append(windows, lossWindow{&reports[i], reports[i-1].Loss / scale, reports[i].Loss / scale})
	}
	return windows
}

// growth returns the progress per resource and second: G in the paper.
func (w *lossWindow) growth(isPublished bool) float64 {
	progress, used := w.before-w.after, w.usedRatio()
	if isPublished {
		progress, used = math.Abs(progress), w.CPURatio
	}
	growth := progress / w.Seconds / used
	if !(w.Seconds > 0) || !(used > 0) || !(growth > 0) {
		return 0 // also for a loss that is not a number
	}
	return min(growth, maxGrowth)
}

// maxGrowth bounds the growth of a job whose window or CPU is almost zero.
const maxGrowth = 1e6

// minIOWaitRatio is the IO-wait of a node above which its IO is scarcer than its CPU (resource
// policies, section 2.5).
const minIOWaitRatio = 0.15

// usedRatio returns the job's share of the scarcest resource: R in the paper.
func (w *lossWindow) usedRatio() float64 {
	if w.IOWaitRatio >= minIOWaitRatio && w.IORatio > 0 {
		return w.IORatio
	}
	return w.CPURatio
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

// isDiverging reports whether the loss rose in each of the last windows, and by enough.
func isDiverging(windows []lossWindow) bool {
	if len(windows) < divergingWindows {
		return false
	}
	last := windows[len(windows)-divergingWindows:]
	for i := range last {
		if !(last[i].after > last[i].before) {
			return false
		}
	}
	return last[len(last)-1].after-last[0].before >= minDivergence
}
