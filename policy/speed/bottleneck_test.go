package speed_test

import (
	"testing"

	"courier/policy/speed"
	"courier/schemas"
)

var shape = speed.Shape{Workers: 4, WorkerCores: 2, Servers: 2, ServerCores: 2}

// Each row of the table of bottlenecks, with its threshold and just below it.
func TestFindBottleneck_FollowsTheTable(t *testing.T) {
	tests := []struct {
		name        string
		report      speed.StepReport
		surplusLoss float64
		want        schemas.Bottleneck
	}{
		{"memory pressure", speed.StepReport{MemoryPressureRatio: 0.1}, 1, schemas.BottleneckMemory},
		{"memory pressure below", speed.StepReport{MemoryPressureRatio: 0.09}, 1, ""},
		{"IO-wait", speed.StepReport{IOWaitRatio: 0.15}, 1, schemas.BottleneckInput},
		{"IO pressure", speed.StepReport{IOPressureRatio: 0.2}, 1, schemas.BottleneckInput},
		{"waits for batches", speed.StepReport{InputWaitRatio: 0.2}, 1, schemas.BottleneckInput},
		{
			"waits for batches that its own CPUs prepare",
			speed.StepReport{InputWaitRatio: 0.9, WorkerCPURatio: 0.85}, 1, schemas.BottleneckCPU,
		},
		{"busy CPUs", speed.StepReport{WorkerCPURatio: 0.85}, 1, schemas.BottleneckCPU},
		{
			"waits for CPUs that it holds",
			speed.StepReport{WorkerCPURatio: 0.84, CPUPressureRatio: 0.3}, 1, schemas.BottleneckThreads,
		},
		{
			"waits for its only CPU",
			speed.StepReport{
				Shape: speed.Shape{Workers: 1, WorkerCores: 1}, WorkerCPURatio: 0.5, CPUPressureRatio: 0.3,
			}, 1, schemas.BottleneckCPU,
		},
		{"sleeps", speed.StepReport{WorkerCPURatio: 0.1, CPUPressureRatio: 0.49}, 1, ""},
		{"hardly waits", speed.StepReport{WorkerCPURatio: 0.84, CPUPressureRatio: 0.29}, 1, ""},
		{"surplus", speed.StepReport{WorkerCPURatio: 0.4}, 0.02, schemas.BottleneckSurplus},
		{"idle but needed", speed.StepReport{WorkerCPURatio: 0.4}, 0.03, ""},
		{"idle but waits", speed.StepReport{WorkerCPURatio: 0.4, CPUPressureRatio: 0.1}, 0, ""},
		{"an unknown use", speed.StepReport{}, 0, ""},
		{
			"the first match wins",
			speed.StepReport{MemoryPressureRatio: 1, WorkerCPURatio: 1}, 1, schemas.BottleneckMemory,
		},
	}
	for _, test := range tests {
		r := test.report
		if r.StepSeconds = 1; r.Shape.WorkerCores == 0 {
			r.Shape = shape
		}
		window := []speed.StepReport{r, r, r}
		if got := speed.FindBottleneck(window, test.surplusLoss); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
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
	waiting := step(1, 1)
	for i := range waiting {
		waiting[i].Shape.WorkerCores = 2
		waiting[i].WorkerCPURatio, waiting[i].CPUPressureRatio = 0.5, 0.5
	}
	tests := map[string]struct {
		window []speed.StepReport
		want   bool
	}{
		"three equal":        {step(1, 1, 1), true},
		"two":                {step(1, 1), false},
		"two that wait":      {waiting, true},
		"one that waits":     {waiting[:1], false},
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
