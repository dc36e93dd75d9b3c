package collector

import (
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestConsumption_Since(t *testing.T) {
	own, other := group{onUnified: "/c/job"}, group{onUnified: "/c/else"}
	tree := func(cpu, resident float64) usage {
		return usage{cpuSeconds: &cpu, memoryBytes: &resident, readBytes: ptr(10 * cpu), writtenBytes: ptr(20 * cpu)}
	}
	for _, test := range []struct {
		name          string
		before, after consumption
		want          schemas.Epoch
	}{
		{"the cgroup is believed before the tree",
			consumption{at: noon, tree: tree(1, 50), group: own, counted: usage{cpuSeconds: ptr(2.0), readBytes: ptr(0.0), writtenBytes: ptr(0.0)},
				pressure: map[string]stall{"cpu": {ptr(1.0), ptr(1.0)}, "io": {ptr(0.0), nil}}},
			consumption{at: noon.Add(4 * time.Second), tree: tree(3, 60), group: own, counted: usage{cpuSeconds: ptr(7.0), memoryBytes: ptr(40.0), readBytes: ptr(5.0), writtenBytes: ptr(6.0)},
				pressure: map[string]stall{"cpu": {ptr(3.0), ptr(2.0)}, "io": {ptr(0.0), nil}}},
			schemas.Epoch{JobCPUSeconds: ptr(5.0), JobMemoryBytes: ptr(40.0), JobReadBytes: ptr(5.0), JobWrittenBytes: ptr(6.0), JobCgroupFigures: []string{"cpu", "memory", "io"},
				JobCPUPressureRatio: ptr(0.5), JobCPUFullPressureRatio: ptr(0.25), JobIOPressureRatio: ptr(0.0)}},
		{"what it does not count is the tree's",
			consumption{at: noon, tree: tree(1, 50), group: own, counted: usage{cpuSeconds: ptr(2.0)}}, consumption{at: noon.Add(time.Second), tree: tree(3, 60), group: own, counted: usage{cpuSeconds: ptr(7.0)}},
			schemas.Epoch{JobCPUSeconds: ptr(5.0), JobMemoryBytes: ptr(60.0), JobReadBytes: ptr(20.0), JobWrittenBytes: ptr(40.0), JobCgroupFigures: []string{"cpu"}}},
		{"it went elsewhere", consumption{at: noon, tree: tree(1, 50), group: own, counted: usage{cpuSeconds: ptr(2.0)}, pressure: map[string]stall{"cpu": {some: ptr(1.0)}}},
			consumption{at: noon.Add(time.Second), tree: tree(3, 60), group: other, counted: usage{cpuSeconds: ptr(9.0)}, pressure: map[string]stall{"cpu": {some: ptr(1.5)}}},
			schemas.Epoch{JobCPUSeconds: ptr(2.0), JobMemoryBytes: ptr(60.0), JobReadBytes: ptr(20.0), JobWrittenBytes: ptr(40.0)}},
		{"it has ended", consumption{at: noon, tree: tree(1, 50), group: own, counted: usage{cpuSeconds: ptr(2.0)}},
			consumption{at: noon.Add(time.Second), tree: usage{cpuSeconds: ptr(3.0)}, group: own, counted: usage{cpuSeconds: ptr(3.5), memoryBytes: ptr(4.0)}},
			schemas.Epoch{JobCPUSeconds: ptr(1.5), JobCgroupFigures: []string{"cpu"}}},
		{"threads come", consumption{waits: &waits{map[int]float64{1: 1, 2: 5}, 7}}, consumption{waits: &waits{map[int]float64{1: 1.5, 2: 5, 4: 2}, 7}}, schemas.Epoch{JobIOWaitSeconds: ptr(2.5)}},
		{"a thread ended", consumption{waits: &waits{map[int]float64{1: 1, 2: 5}, 7}}, consumption{waits: &waits{map[int]float64{1: 1.5}, 7}}, schemas.Epoch{}},
		{"its number was given away", consumption{waits: &waits{map[int]float64{1: 1, 2: 5}, 7}}, consumption{waits: &waits{map[int]float64{1: 1.5, 2: 0}, 7}}, schemas.Epoch{}},
		{"a child came and ended", consumption{waits: &waits{}}, consumption{waits: &waits{map[int]float64{1: 0}, 90}}, schemas.Epoch{}},
		{"no thread waited", consumption{waits: &waits{}}, consumption{waits: &waits{map[int]float64{1: 0}, 0}}, schemas.Epoch{JobIOWaitSeconds: ptr(0.0)}},
		{"delays are not counted", consumption{waits: &waits{}}, consumption{}, schemas.Epoch{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got schemas.Epoch
			test.after.since(test.before).fill(&got, 1)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("since() (-want +got):\n%s", diff)
			}
		})
	}
	var half schemas.Epoch
	spent{usage: usage{cpuSeconds: ptr(4.0), memoryBytes: ptr(9.0)}, ioWaitSeconds: ptr(1.0)}.fill(&half, 2)
	if *half.JobCPUSeconds != 2 || *half.JobMemoryBytes != 9 || *half.JobIOWaitSeconds != 0.5 {
		t.Errorf("one of two that share = %+v, want half of what counts up", half)
	}
}
