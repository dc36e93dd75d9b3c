package usage

import (
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestTotals_Since(t *testing.T) {
	own, other := "/c/job", "/c/other"
	tree := func(cpu, resident float64) counters {
		return counters{
			cpuSeconds:   &cpu,
			memoryBytes:  &resident,
			readBytes:    ptr(10 * cpu),
			writtenBytes: ptr(20 * cpu),
		}
	}
	for _, test := range []struct {
		name          string
		before, after Totals
		want          schemas.Epoch
	}{
		{"the cgroup takes precedence",
			Totals{
				at:       noon,
				tree:     tree(1, 50),
				cgroup:   own,
				counted:  counters{cpuSeconds: ptr(2.0)},
				pressure: map[string]stallTime{"cpu": {ptr(1.0), ptr(1.0)}, "io": {ptr(0.0), nil}},
			},
			Totals{
				at:     noon.Add(4 * time.Second),
				tree:   tree(3, 60),
				cgroup: own,
				counted: counters{
					cpuSeconds:  ptr(7.0),
					memoryBytes: ptr(40.0),
				},
				pressure: map[string]stallTime{"cpu": {ptr(3.0), ptr(2.0)}, "io": {ptr(0.0), nil}},
			},
			schemas.Epoch{
				JobCPUSeconds:       ptr(5.0),
				JobMemoryBytes:      ptr(40.0),
				JobReadBytes:        ptr(20.0),
				JobWrittenBytes:     ptr(40.0),
				JobCPUPressureRatio: ptr(0.5),
				JobIOPressureRatio:  ptr(0.0),
			}},
		{"figures that the cgroup does not count",
			Totals{
				at:      noon,
				tree:    tree(1, 50),
				cgroup:  own,
				counted: counters{cpuSeconds: ptr(2.0)},
			}, Totals{
				at:      noon.Add(time.Second),
				tree:    tree(3, 60),
				cgroup:  own,
				counted: counters{cpuSeconds: ptr(7.0)},
			},
			schemas.Epoch{
				JobCPUSeconds:   ptr(5.0),
				JobMemoryBytes:  ptr(60.0),
				JobReadBytes:    ptr(20.0),
				JobWrittenBytes: ptr(40.0),
			}},
		{
			"another cgroup",
			Totals{
				at:       noon,
				tree:     tree(1, 50),
				cgroup:   own,
				counted:  counters{cpuSeconds: ptr(2.0)},
				pressure: map[string]stallTime{"cpu": {some: ptr(1.0)}},
			},
			Totals{
				at:       noon.Add(time.Second),
				tree:     tree(3, 60),
				cgroup:   other,
				counted:  counters{cpuSeconds: ptr(9.0)},
				pressure: map[string]stallTime{"cpu": {some: ptr(1.5)}},
			},
			schemas.Epoch{
				JobCPUSeconds:   ptr(2.0),
				JobMemoryBytes:  ptr(60.0),
				JobReadBytes:    ptr(20.0),
				JobWrittenBytes: ptr(40.0),
			},
		},
		{
			"after the job has ended",
			Totals{at: noon, tree: tree(1, 50), cgroup: own, counted: counters{cpuSeconds: ptr(2.0)}},
			Totals{
				at:      noon.Add(time.Second),
				tree:    counters{cpuSeconds: ptr(3.0)},
				cgroup:  own,
				counted: counters{cpuSeconds: ptr(3.5), memoryBytes: ptr(4.0)},
			},
			schemas.Epoch{JobCPUSeconds: ptr(1.5)},
		},
		{
			"threads that waited for a CPU",
			Totals{at: noon, tree: counters{cpuWaitSeconds: ptr(1.0)}},
			Totals{at: noon.Add(4 * time.Second), tree: counters{cpuWaitSeconds: ptr(2.0)}},
			schemas.Epoch{JobCPUPressureRatio: ptr(0.25)},
		},
		{
			"threads that waited for a CPU, in a cgroup without pressure",
			Totals{at: noon, tree: counters{cpuWaitSeconds: ptr(1.0)}, cgroup: "/job"},
			Totals{at: noon.Add(4 * time.Second), tree: counters{cpuWaitSeconds: ptr(2.0)}, cgroup: "/job"},
			schemas.Epoch{JobCPUPressureRatio: ptr(0.25)},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got schemas.Epoch
			test.after.Since(test.before).Fill(&got, 1)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Since() (-want +got):\n%s", diff)
			}
		})
	}
	var half schemas.Epoch
	Used{
		counters: counters{cpuSeconds: ptr(4.0), memoryBytes: ptr(9.0)},
	}.Fill(&half, 2)
	if *half.JobCPUSeconds != 2 || *half.JobMemoryBytes != 9 {
		t.Errorf("one of two epochs = %+v, want half of each counter", half)
	}
}
