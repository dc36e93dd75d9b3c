package advisor

import (
	"slices"
	"time"

	"courier/schemas"
)

const (
	// barTime is how long a number of CPUs is not planned for a job after its runner has undone or
	// refused the move to it (resource policies, section 1.3).
	barTime = 10 * time.Minute

	// maxBarredMoves bounds the barred moves of a job. The one that ends first is dropped first.
	maxBarredMoves = 16
)

// BarredMove is a number of CPUs that must not be planned for a job.
type BarredMove struct {
	CPUs  uint32    `json:"cpus"`
	Until time.Time `json:"until"`
}

// moved records a move of CPUs: it takes the CPUs of one that is in effect, bars one that the runner
// has undone or refused, and remembers the CPUs of a job that has grown by its own epochs. It returns
// false if that changes nothing, because the event is a duplicate, is too old, or describes another
// outcome.
func (j *Job) moved(e *schemas.Moved, storedAt time.Time) bool {
	if e.Move != schemas.MoveCPUs || e.Run != j.Run || j.State != schemas.StateRunning {
		return false
	}
	switch e.Outcome {
	case schemas.MoveApplied:
		return j.applied(e)
	case schemas.MoveCarriedOut:
		return j.grown(e)
	}
	if e.Outcome != schemas.MoveUndone && e.Outcome != schemas.MoveRefused {
		return false
	}
	until := j.correctedTime(e.At, storedAt).Add(barTime)
	if !until.After(storedAt) {
		return false
	}

	// The slice is copied, because snapshots share it.
	var kept []BarredMove
	for _, m := range j.BarredMoves {
		if m.CPUs == e.ToCPUs && !m.Until.Before(until) {
			return false
		}
		if m.CPUs != e.ToCPUs && m.Until.After(storedAt) {
			kept = append(kept, m)
		}
	}
	kept = append(kept, BarredMove{e.ToCPUs, until})
	slices.SortStableFunc(kept, func(a, b BarredMove) int { return a.Until.Compare(b.Until) })
	j.BarredMoves = kept[max(0, len(kept)-maxBarredMoves):]
	return true
}

// slack returns the time to the deadline minus the upper bound of the remaining time with the current
// CPUs; nil if one of them is unknown.
func (f *shareForecast) slack() *float64 {
	alt := f.alternatives[f.cpus]
	if f.Deadline.IsZero() || alt == nil || alt.UpperBoundSeconds == nil {
		return nil
	}
	seconds := f.Question.left() - *alt.UpperBoundSeconds
	return &seconds
}

// rejected returns the numbers of CPUs of the request that are neither the current one nor the target,
// and why the plan turned each of them down. free is the number of free CPUs of the node.
func (f *shareForecast) rejected(free int) (cpus []uint32, reasons []string) {
	for _, n := range slices.Sorted(slices.Values(slices.Concat(f.Counts, f.Barred))) {
		reason := "the policy prefers " + schemas.FormatCPUs(uint32(f.target))
		switch {
		case n == f.cpus || n == f.target:
			continue
		case f.isStarved && n > f.cpus:
			reason = "the job waits for its memory or storage"
		case slices.Contains(f.Barred, n):
			reason = "the runner undid or refused it recently"
		case f.alternatives[n] == nil:
			reason = "it was never measured"
		case n < f.cpus && !f.isLikely(n):
			reason = "the SLO would be at risk"
		case n > f.target && n > f.cpus+free:
			reason = "too few CPUs are free"
		}
		cpus, reasons = append(cpus, uint32(n)), append(reasons, reason)
	}
	return cpus, reasons
}

// allowedCPUs returns the numbers of CPUs that a running elastic job may hold, ascending: those of
// its request without the barred ones. The current number is always allowed.
func (j *Job) allowedCPUs(now time.Time) []int {
	return slices.DeleteFunc(slices.Sorted(slices.Values(j.Request.CPUs)), func(n int) bool {
		return uint32(n) != j.Setting.CPUs && slices.ContainsFunc(j.BarredMoves, func(m BarredMove) bool {
			return m.CPUs == uint32(n) && m.Until.After(now)
		})
	})
}
