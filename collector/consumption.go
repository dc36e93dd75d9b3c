package collector

import (
	"maps"
	"time"

	"courier/schemas"
)

// resources are those of which pressure is told.
var resources = []string{"cpu", "io", "memory"}

// consumption is what a job took until an instant, by its process tree and by
// its cgroup, where it has one of its own.
type consumption struct {
	at       time.Time // carries the monotonic clock
	tree     usage
	waits    *waits // nil: the kernel does not tell
	group    group
	counted  usage            // by the group
	pressure map[string]stall // of the group, by resource
}

// spent is what a job took between two instants. What is not known is nil.
type spent struct {
	usage
	ioWaitSeconds *float64
	some, full    map[string]*float64 // share of the time in which tasks waited, by resource
	cgroup        []string            // figures that the cgroup told
}

// since returns what was taken between an earlier instant and c. A cgroup counts
// whoever ended meanwhile, and nobody twice: it is believed before the tree.
func (c consumption) since(earlier consumption) spent {
	s := spent{usage: c.tree.since(earlier.tree), ioWaitSeconds: waitedBetween(earlier.waits, c.waits), some: map[string]*float64{}, full: map[string]*float64{}}
	if len(c.group) == 0 || !maps.Equal(c.group, earlier.group) {
		return s
	}
	counted := c.counted.since(earlier.counted)
	if counted.cpuSeconds != nil {
		s.cpuSeconds, s.cgroup = counted.cpuSeconds, append(s.cgroup, schemas.FigureCPU)
	}
	if counted.memoryBytes != nil && s.memoryBytes != nil { // of a job that has ended, little but caches are left
		s.memoryBytes, s.cgroup = counted.memoryBytes, append(s.cgroup, schemas.FigureMemory)
	}
	if counted.readBytes != nil && counted.writtenBytes != nil {
		s.readBytes, s.writtenBytes, s.cgroup = counted.readBytes, counted.writtenBytes, append(s.cgroup, schemas.FigureIO)
	}
	seconds := c.at.Sub(earlier.at).Seconds()
	for _, r := range resources {
		s.some[r], s.full[r] = pressureBetween(earlier.pressure[r], c.pressure[r], seconds)
	}
	return s
}

// fill writes what was spent into an event of one of the epochs that share it.
func (s spent) fill(e *schemas.Epoch, sharers float64) {
	part := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		p := *v / sharers
		return &p
	}
	e.JobCPUSeconds, e.JobMemoryBytes, e.JobReadBytes, e.JobWrittenBytes = part(s.cpuSeconds), s.memoryBytes, part(s.readBytes), part(s.writtenBytes)
	e.JobIOWaitSeconds, e.JobCgroupFigures = part(s.ioWaitSeconds), s.cgroup
	e.JobCPUPressureRatio, e.JobCPUFullPressureRatio = s.some["cpu"], s.full["cpu"]
	e.JobIOPressureRatio, e.JobIOFullPressureRatio = s.some["io"], s.full["io"]
	e.JobMemoryPressureRatio, e.JobMemoryFullPressureRatio = s.some["memory"], s.full["memory"]
}
