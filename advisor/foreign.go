package advisor

import (
	"math"
	"time"

	"courier/schemas"
)

const (
	// foreignWindow is the time constant of the means of a node's foreign load.
	foreignWindow = 20 * time.Second
	// foreignStale is how long after its last measurement a foreign load is unknown again, and
	// how late a sample may be stored to count.
	foreignStale = time.Minute
)

// ForeignLoad is the foreign load of a node: exponentially weighted means of what was measured.
type ForeignLoad struct {
	CPU, IOWait RecentMean
}

// RecentMean is an exponentially weighted mean of ratios.
type RecentMean struct {
	Value float64
	At    time.Time // of the last measurement, by the server's clock; zero: there is none
}

// add takes a measurement over some seconds; an unknown one changes nothing.
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

// at returns the mean in steps of a tenth, unknown where it is stale.
func (m *RecentMean) at(now time.Time) schemas.Ratio {
	if m.stale(now) {
		return schemas.Ratio{}
	}
	return schemas.RatioOf(m.Value).Tenths()
}

// add takes what a measurement over some seconds found.
func (l *ForeignLoad) add(f schemas.Foreign, seconds float64, at time.Time) {
	l.CPU.add(f.CPU, seconds, at)
	l.IOWait.add(f.IOWait, seconds, at)
}

// foreignOf returns the foreign load of some nodes, in their order.
func (c *Cluster) foreignOf(nodes []string, now time.Time) []schemas.Foreign {
	loads := make([]schemas.Foreign, len(nodes))
	for i, name := range nodes {
		if n := c.nodes[name]; n != nil {
			loads[i] = schemas.Foreign{CPU: n.foreign.CPU.at(now), IOWait: n.foreign.IOWait.at(now)}
		}
	}
	return loads
}

// learnForeign learns the foreign load of a node from its sample: what the running jobs do not
// explain. A sample of a time in which a job came or went is left out, because nobody measured its
// part in it.
func (c *Cluster) learnForeign(n *Node, s *schemas.Sample, storedAt time.Time) {
	interval := time.Duration(s.IntervalSeconds * float64(time.Second))
	if storedAt.Sub(s.At) > foreignStale || n.changed.After(storedAt.Add(-interval)) {
		return
	}
	known := schemas.Known{HasIOWait: true}
	for _, j := range n.running {
		known.Add(j.usage.Known(j.processesPerNode()), 1)
	}
	f := schemas.ForeignOf(
		s.Cores, schemas.RatioAt(s.CPURatio), schemas.RatioAt(s.IOWaitRatio), known,
	)
	n.foreign.add(f, s.IntervalSeconds, storedAt)
}

// foreignDuring returns the foreign load of an epoch that has just ended, and learns the node's
// from it. before is when the epoch before it ended, or its run started. It is unknown where a job
// came or went meanwhile. It follows from the events of jobs alone, so that a replay repeats it.
func (c *Cluster) foreignDuring(
	j *Job, e *schemas.Epoch, before, storedAt time.Time,
) (f schemas.Foreign) {
	j.usage = schemas.UsageOf(e, before)
	if len(e.Nodes) != 1 {
		return f
	}
	n := c.useNode(e.Nodes[0])
	seconds := time.Duration(e.DurationSeconds * float64(time.Second))
	if storedAt.Sub(e.At) > foreignStale || n.changed.After(storedAt.Add(-seconds)) {
		return f
	}
	var others []schemas.Span
	for _, o := range n.running {
		others = append(others, schemas.Span{
			JobID: o.ID, Nodes: o.Setting.Nodes, CPUs: o.Setting.CPUs, Usage: o.usage,
		})
	}
	f = schemas.ForeignDuring(e, before, others)
	n.foreign.add(f, e.DurationSeconds, storedAt)
	return f
}

// foreignNow returns the foreign load of a running job's nodes. An epoch that was shorter than the
// window of the means has measured a newer load than they show.
func (c *Cluster) foreignNow(j *Job, now time.Time) []schemas.Foreign {
	loads := c.foreignOf(j.Setting.Nodes, now)
	if len(j.laps) == 0 || len(loads) != 1 || now.Sub(j.progressAt) > foreignStale {
		return loads
	}
	last := &j.laps[len(j.laps)-1]
	if last.seconds > foreignWindow.Seconds() {
		return loads
	}
	if r := last.load.ForeignCPURatio; r.Known {
		loads[0].CPU = r
	}
	if r := last.load.ForeignIOWaitRatio; r.Known {
		loads[0].IOWait = r
	}
	return loads
}

// foreignSpread is by how much an epoch may take longer than predicted because the foreign load
// is unknown, as a logarithm: how much longer it takes beside the greatest that was measured than
// beside the typical one.
func (r *Regressor) foreignSpread(f *schemas.Features, typical float64, m *memory) float64 {
	if !r.encoder.LacksForeign(f) {
		return 0
	}
	busiest := r.encoder.Busiest(*f)
	p, ok := r.predict(&busiest, m)
	if !ok || !(p.Value > typical && typical > 0) {
		return 0
	}
	return math.Log(p.Value / typical)
}
