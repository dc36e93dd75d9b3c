package usage

import (
	"os"
	"time"

	"courier/schemas"
)

// resources are the resources for which pressure is measured.
var resources = []string{"cpu", "io", "memory"}

// Totals holds the resources that a job has used up to an instant.
type Totals struct {
	at       time.Time // has the monotonic clock
	isReaped bool      // the process had ended, and its parent had waited for it
	tree     counters  // of the process tree

	cgroup   string   // directory of the job's own; empty: none
	counted  counters // by the cgroup
	pressure map[string]stallTime
}

// Started returns the totals of a command that is about to start in a cgroup, which may be nil.
// The cgroup may have counted an earlier command.
func Started(c *Cgroup) Totals {
	zero := counters{cpuSeconds: new(float64), readBytes: new(float64), writtenBytes: new(float64)}
	t := Totals{at: time.Now(), tree: zero, cgroup: c.dir()}
	t.counted, t.pressure = readCgroup(t.cgroup)
	return t
}

// IsReaped reports whether the process was already gone, so that only its parent knows its CPU time.
func (t *Totals) IsReaped() bool { return t.isReaped }

// AddExited adds what is known about a command that has exited: its CPU time.
func (t *Totals) AddExited(state *os.ProcessState) {
	if t.tree.cpuSeconds == nil {
		t.tree.cpuSeconds = new((state.UserTime() + state.SystemTime()).Seconds())
	}
}

// Used is what a job used between two instants. An unknown figure is nil.
type Used struct {
	counters
	pressure map[string]stallTime // by resource, as shares of the time
}

// Since returns what was used between an earlier instant and t. The cgroup takes precedence over
// the process tree, because it includes processes that have ended, and counts each process once.
func (t Totals) Since(earlier Totals) Used {
	u := Used{
		counters: t.tree.since(earlier.tree),
		pressure: map[string]stallTime{},
	}
	seconds := t.at.Sub(earlier.at).Seconds()
	if waited := u.cpuWaitSeconds; waited != nil && seconds > 0 {
		// Threads that wait at the same time count twice.
		u.pressure["cpu"] = stallTime{some: new(min(1, *waited/seconds))}
	}
	if t.cgroup == "" || t.cgroup != earlier.cgroup {
		return u
	}

	counted := t.counted.since(earlier.counted)
	if counted.cpuSeconds != nil {
		u.cpuSeconds = counted.cpuSeconds
	}
	// The cgroup of a job that has ended holds little more than caches.
	if counted.memoryBytes != nil && u.memoryBytes != nil {
		u.memoryBytes = counted.memoryBytes
	}

	for r, after := range t.pressure {
		before := earlier.pressure[r]
		u.pressure[r] = stallTime{
			some: pressureRatio(before.some, after.some, seconds),
			full: pressureRatio(before.full, after.full, seconds),
		}
	}
	return u
}

// Fill writes the figures into the event of an epoch. Several epochs that ended together share
// what was used.
func (u Used) Fill(e *schemas.Epoch, epochs int) {
	share := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return new(*v / float64(epochs))
	}
	e.JobCPUSeconds = share(u.cpuSeconds)
	e.JobMemoryBytes = u.memoryBytes
	e.JobReadBytes, e.JobWrittenBytes = share(u.readBytes), share(u.writtenBytes)

	cpu, io, memory := u.pressure["cpu"], u.pressure["io"], u.pressure["memory"]
	e.JobCPUPressureRatio = cpu.some
	e.JobIOPressureRatio, e.JobIOFullPressureRatio = io.some, io.full
	e.JobMemoryPressureRatio, e.JobMemoryFullPressureRatio = memory.some, memory.full
}

// counters is what processes have used. An unknown figure is nil.
type counters struct {
	cpuSeconds     *float64 // user and system time
	cpuWaitSeconds *float64 // in which threads waited for a CPU; nil from a cgroup
	memoryBytes    *float64 // currently resident; shared pages count in each process
	readBytes      *float64 // from storage
	writtenBytes   *float64 // to storage
}

// since returns the increase since an earlier instant, and the current memory.
func (c counters) since(earlier counters) counters {
	return counters{
		cpuSeconds:     increase(earlier.cpuSeconds, c.cpuSeconds),
		cpuWaitSeconds: increase(earlier.cpuWaitSeconds, c.cpuWaitSeconds),
		memoryBytes:    c.memoryBytes,
		readBytes:      increase(earlier.readBytes, c.readBytes),
		writtenBytes:   increase(earlier.writtenBytes, c.writtenBytes),
	}
}

// increase returns the increase of a counter. It is unknown if the counter decreased, which
// happens if a process ended for which no process of the job waited.
func increase(before, after *float64) *float64 {
	if before == nil || after == nil || *after < *before {
		return nil
	}
	return new(*after - *before)
}
