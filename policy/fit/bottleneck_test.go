package fit_test

import (
	"slices"
	"testing"

	"courier/policy/fit"
)

var shape = fit.Shape{Workers: 4, WorkerCores: 2, Servers: 2, ServerCores: 2}

// window returns three equal reports of a job that shows no bottleneck, after a change.
func window(change func(r *fit.StepReport)) []fit.StepReport {
	r := fit.StepReport{
		Shape: shape, StepSeconds: 1, WorkerCPURatio: 0.5, ServerCPURatio: 0.5, StragglerRatio: 1,
	}
	change(&r)
	return []fit.StepReport{r, r, r}
}

// Each row of the table of bottlenecks, with its threshold and just below it.
func TestFindBottleneck_FollowsTheTable(t *testing.T) {
	tests := []struct {
		name    string
		change  func(r *fit.StepReport)
		scaling fit.Scaling
		want    fit.Bottleneck
	}{
		{"memory", func(r *fit.StepReport) { r.MemoryRatio = 0.9 }, fit.Scaling{}, fit.BottleneckMemory},
		{"memory below", func(r *fit.StepReport) { r.MemoryRatio = 0.89 },
			fit.Scaling{SurplusLossRatio: 1}, fit.BottleneckNone},
		{"memory pressure", func(r *fit.StepReport) { r.MemoryPressureRatio = 0.1 },
			fit.Scaling{}, fit.BottleneckMemory},
		{"straggler", func(r *fit.StepReport) { r.StragglerRatio = 1.3 }, fit.Scaling{}, fit.BottleneckStraggler},
		{"straggler below", func(r *fit.StepReport) { r.StragglerRatio = 1.29 },
			fit.Scaling{SurplusLossRatio: 1}, fit.BottleneckNone},
		{"IO-wait", func(r *fit.StepReport) { r.IOWaitRatio = 0.15 }, fit.Scaling{}, fit.BottleneckInput},
		{"IO pressure", func(r *fit.StepReport) { r.IOPressureRatio = 0.2 }, fit.Scaling{}, fit.BottleneckInput},
		{"link", func(r *fit.StepReport) { r.LinkRatio = 0.8 }, fit.Scaling{}, fit.BottleneckNetwork},
		{"slower with workers", func(r *fit.StepReport) { r.WorkerCPURatio = 0.6 },
			fit.Scaling{SlowerWithWorkers: true}, fit.BottleneckNetwork},
		{"slower with busy workers", func(r *fit.StepReport) { r.WorkerCPURatio = 0.61 },
			fit.Scaling{SlowerWithWorkers: true, SurplusLossRatio: 1}, fit.BottleneckNone},
		{"server CPU", func(r *fit.StepReport) { r.ServerCPURatio = 0.85 }, fit.Scaling{}, fit.BottleneckServerCPU},
		{"worker CPU", func(r *fit.StepReport) { r.WorkerCPURatio = 0.85 }, fit.Scaling{}, fit.BottleneckWorkerCPU},
		{"parallelism", func(r *fit.StepReport) {}, fit.Scaling{LastWorkerGainRatio: 0.2}, fit.BottleneckParallelism},
		{"surplus", func(r *fit.StepReport) { r.ServerCPURatio = 0.4 },
			fit.Scaling{SurplusLossRatio: 0.02}, fit.BottleneckSurplus},
		{"idle but needed", func(r *fit.StepReport) { r.ServerCPURatio = 0.4 },
			fit.Scaling{SurplusLossRatio: 0.03}, fit.BottleneckNone},
		{"the first match wins", func(r *fit.StepReport) { r.MemoryRatio, r.LinkRatio, r.WorkerCPURatio = 1, 1, 1 },
			fit.Scaling{}, fit.BottleneckMemory},
	}
	for _, test := range tests {
		if got := fit.FindBottleneck(window(test.change), test.scaling); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestFindBottleneck_AStragglerIsSlowInEveryReport(t *testing.T) {
	w := window(func(r *fit.StepReport) { r.StragglerRatio = 1.5 })
	w[1].StragglerRatio = 1
	if got := fit.FindBottleneck(w, fit.Scaling{SurplusLossRatio: 1}); got != fit.BottleneckNone {
		t.Errorf("%q, want none: one report shows equal workers", got)
	}
}

func TestIsStable(t *testing.T) {
	step := func(seconds ...float64) (w []fit.StepReport) {
		for _, s := range seconds {
			w = append(w, fit.StepReport{Shape: shape, StepSeconds: s})
		}
		return w
	}
	moved := step(1, 1, 1)
	moved[2].Shape.Workers++
	tests := map[string]struct {
		window []fit.StepReport
		want   bool
	}{
		"three equal":        {step(1, 1, 1), true},
		"two":                {step(1, 1), false},
		"variation of 0.09":  {step(0.91, 1, 1.09), true},
		"variation of 0.11":  {step(0.89, 1, 1.11), false},
		"two shapes":         {moved, false},
		"a step of no time":  {step(1, 0, 1), false},
		"five with an outer": {step(1, 1, 1, 1, 3), false},
	}
	for name, test := range tests {
		if got := fit.IsStable(test.window); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// Each row of the table of bottlenecks, with the shapes that it suggests.
func TestBottleneck_SuggestsShapes(t *testing.T) {
	mean := fit.StepReport{Shape: shape, WorkerCPURatio: 0.3, ServerCPURatio: 0.9}
	exhausted := mean
	exhausted.ServerCPURatio = 0.99
	with := func(workers, cores, servers, serverCores int) fit.Shape {
		return fit.Shape{Workers: workers, WorkerCores: cores, Servers: servers, ServerCores: serverCores}
	}
	tests := []struct {
		bottleneck fit.Bottleneck
		mean       fit.StepReport
		shapes     []fit.Shape
	}{
		{fit.BottleneckMemory, mean, nil},
		{fit.BottleneckStraggler, mean, nil},
		{fit.BottleneckInput, mean, []fit.Shape{with(3, 2, 2, 2)}},
		{fit.BottleneckNetwork, mean, []fit.Shape{with(4, 2, 3, 2), with(3, 2, 2, 2)}},
		{fit.BottleneckServerCPU, mean, []fit.Shape{with(4, 2, 2, 3), with(4, 2, 3, 2)}},
		{fit.BottleneckServerCPU, exhausted,
			[]fit.Shape{with(4, 2, 2, 3), with(4, 2, 3, 2), with(3, 2, 2, 2)}},
		{fit.BottleneckWorkerCPU, mean, []fit.Shape{with(4, 3, 2, 2), with(5, 2, 2, 2)}},
		{fit.BottleneckParallelism, mean, []fit.Shape{with(5, 2, 2, 2)}},
		{fit.BottleneckSurplus, mean, []fit.Shape{with(4, 1, 2, 2)}},
		{fit.BottleneckNone, mean, nil},
	}
	for _, test := range tests {
		if got := test.bottleneck.Shapes(&test.mean); !slices.Equal(got, test.shapes) {
			t.Errorf("%s: shapes %v, want %v", test.bottleneck, got, test.shapes)
		}
	}
}
