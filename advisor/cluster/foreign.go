package cluster

import (
	"courier/schemas"
	"math"
	"time"
)

const (
	// foreignWindow is the time constant of the means of a node's foreign load.
	foreignWindow = 20 * time.Second
	// foreignStale is the age at which a foreign load becomes unknown again. A sample that arrives
	// later than this is ignored.
	foreignStale = time.Minute
)

// ForeignLoad is the load of a node that no job causes, as exponentially weighted means.
type ForeignLoad struct {
	CPU, IOWait RecentMean
}

// RecentMean is an exponentially weighted mean of ratios.
type RecentMean struct {
	Value float64
	At    time.Time // of the last measurement, by the server's clock; zero if there is none
}

// add adds a measurement over some seconds; an unknown ratio changes nothing.
func (m *RecentMean) add(r schemas.Ratio, seconds float64, at time.Time) {
	if !r.Known {
		return
	}
	if m.stale(at) {
		*m = RecentMean{r.Value, at}
		return
	}
	m.Value += (1 - math.Exp(-seconds/foreignWindow.Seconds())) * (r.Value - m.Value)
	m.At = at
}

func (m *RecentMean) stale(now time.Time) bool {
	return m.At.IsZero() || now.Sub(m.At) > foreignStale
}

// Ratio returns the mean rounded to tenths, or an unknown ratio if the mean is stale.
func (m *RecentMean) Ratio(now time.Time) schemas.Ratio {
	if m.stale(now) {
		return schemas.Ratio{}
	}
	return schemas.RatioOf(m.Value).Tenths()
}

// add adds a measurement over some seconds.
func (l *ForeignLoad) add(f schemas.Foreign, seconds float64, at time.Time) {
	l.CPU.add(f.CPU, seconds, at)
	l.IOWait.add(f.IOWait, seconds, at)
}

// ForeignOf returns the foreign load of some nodes, in their order.
func (c *Cluster) Foreign(nodes []string, now time.Time) []schemas.Foreign {
	loads := make([]schemas.Foreign, len(nodes))
	for i, name := range nodes {
		if n := c.nodes[name]; n != nil {
			loads[i] = schemas.Foreign{CPU: n.Foreign.CPU.Ratio(now), IOWait: n.Foreign.IOWait.Ratio(now)}
		}
	}
	return loads
}

// learnForeign updates the foreign load of a node from a sample: the load that its running jobs do
// not explain. It ignores a sample during which a job came or left, because the load of that job
// was not measured.
func (c *Cluster) learnForeign(n *Node, s *schemas.Sample, storedAt time.Time) {
	interval := time.Duration(s.IntervalSeconds * float64(time.Second))
	if storedAt.Sub(s.At) > foreignStale || n.Changed.After(storedAt.Add(-interval)) {
		return
	}
	known := schemas.Known{HasIOWait: true}
	for _, j := range n.Running {
		known.Add(j.Usage.Known(j.ProcessesPerNode()), 1)
	}
	f := schemas.ForeignOf(
		s.Cores, schemas.RatioAt(s.CPURatio), schemas.RatioAt(s.IOWaitRatio), known,
	)
	n.Foreign.add(f, s.IntervalSeconds, storedAt)
}

// foreignDuring returns the foreign load during an epoch, and updates the foreign load of the node.
// before is the end of the previous epoch, or the start of the run. The result is unknown if a job
// came or left during the epoch. It depends on job events only, so that a replay repeats it.
func (c *Cluster) foreignDuring(
	j *Job, e *schemas.Epoch, before, storedAt time.Time,
) (f schemas.Foreign) {
	j.Usage = schemas.UsageOf(e, before)
	if len(e.Nodes) != 1 {
		return f
	}
	n := c.useNode(e.Nodes[0])
	seconds := time.Duration(e.DurationSeconds * float64(time.Second))
	if storedAt.Sub(e.At) > foreignStale || n.Changed.After(storedAt.Add(-seconds)) {
		return f
	}
	var others []schemas.Span
	for _, o := range n.Running {
		others = append(others, schemas.Span{
			JobID: o.ID, Nodes: o.Setting.Nodes, CPUs: o.Setting.CPUs, Usage: o.Usage,
		})
	}
	f = schemas.ForeignDuring(e, before, others)
	n.Foreign.add(f, e.DurationSeconds, storedAt)
	return f
}

// ForeignOf returns the current foreign load of the nodes of a running job. If the last epoch was
// shorter than foreignWindow, it is a newer measurement than the mean, and is used instead.
func (c *Cluster) ForeignOf(j *Job, now time.Time) []schemas.Foreign {
	loads := c.Foreign(j.Setting.Nodes, now)
	if len(j.ObservedEpochs) == 0 || len(loads) != 1 || now.Sub(j.ProgressAt) > foreignStale {
		return loads
	}
	last := &j.ObservedEpochs[len(j.ObservedEpochs)-1]
	if last.Seconds > foreignWindow.Seconds() {
		return loads
	}
	if r := last.Load.ForeignCPURatio; r.Known {
		loads[0].CPU = r
	}
	if r := last.Load.ForeignIOWaitRatio; r.Known {
		loads[0].IOWait = r
	}
	return loads
}
