package cluster

import (
	"time"

	"courier/schemas"
)

// LoadIntegral integrates the number of jobs and processes on a node over time, so that the
// difference of two copies gives the mean load between them. It is zero while no job runs.
type LoadIntegral struct {
	Node             string    `json:"node"`
	At               time.Time `json:"at,omitzero"`
	Jobs             float64   `json:"jobs"`
	Processes        float64   `json:"processes"`
	JobSeconds       float64   `json:"job_seconds"`
	ProcessesSeconds float64   `json:"processes_seconds"`
}

// extendTo extends the integral to a later time; an earlier time changes nothing.
func (t *LoadIntegral) extendTo(at time.Time) {
	if seconds := at.Sub(t.At).Seconds(); seconds > 0 {
		if !t.At.IsZero() {
			t.JobSeconds += seconds * t.Jobs
			t.ProcessesSeconds += seconds * t.Processes
		}
		t.At = at
	}
}

// change adds a job with some processes (sign 1) or removes it (sign -1).
func (t *LoadIntegral) change(sign, processes float64, at time.Time) {
	t.extendTo(at)
	t.Jobs += sign
	t.Processes += sign * processes
}

// LoadOnNode is a load and the hardware of the node that has it.
type LoadOnNode struct {
	schemas.Load
	On schemas.Hardware `json:"on,omitzero"`
}
