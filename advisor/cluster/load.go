package cluster

import (
	"time"

	"courier/schemas"
)

// LoadIntegral integrates the number of jobs and processes on a node over time, so that the
// difference of two copies gives the mean load between them.
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

// loadIntegrals are the integrals of the nodes with running jobs, by name.
type loadIntegrals map[string]*LoadIntegral

// change adds a job to its nodes (sign 1) or removes it from them (sign -1).
func (all loadIntegrals) change(s *schemas.Setting, sign float64, at time.Time) {
	for _, n := range s.Nodes {
		t := all[n]
		if t == nil {
			t = &LoadIntegral{Node: n}
			all[n] = t
		}
		t.extendTo(at)
		t.Jobs += sign
		t.Processes += sign * float64(s.CPUs)
	}
}

// prune drops the integrals of idle nodes. No job refers to them: a job that leaves its nodes loses
// its loadAtLastEpoch.
func (all loadIntegrals) prune(nodes []string) {
	for _, n := range nodes {
		if t := all[n]; t != nil && t.Jobs == 0 {
			delete(all, n)
		}
	}
}

// snapshot returns copies of the integrals of some nodes.
func (all loadIntegrals) snapshot(nodes []string, at time.Time) []LoadIntegral {
	var notes []LoadIntegral
	for _, n := range nodes {
		if t := all[n]; t != nil {
			t.extendTo(at)
			notes = append(notes, *t)
		}
	}
	return notes
}

// LoadOnNode is a load and the hardware of the node that has it.
type LoadOnNode struct {
	schemas.Load
	On schemas.Hardware `json:"on,omitzero"`
}
