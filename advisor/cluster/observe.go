package cluster

import (
	"slices"
	"time"

	"courier/schemas"
)

// sample records a sample of a node: its hardware and its foreign load.
func (c *Cluster) sample(e *schemas.Sample, storedAt time.Time) {
	n := c.useNode(e.Node)
	n.Cores, n.LastSeen = e.Cores, storedAt
	before := c.fleet[e.Node]
	c.fleet.Sample(e)
	c.refreshHardware(e.Node, before)
	c.learnForeign(n, e, storedAt)
}

// refreshHardware updates the running jobs of a node and their observed epochs after its hardware
// became known. An advisor that replays the log reaches the same state.
func (c *Cluster) refreshHardware(node string, before schemas.Hardware) {
	if c.fleet[node] == before {
		return
	}
	for _, j := range c.nodes[node].Running {
		// Questions share the slices.
		j.Hardware, j.ObservedEpochs = slices.Clone(j.Hardware), slices.Clone(j.ObservedEpochs)
		for i, n := range j.Setting.Nodes {
			j.Hardware[i] = c.fleet.Complete(n, j.Hardware[i])
		}
		for i := range j.ObservedEpochs {
			l := &j.ObservedEpochs[i]
			l.Load.On = c.fleet.Complete(l.Node, l.Load.On)
		}
	}
}

// learnForeign updates the foreign load of a node from a sample: the load that its running jobs do
// not explain. It ignores a sample during which a job came or left, because the load of that job
// was not measured.
func (c *Cluster) learnForeign(n *Node, s *schemas.Sample, storedAt time.Time) {
	interval := time.Duration(s.IntervalSeconds * float64(time.Second))
	if storedAt.Sub(s.At) > foreignStale || n.Changed.After(storedAt.Add(-interval)) {
		return
	}
	known := schemas.Known{IsIOIdle: true}
	for _, j := range n.Running {
		known.Add(j.Usage.Known(j.ProcessesPerNode()), 1)
	}
	f := schemas.ForeignOf(
		s.Cores, schemas.RatioAt(s.CPURatio), schemas.RatioAt(s.IOWaitRatio), known,
	)
	n.Foreign.add(f, s.IntervalSeconds, storedAt)
}

// observeEpoch records the mean duration of some epochs and the load of the node during them. The last
// observed epochs correct the predictions for this run.
func (c *Cluster) observeEpoch(j *Job, e *schemas.Epoch, count uint32, storedAt time.Time) {
	before := j.LastEpochAt
	if before.IsZero() {
		before = j.StartedAt
	}
	foreign := c.foreignDuring(j, e, before.Add(-j.ClockLag), storedAt)
	now := c.loadIntegrals(j.Setting.Nodes, storedAt)
	o := ObservedEpoch{Count: count, BatchSize: e.BatchSize, CPUs: e.Processes()}
	if load, node, ok := c.meanLoad(j.LoadAtLastEpoch, now); ok && !(j.IsElastic && e.IsBurst()) &&
		j.State == schemas.StateRunning { // a lost job is not part of the load
		foreign.Set(&load.Load)
		o.Seconds, o.Load, o.Node = float64(count)*e.DurationSeconds, load, node
	}
	j.ObservedEpochs = append(merged(j.ObservedEpochs), o)
	if j.EpochsFollow {
		count += j.Together
	}
	j.Together, j.EpochsFollow = count, e.FollowingEpochs > 0
	j.LoadAtLastEpoch, j.LastEpochAt = now, j.correctedTime(e.At, storedAt)
	j.ProgressAt = j.progressed(max(e.Duration(), j.LastEpochAt.Sub(before)), storedAt)
	j.Losses.add(e, before, j.LastEpochAt)
	j.addUse(e, o.Load.Processes > float64(o.Load.On.Cores))
	j.IOWait = 0
	if e.NodeIOWaitRatio != nil {
		j.IOWait = *e.NodeIOWaitRatio
	}
}

// progressed returns when an epoch ended that took some time after the last one, by the server's clock. The
// event of an epoch may be stored late: that of the first one is published with that of the second.
func (j *Job) progressed(took time.Duration, storedAt time.Time) time.Time {
	if at := j.ProgressAt.Add(took); !j.ProgressAt.IsZero() && at.Before(storedAt) {
		return at
	}
	return storedAt
}

// merged returns a copy of the epochs of a run with room for one more. Pairs of neighbours of the older
// half become one if they ran with the same batch size and CPUs on the same node; if none did, the
// oldest are dropped.
func merged(all []ObservedEpoch) []ObservedEpoch {
	if len(all) < maxObservedEpochs {
		return slices.Clone(all)
	}
	half := len(all) / 2
	kept := make([]ObservedEpoch, 0, len(all))
	for i := 0; i < half; i++ {
		o := all[i]
		if next := &all[i+1]; i+1 < half && o.BatchSize == next.BatchSize && o.CPUs == next.CPUs &&
			o.Node == next.Node && (o.Seconds > 0) == (next.Seconds > 0) {
			o.Count, o.Seconds = o.Count+next.Count, o.Seconds+next.Seconds
			i++
		}
		kept = append(kept, o)
	}
	if len(kept) == half {
		kept = kept[1:]
	}
	return append(kept, all[half:]...)
}

// loadIntegrals returns copies of the integrals of the nodes of a running job.
func (c *Cluster) loadIntegrals(nodes []string, at time.Time) []LoadIntegral {
	var all []LoadIntegral
	for _, name := range nodes {
		if n := c.nodes[name]; n != nil && n.Load.Jobs > 0 {
			n.Load.extendTo(at)
			all = append(all, n.Load)
		}
	}
	return all
}

// meanLoad returns the mean load between two snapshots of the same nodes, on the most loaded node.
// ok is false if no time has passed or the nodes differ.
func (c *Cluster) meanLoad(from, to []LoadIntegral) (load LoadOnNode, node string, ok bool) {
	if len(from) != len(to) {
		return load, node, false
	}
	for i := range to {
		seconds := to[i].At.Sub(from[i].At).Seconds()
		if seconds <= 0 || to[i].Node != from[i].Node {
			return load, node, false
		}
		on := c.fleet[to[i].Node]
		if procs := (to[i].ProcessesSeconds - from[i].ProcessesSeconds) / seconds; i == 0 ||
			schemas.MoreLoaded(procs, on, load.Processes, load.On) {
			load = LoadOnNode{
				schemas.Load{
					ConcurrentJobs: (to[i].JobSeconds - from[i].JobSeconds) / seconds,
					Processes:      procs,
				},
				on,
			}
			node = to[i].Node
		}
	}
	return load, node, len(to) > 0
}

// foreignDuring returns the foreign load during an epoch, and updates the foreign load of the node.
// before is the end of the previous epoch, or the start of the run. The result is unknown if a job
// came or left during the epoch. It depends on job events only, so that a replay repeats it.
func (c *Cluster) foreignDuring(j *Job, e *schemas.Epoch, before, storedAt time.Time) (f schemas.Foreign) {
	j.Usage = schemas.UsageOf(e, before)
	if len(e.Nodes) != 1 {
		return f
	}
	n := c.useNode(e.Nodes[0])
	if storedAt.Sub(e.At) > foreignStale || n.Changed.After(storedAt.Add(-e.Duration())) {
		return f
	}
	var others []schemas.Span
	for _, o := range n.Running {
		others = append(others, schemas.Span{
			JobID: o.ID, Nodes: o.Setting.Nodes, CPUs: o.Setting.Processes(), Usage: o.Usage,
		})
	}
	f = schemas.ForeignDuring(e, before, others)
	n.Foreign.add(f, e.DurationSeconds, storedAt)
	return f
}
