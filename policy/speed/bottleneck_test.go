package speed_test

import (
	"slices"
	"testing"

	"courier/policy/speed"
)

var shape = speed.Shape{Workers: 4, WorkerCores: 2, Servers: 2, ServerCores: 2}

// window returns three equal reports of a job that shows no bottleneck, after a change.
func window(change func(r *speed.StepReport)) []speed.StepReport {
	r := speed.StepReport{
		Shape: shape, StepSeconds: 1, WorkerCPURatio: 0.5, ServerCPURatio: 0.5, StragglerRatio: 1,
	}
	change(&r)
	return []speed.StepReport{r, r, r}
}

// Each row of the table of bottlenecks, with its threshold and just below it.
func TestFindBottleneck_FollowsTheTable(t *testing.T) {
	tests := []struct {
		name    string
		change  func(r *speed.StepReport)
		scaling speed.Scaling
		want    speed.Bottleneck
	}{
		{"memory", func(r *speed.StepReport) { r.MemoryRatio = 0.9 }, speed.Scaling{}, speed.BottleneckMemory},
		{"memory below", func(r *speed.StepReport) { r.MemoryRatio = 0.89 },
			speed.Scaling{SurplusLossRatio: 1}, speed.BottleneckNone},
		{"memory pressure", func(r *speed.StepReport) { r.MemoryPressureRatio = 0.1 },
			speed.Scaling{}, speed.BottleneckMemory},
		{"straggler", func(r *speed.StepReport) { r.StragglerRatio = 1.3 },
			speed.Scaling{}, speed.BottleneckStraggler},
		{"straggler below", func(r *speed.StepReport) { r.StragglerRatio = 1.29 },
			speed.Scaling{SurplusLossRatio: 1}, speed.BottleneckNone},
		{"IO-wait", func(r *speed.StepReport) { r.IOWaitRatio = 0.15 }, speed.Scaling{}, speed.BottleneckInput},
		{"IO pressure", func(r *speed.StepReport) { r.IOPressureRatio = 0.2 },
			speed.Scaling{}, speed.BottleneckInput},
		{"link", func(r *speed.StepReport) { r.LinkRatio = 0.8 }, speed.Scaling{}, speed.BottleneckNetwork},
		{"slower with workers", func(r *speed.StepReport) { r.WorkerCPURatio = 0.6 },
			speed.Scaling{SlowerWithWorkers: true}, speed.BottleneckNetwork},
		{"slower with busy workers", func(r *speed.StepReport) { r.WorkerCPURatio = 0.61 },
			speed.Scaling{SlowerWithWorkers: true, SurplusLossRatio: 1}, speed.BottleneckNone},
		{"server CPU", func(r *speed.StepReport) { r.ServerCPURatio = 0.85 },
			speed.Scaling{}, speed.BottleneckServerCPU},
		{"worker CPU", func(r *speed.StepReport) { r.WorkerCPURatio = 0.85 },
			speed.Scaling{}, speed.BottleneckWorkerCPU},
		{"parallelism", func(r *speed.StepReport) {},
			speed.Scaling{LastWorkerGainRatio: 0.2}, speed.BottleneckParallelism},
		{"surplus", func(r *speed.StepReport) { r.ServerCPURatio = 0.4 },
			speed.Scaling{SurplusLossRatio: 0.02}, speed.BottleneckSurplus},
		{"idle but needed", func(r *speed.StepReport) { r.ServerCPURatio = 0.4 },
			speed.Scaling{SurplusLossRatio: 0.03}, speed.BottleneckNone},
		{"the first match wins", func(r *speed.StepReport) { r.MemoryRatio, r.LinkRatio, r.WorkerCPURatio = 1, 1, 1 },
			speed.Scaling{}, speed.BottleneckMemory},
	}
	for _, test := range tests {
		if got := speed.FindBottleneck(window(test.change), test.scaling); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestFindBottleneck_AStragglerIsSlowInEveryReport(t *testing.T) {
	w := window(func(r *speed.StepReport) { r.StragglerRatio = 1.5 })
	w[1].StragglerRatio = 1
	if got := speed.FindBottleneck(w, speed.Scaling{SurplusLossRatio: 1}); got != speed.BottleneckNone {
		t.Errorf("%q, want none: one report shows equal workers", got)
	}
}

func TestIsStable(t *testing.T) {
	step := func(seconds ...float64) (w []speed.StepReport) {
		for _, s := range seconds {
			w = append(w, speed.StepReport{Shape: shape, StepSeconds: s})
		}
		return w
	}
	moved := step(1, 1, 1)
	moved[2].Shape.Workers++
	tests := map[string]struct {
		window []speed.StepReport
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
		if got := speed.IsStable(test.window); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// Each row of the table of bottlenecks, with the shapes that it suggests.
func TestBottleneck_SuggestsShapes(t *testing.T) {
	mean := speed.StepReport{Shape: shape, WorkerCPURatio: 0.3, ServerCPURatio: 0.9}
	exhausted := mean
	exhausted.ServerCPURatio = 0.99
	with := func(workers, cores, servers, serverCores int) speed.Shape {
		return speed.Shape{Workers: workers, WorkerCores: cores, Servers: servers, ServerCores: serverCores}
	}
	tests := []struct {
		bottleneck speed.Bottleneck
		mean       speed.StepReport
		shapes     []speed.Shape
	}{
		{speed.BottleneckMemory, mean, nil},
		{speed.BottleneckStraggler, mean, nil},
		{speed.BottleneckInput, mean, []speed.Shape{with(3, 2, 2, 2)}},
		{speed.BottleneckNetwork, mean, []speed.Shape{with(4, 2, 3, 2), with(3, 2, 2, 2)}},
		{speed.BottleneckServerCPU, mean, []speed.Shape{with(4, 2, 2, 3), with(4, 2, 3, 2)}},
		{speed.BottleneckServerCPU, exhausted,
			[]speed.Shape{with(4, 2, 2, 3), with(4, 2, 3, 2), with(3, 2, 2, 2)}},
		{speed.BottleneckWorkerCPU, mean, []speed.Shape{with(4, 3, 2, 2), with(5, 2, 2, 2)}},
		{speed.BottleneckParallelism, mean, []speed.Shape{with(5, 2, 2, 2)}},
		{speed.BottleneckSurplus, mean, []speed.Shape{with(4, 1, 2, 2)}},
		{speed.BottleneckNone, mean, nil},
	}
	for _, test := range tests {
		if got := test.bottleneck.Shapes(&test.mean); !slices.Equal(got, test.shapes) {
			t.Errorf("%s: shapes %v, want %v", test.bottleneck, got, test.shapes)
		}
	}
}
