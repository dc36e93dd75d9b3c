package quality

import "math"

// MaxReports is the number of last reports that Observe reads.
const MaxReports = 4

// Report is a loss that a job reported.
type Report struct {
	Seconds float64 // since the previous report; for the first one, since the start
	Loss    float64 // mean since the previous report; 1 - accuracy of a job without a loss
	// Losses of its steps in order; nil if they are unknown.
	Steps []float64

	CPURatio    float64 // mean CPU since the previous report as a share of the node
	IORatio     float64 // the job's share of the IO of the node; 0: unknown
	IOWaitRatio float64 // mean share of the node's CPUs that waited for IO
}

// History is what a run of a job has reported.
type History struct {
	Reports []Report // the last ones, oldest first; at most MaxReports count
	Largest float64  // largest loss of the run
	First   float64  // first loss of the run
	// Final is the predicted last loss; nil: unknown.
	Final         *float64
	SilentSeconds float64 // since the last report
}

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

// Observe returns the last window of a job, and its phase before that window. The window is nil if
// nothing is known about the growth of the job yet.
func Observe(h *History, o Options) (Phase, *Window) {
	reports := h.Reports[max(0, len(h.Reports)-MaxReports):]
	scale := h.scale()
	windows := make([]Window, 0, MaxReports)
	if len(reports) == 1 && len(reports[0].Steps) >= minSteps {
		windows = append(windows, reports[0].halves(scale))
	}
	for i := 1; i < len(reports); i++ {
		windows = append(windows, reports[i].window(reports[i-1].Loss, scale))
	}

	isStale := h.isStale(reports)
	if len(windows) == 0 {
		if isStale {
			return Growing, &Window{IsStale: true}
		}
		return Growing, nil
	}
	phase, last := Growing, &windows[len(windows)-1]
	for i := range windows[:len(windows)-1] {
		phase = phase.next(windows[i].growth(false) >= o.threshold())
	}
	last.IsStale, last.IsDiverging = isStale, isDiverging(windows)
	return phase, last
}

// scale returns the divisor that makes the losses of different jobs comparable: the predicted fall of
// the loss, or its largest value.
func (h *History) scale() float64 {
	if h.Final != nil {
		if fall := h.First - *h.Final; fall > 0 && !math.IsInf(fall, 1) {
			return fall
		}
	}
	if h.Largest > 0 {
		return h.Largest
	}
	return 1
}

// isStale reports whether the job has been silent for too long.
func (h *History) isStale(reports []Report) bool {
	sum := 0.0
	for i := range reports {
		sum += reports[i].Seconds
	}
	return sum > 0 && h.SilentSeconds > staleReports*sum/float64(len(reports))
}

// window returns the window from a previous loss to the report.
func (r *Report) window(previous, scale float64) Window {
	return Window{
		Seconds:     r.Seconds,
		Before:      previous / scale,
		After:       r.Loss / scale,
		CPURatio:    r.CPURatio,
		IORatio:     r.IORatio,
		IOWaitRatio: r.IOWaitRatio,
	}
}

// halves returns the window between the halves of the steps of a report.
func (r *Report) halves(scale float64) Window {
	middle := len(r.Steps) / 2
	second := *r
	second.Seconds, second.Loss = r.Seconds/2, mean(r.Steps[middle:])
	return second.window(mean(r.Steps[:middle]), scale)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// isDiverging reports whether the loss rose in each of the last windows, and by enough.
func isDiverging(windows []Window) bool {
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
