package cluster

import (
	"slices"
	"time"

	"courier/policy"
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

// AllowedCPUs returns the numbers of CPUs that a running elastic job may hold, ascending: those of
// its request without the barred ones. The current number is always allowed.
func (j *Job) AllowedCPUs(now time.Time) []int {
	return slices.DeleteFunc(slices.Sorted(slices.Values(j.Request.CPUs)), func(n int) bool {
		return uint32(n) != j.Setting.CPUs && slices.ContainsFunc(j.BarredMoves, func(m BarredMove) bool {
			return m.CPUs == uint32(n) && m.Until.After(now)
		})
	})
}

// grown remembers the CPUs of a job before it grew by its own epochs.
func (j *Job) grown(e *schemas.Moved) bool {
	isGrowth := policy.Reason(e.Rule) == policy.ReasonOwnEpochs && e.ToCPUs > e.FromCPUs
	if !isGrowth || j.GrownFrom > 0 || j.Setting.CPUs < e.FromCPUs {
		return false
	}
	j.GrownFrom = e.FromCPUs
	return true
}

// IsElasticNow reports whether the CPUs of the running job can change.
func (j *Job) IsElasticNow() bool {
	return j.State == schemas.StateRunning && j.IsElastic && len(j.Setting.Nodes) == 1 &&
		j.Request != nil && len(j.Request.CPUs) > 1
}
