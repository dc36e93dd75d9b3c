package fit_test

import (
	"time"

	"courier/policy"
	"courier/policy/fit"
	"courier/policy/speed"
	"courier/policy/speed/speedtest"
)

var (
	facts   = speedtest.Facts
	truth   = speedtest.Truth
	largest = speedtest.Largest
	speeds  = truth.Speeds(largest)
)

// reportOf returns the exact telemetry of a job in a shape.
func reportOf(m *speed.KnownModel, s speed.Shape) speed.StepReport {
	c, f := &m.Coefficients, &m.Facts
	workers, servers, cores := float64(s.Workers), float64(s.Servers), float64(s.WorkerCores)
	step := m.StepSeconds(s)
	return speed.StepReport{
		Shape:          s,
		StepSeconds:    step,
		WorkerCPURatio: c[1] * f.SamplesPerWorker / cores / step,
		ServerCPURatio: c[2] * workers / (servers * float64(s.ServerCores)) / step,
		LinkRatio:      c[3] * 2 * f.ModelBytes / f.BytesPerSecond * max(workers/servers, 1) / step,
	}
}

// clusterView is a cluster in which nothing but trainings runs.
type clusterView struct {
	FreeCores  int
	QueuedJobs int
	Jobs       []training
}

type training struct {
	policy.Training
	ID       string
	Deadline time.Time
}

// resizing is a move with the shapes before and after it.
type resizing struct {
	policy.Move
	From, To speed.Shape
}

// planAt returns the moves of the policy, and what it remembers.
func planAt(v *clusterView, at time.Time, largest speed.Shape) (all []resizing, records map[string]policy.Record) {
	view, p := viewAt(v, at), fit.New(largest)
	moves := p.Plan(view)
	for _, m := range moves {
		all = append(all, resizing{m, jobOf(v, m.Job).Shape, m.Shape})
	}
	return all, p.Remember(view, moves)
}

func viewAt(v *clusterView, at time.Time) *policy.View {
	view := &policy.View{Now: at, Units: v.FreeCores, Queue: make([]policy.Job, v.QueuedJobs)}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		view.Units += j.Shape.Cores()
		view.Jobs = append(view.Jobs, policy.Job{
			ID: j.ID, Units: j.Shape.Cores(), Deadline: j.Deadline, Training: &j.Training,
			Options: make([]policy.Option, 1),
		})
	}
	return view
}
