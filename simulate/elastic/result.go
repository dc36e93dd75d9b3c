package elastic

import (
	"io"
	"slices"
	"time"
)

// TraceScore is what a policy reached on a trace.
type TraceScore struct {
	Policy string  `json:"policy"`
	Jobs   int     `json:"jobs"`
	Kept   int     `json:"kept"`
	Ratio  float64 `json:"ratio"` // kept / jobs

	Refused int `json:"refused"`
	// Broken counts the admitted jobs that were not kept.
	Broken       int     `json:"broken_promises"`
	BrokenRatio  float64 `json:"broken_ratio"` // broken / jobs
	BatchChanged int     `json:"batch_changed"`

	Moments         int     `json:"moments"`
	HeldGPUHours    float64 `json:"held_gpu_hours"`
	PauseGPUHours   float64 `json:"pause_gpu_hours"` // part of the held ones that pauses took
	Decisions       int     `json:"decisions"`
	DecisionSeconds float64 `json:"decision_p99_seconds"`

	Schedule []Stretch `json:"-"`
}

func newResult(name string, w *world, v *Verified, schedule []Stretch,
	times []time.Duration) *TraceScore {
	r := &TraceScore{
		Policy:        name,
		Jobs:          len(w.jobs),
		Kept:          v.Kept,
		Ratio:         float64(v.Kept) / float64(len(w.jobs)),
		Moments:       v.Moments,
		HeldGPUHours:  v.HeldSeconds / 3600,
		PauseGPUHours: v.PauseSeconds / 3600,
		Decisions:     len(times),
		Schedule:      schedule,
	}
	for _, j := range w.jobs {
		switch {
		case !j.admitted:
			r.Refused++
		case !v.Ended[j.ID]:
			r.Broken++
		}
		if j.admitted && j.chosen > 0 {
			r.BatchChanged++
		}
	}
	r.BrokenRatio = float64(r.Broken) / float64(r.Jobs)
	r.DecisionSeconds = quantile(times, 0.99).Seconds()
	return r
}

// quantile returns the smallest value that at least this ratio of the values does not exceed.
func quantile(values []time.Duration, ratio float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(ratio*float64(len(values))))]
}

// WriteSchedule writes the schedule of the policy as CSV.
func (r *TraceScore) WriteSchedule(out io.Writer) error { return WriteSchedule(out, r.Schedule) }
