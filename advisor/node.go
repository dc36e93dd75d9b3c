package advisor

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/schemas"
)

// Node is the state of a node: its last sample, and the jobs that run on it.
type Node struct {
	Name     string    `json:"name"`
	Cores    uint32    `json:"cores,omitempty"`
	LastSeen time.Time `json:"last_seen,omitzero"` // last sample, by the server's clock

	Changed time.Time   `json:"changed,omitzero"` // when a job last came or left
	Foreign ForeignLoad `json:"foreign,omitzero"`

	running []*Job // by ID
}

// nodeSilence is the age of the last sample at which a node stops receiving new jobs.
const nodeSilence = 30 * time.Second

// maxNodes bounds the nodes in memory. It leaves room for 10,000 live nodes and for the names of
// short-lived pods. If there are more, the least recently used node without running jobs is
// evicted. The next event of the node adds it again.
const maxNodes = 1 << 14

// useNode returns a node, created on first use, and marks it as most recently used.
func (c *Cluster) useNode(name string) *Node {
	n := c.nodes[name]
	if n == nil {
		n = &Node{Name: name}
		c.nodes[name] = n
	}
	if len(n.running) == 0 {
		c.idleNodes.use(name)
	}
	return n
}

// evictNodes evicts the least recently used idle nodes beyond the limit.
func (c *Cluster) evictNodes() {
	for len(c.nodes) > c.limits.nodes {
		name, ok := c.idleNodes.oldest()
		if !ok {
			return
		}
		c.idleNodes.remove(name)
		delete(c.nodes, name)
		delete(c.fleet, name)
	}
}

// addToNodes adds a running job to its nodes.
func (c *Cluster) addToNodes(j *Job, at time.Time) {
	c.running[j.ID] = j
	for _, name := range j.Setting.Nodes {
		n := c.useNode(name)
		c.idleNodes.remove(name)
		place, _ := slices.BinarySearchFunc(n.running, j.ID, compareID)
		n.running, n.Changed = slices.Insert(n.running, place, j), at
	}
}

// removeFromNodes removes a job from the nodes that it ran on.
func (c *Cluster) removeFromNodes(j *Job, nodes []string, at time.Time) {
	delete(c.running, j.ID)
	for _, name := range nodes {
		n := c.nodes[name]
		n.Changed = at
		n.running = slices.DeleteFunc(n.running, func(o *Job) bool { return o == j })
		if len(n.running) == 0 {
			n.running = nil
			c.idleNodes.use(name)
		}
	}
}

// colocated returns the running jobs that share a node with the given nodes, directly or through
// other jobs, sorted by ID. It includes jobs that are about to start, and excludes the job named by
// except.
func (c *Cluster) colocated(nodes []string, except string, now time.Time) []*Job {
	var all []*Job
	seen := slices.Clone(nodes)
	add := func(j *Job, nodes []string) {
		if j.ID == except || slices.Contains(all, j) {
			return
		}
		all = append(all, j)
		for _, n := range nodes {
			if !slices.Contains(seen, n) {
				seen = append(seen, n)
			}
		}
	}
	for i := 0; i < len(seen); i++ {
		if n := c.nodes[seen[i]]; n != nil {
			for _, j := range n.running {
				add(j, j.Setting.Nodes)
			}
		}
		for _, j := range c.arrivals.jobsOn(seen[i]) {
			if j.isExpected(now) {
				add(j, j.Promise.Nodes)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// sample records a sample of a node: its hardware and its foreign load.
func (c *Cluster) sample(e *schemas.Sample, storedAt time.Time) {
	n := c.useNode(e.Node)
	n.Cores, n.LastSeen = e.Cores, storedAt
	before := c.fleet[e.Node]
	c.fleet.Sample(e)
	c.refreshHardware(e.Node, before)
	c.learnForeign(n, e, storedAt)
}

func (c *Cluster) useNodes(names []string) {
	for _, name := range names {
		c.useNode(name)
	}
}

// refreshHardware updates the running jobs of a node and their observed epochs after its hardware
// became known. An advisor that replays the log reaches the same state.
func (c *Cluster) refreshHardware(node string, before schemas.Hardware) {
	if c.fleet[node] == before {
		return
	}
	for _, j := range c.nodes[node].running {
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

func compareID(j *Job, id string) int { return cmp.Compare(j.ID, id) }

// startTimeout is how long an admitted job that has not started reserves room on its nodes.
const startTimeout = time.Minute

// arrivals are the jobs that a policy has admitted and that are about to start. Their number is
// bounded by the admissions within startTimeout.
type arrivals struct {
	order  []*Job // by the time of their promise, then by ID
	onNode map[string]*expectation
}

// expectation is the load that is about to start on a node.
type expectation struct {
	jobs []*Job // by ID
	cpus float64
}

func compareArrivals(a, b *Job) int {
	return cmp.Or(a.Promise.At.Compare(b.Promise.At), cmp.Compare(a.ID, b.ID))
}

// add adds an admitted job, unless it has already been added.
func (a *arrivals) add(j *Job) {
	at, found := slices.BinarySearchFunc(a.order, j, compareArrivals)
	if found {
		return
	}
	a.order = slices.Insert(a.order, at, j)
	for _, name := range j.Promise.Nodes {
		e := a.onNode[name]
		if e == nil {
			e = &expectation{}
			a.onNode[name] = e
		}
		if i, found := slices.BinarySearchFunc(e.jobs, j.ID, compareID); !found {
			e.jobs = slices.Insert(e.jobs, i, j)
			e.cpus += j.promisedCPUs()
		}
	}
}

// remove removes a job that has started, has ended, or exceeded startTimeout.
func (a *arrivals) remove(j *Job) {
	at, found := slices.BinarySearchFunc(a.order, j, compareArrivals)
	if !found {
		return
	}
	a.order = slices.Delete(a.order, at, at+1)
	for _, name := range j.Promise.Nodes {
		e := a.onNode[name]
		if e == nil {
			continue
		}
		if i, found := slices.BinarySearchFunc(e.jobs, j.ID, compareID); found {
			e.jobs = slices.Delete(e.jobs, i, i+1)
			e.cpus -= j.promisedCPUs()
		}
		if len(e.jobs) == 0 {
			delete(a.onNode, name)
		}
	}
}

// expire removes the jobs that exceeded startTimeout. It only frees memory, because readers check
// the timeout themselves.
func (a *arrivals) expire(now time.Time) {
	for len(a.order) > 0 && now.Sub(a.order[0].Promise.At) >= startTimeout {
		a.remove(a.order[0])
	}
}

// jobsOn returns the jobs that are about to start on a node, by ID. Some may have exceeded
// startTimeout.
func (a *arrivals) jobsOn(node string) []*Job {
	if e := a.onNode[node]; e != nil {
		return e.jobs
	}
	return nil
}

// cpus returns the number of CPUs that are about to be used on a node.
func (a *arrivals) cpus(node string, now time.Time) float64 {
	e := a.onNode[node]
	if e == nil {
		return 0
	}
	if now.Sub(a.order[0].Promise.At) < startTimeout { // none has expired
		return e.cpus
	}
	sum := 0.0
	for _, j := range e.jobs {
		if j.isExpected(now) {
			sum += j.promisedCPUs()
		}
	}
	return sum
}

// LoadIntegral integrates the number of jobs and processes on a node over time, so that the
// difference of two copies gives the mean load between them.
type LoadIntegral struct {
	Node             string    `json:"node"`
	At               time.Time `json:"at,omitzero"`
	Jobs             float64   `json:"jobs"`
	Processes        float64   `json:"processes"`
	JobSeconds       float64   `json:"job_seconds"`
	ProcessesSeconds float64   `json:"processes_seconds"`
}

// extendTo extends the integral to a later time; an earlier time changes nothing.
func (t *LoadIntegral) extendTo(at time.Time) {
	if seconds := at.Sub(t.At).Seconds(); seconds > 0 {
		if !t.At.IsZero() {
			t.JobSeconds += seconds * t.Jobs
			t.ProcessesSeconds += seconds * t.Processes
		}
		t.At = at
	}
}

// loadIntegrals are the integrals of the nodes with running jobs, by name.
type loadIntegrals map[string]*LoadIntegral

// change adds a job to its nodes (sign 1) or removes it from them (sign -1).
func (all loadIntegrals) change(s *schemas.Setting, sign float64, at time.Time) {
	for _, n := range s.Nodes {
		t := all[n]
		if t == nil {
			t = &LoadIntegral{Node: n}
			all[n] = t
		}
		t.extendTo(at)
		t.Jobs += sign
		t.Processes += sign * float64(s.CPUs)
	}
}

// prune drops the integrals of idle nodes. No job refers to them: a job that leaves its nodes loses
// its loadAtLastEpoch.
func (all loadIntegrals) prune(nodes []string) {
	for _, n := range nodes {
		if t := all[n]; t != nil && t.Jobs == 0 {
			delete(all, n)
		}
	}
}

// snapshot returns copies of the integrals of some nodes.
func (all loadIntegrals) snapshot(nodes []string, at time.Time) []LoadIntegral {
	var notes []LoadIntegral
	for _, n := range nodes {
		if t := all[n]; t != nil {
			t.extendTo(at)
			notes = append(notes, *t)
		}
	}
	return notes
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

// at returns the mean rounded to tenths, or an unknown ratio if the mean is stale.
func (m *RecentMean) at(now time.Time) schemas.Ratio {
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

// foreignOf returns the foreign load of some nodes, in their order.
func (c *Cluster) foreignOf(nodes []string, now time.Time) []schemas.Foreign {
	loads := make([]schemas.Foreign, len(nodes))
	for i, name := range nodes {
		if n := c.nodes[name]; n != nil {
			loads[i] = schemas.Foreign{CPU: n.Foreign.CPU.at(now), IOWait: n.Foreign.IOWait.at(now)}
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
	for _, j := range n.running {
		known.Add(j.Usage.Known(j.processesPerNode()), 1)
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
	for _, o := range n.running {
		others = append(others, schemas.Span{
			JobID: o.ID, Nodes: o.Setting.Nodes, CPUs: o.Setting.CPUs, Usage: o.Usage,
		})
	}
	f = schemas.ForeignDuring(e, before, others)
	n.Foreign.add(f, e.DurationSeconds, storedAt)
	return f
}

// foreignNow returns the current foreign load of the nodes of a running job. If the last epoch was
// shorter than foreignWindow, it is a newer measurement than the mean, and is used instead.
func (c *Cluster) foreignNow(j *Job, now time.Time) []schemas.Foreign {
	loads := c.foreignOf(j.Setting.Nodes, now)
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
