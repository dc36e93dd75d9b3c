package advisor

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/schemas"
)

// Node is what is known of a node: what its last sample reports, and what runs on it.
type Node struct {
	Name  string
	Cores uint32
	Heard time.Time // by the server's clock

	running []*Job    // by ID
	changed time.Time // when a job came or left last
	foreign ForeignLoad
}

// nodeSilence is how long after its last sample a node is no place for a job.
const nodeSilence = 30 * time.Second

// mostNodes bounds how many nodes are remembered. There is room for 10,000 live nodes and
// for the names of pods that come and go; beyond it the least recently used node without a
// running job is forgotten, and is known again with its next event.
const mostNodes = 1 << 14

// useNode returns a node, which is made on first use, and notes that it is used now.
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

// forgetNodes drops the least recently used nodes beyond the limit. Nodes with running
// jobs are not among the idle ones, and stay.
func (c *Cluster) forgetNodes() {
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

// enter adds a running job to its nodes.
func (c *Cluster) enter(j *Job, at time.Time) {
	c.running[j.ID] = j
	for _, name := range j.Setting.Nodes {
		n := c.useNode(name)
		c.idleNodes.remove(name)
		place, _ := slices.BinarySearchFunc(n.running, j.ID, compareID)
		n.running, n.changed = slices.Insert(n.running, place, j), at
	}
}

// leave takes a job off the nodes that it ran on.
func (c *Cluster) leave(j *Job, nodes []string, at time.Time) {
	delete(c.running, j.ID)
	for _, name := range nodes {
		n := c.nodes[name]
		n.changed = at
		n.running = slices.DeleteFunc(n.running, func(o *Job) bool { return o == j })
		if len(n.running) == 0 {
			n.running = nil
			c.idleNodes.use(name)
		}
	}
}

// beside returns the running jobs that share a node with the given ones, or with
// a job that does, except for one, by ID; those that are about to start count.
func (c *Cluster) beside(nodes []string, except string, now time.Time) []*Job {
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
		for _, j := range c.arrivals.on(seen[i]) {
			if j.expected(now) {
				add(j, j.Promise.Nodes)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// place returns the nodes of a request: those that it names, else the live node
// with the fewest processes per processor that has room for the fewest CPUs asked
// for; none if no node is known. A processor that foreign work takes counts as a process.
func (c *Cluster) place(q *schemas.JobRequest, now time.Time) []string {
	if len(q.Nodes) > 0 {
		return q.Nodes
	}
	var best *Node
	var least float64
	wanted := 0
	if len(q.CPUs) > 0 {
		wanted = slices.Min(q.CPUs)
	}
	for _, n := range c.nodes {
		if int(n.Cores) < wanted || now.Sub(n.Heard) > nodeSilence {
			continue
		}
		load := c.arrivals.cpus(n.Name, now)
		if len(n.running) > 0 {
			load += c.tallies[n.Name].procs
		}
		load = load/float64(n.Cores) + n.foreign.CPU.at(now).Or(0)
		if best == nil || load < least || load == least && n.Name < best.Name {
			best, least = n, load
		}
	}
	if best == nil {
		return nil
	}
	return []string{best.Name}
}

func (c *Cluster) sample(e *schemas.Sample, storedAt time.Time) {
	n := c.useNode(e.Node)
	n.Cores, n.Heard = e.Cores, storedAt
	before := c.fleet[e.Node]
	c.fleet.Sample(e)
	c.renew(e.Node, before)
	c.learnForeign(n, e, storedAt)
}

func (c *Cluster) useNodes(names []string) {
	for _, name := range names {
		c.useNode(name)
	}
}

// renew lets the jobs that run on a node, and their epochs so far, have what is known
// of it now, if that is not what it was before: the numbers are then those of an
// advisor that knew it from the start, as one that has just been started does.
func (c *Cluster) renew(node string, before schemas.Hardware) {
	if c.fleet[node] == before {
		return
	}
	for _, j := range c.nodes[node].running {
		j.Hardware, j.laps = slices.Clone(j.Hardware), slices.Clone(j.laps) // questions keep what they have
		for i, n := range j.Setting.Nodes {
			j.Hardware[i] = c.fleet.Complete(n, j.Hardware[i])
		}
		for i := range j.laps {
			l := &j.laps[i]
			l.load.on = c.fleet.Complete(l.node, l.load.on)
		}
	}
}

func compareID(j *Job, id string) int { return cmp.Compare(j.ID, id) }

// startPatience is how long room is kept for a job that was admitted and has not
// started; after that it no longer counts as expected.
const startPatience = time.Minute

// arrivals are the jobs that a policy has admitted and that are about to start. They are
// bounded by how many are admitted in startPatience.
type arrivals struct {
	order  []*Job // by the time of their promise, then by ID
	onNode map[string]*expectation
}

// expectation is what is about to start on a node.
type expectation struct {
	jobs []*Job // by ID
	cpus float64
}

func compareArrivals(a, b *Job) int {
	return cmp.Or(a.Promise.At.Compare(b.Promise.At), cmp.Compare(a.ID, b.ID))
}

// add lets a job be expected; one that is expected already stays so.
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

// remove takes a job out that has started or ended, or that has waited for too long.
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

// expire takes out the jobs that are no longer expected. It changes no answer, because
// readers compare the time themselves.
func (a *arrivals) expire(now time.Time) {
	for len(a.order) > 0 && now.Sub(a.order[0].Promise.At) >= startPatience {
		a.remove(a.order[0])
	}
}

// on returns the jobs that are about to start on a node, by ID; some may have expired.
func (a *arrivals) on(node string) []*Job {
	if e := a.onNode[node]; e != nil {
		return e.jobs
	}
	return nil
}

// cpus is how many CPUs are about to be used on a node.
func (a *arrivals) cpus(node string, now time.Time) float64 {
	e := a.onNode[node]
	if e == nil {
		return 0
	}
	if now.Sub(a.order[0].Promise.At) < startPatience { // none has expired
		return e.cpus
	}
	sum := 0.0
	for _, j := range e.jobs {
		if j.expected(now) {
			sum += j.promisedCPUs()
		}
	}
	return sum
}

// tally adds up what ran on a node: the integrals of jobs and processes over time.
type tally struct {
	node                     string
	at                       time.Time
	jobs, procs              float64
	jobSeconds, procsSeconds float64
}

// until moves the tally on to a moment; an earlier one changes nothing.
func (t *tally) until(at time.Time) {
	if seconds := at.Sub(t.at).Seconds(); seconds > 0 {
		if !t.at.IsZero() {
			t.jobSeconds += seconds * t.jobs
			t.procsSeconds += seconds * t.procs
		}
		t.at = at
	}
}

// tallies are those of all nodes.
type tallies map[string]*tally

// change lets a job come (sign 1) to its nodes or leave them (-1).
func (all tallies) change(s *schemas.Setting, sign float64, at time.Time) {
	for _, n := range s.Nodes {
		t := all[n]
		if t == nil {
			t = &tally{node: n}
			all[n] = t
		}
		t.until(at)
		t.jobs += sign
		t.procs += sign * float64(s.CPUs)
	}
}

// prune drops the tallies of nodes on which nothing runs. No mark refers to them any more:
// a job that leaves its nodes loses its mark.
func (all tallies) prune(nodes []string) {
	for _, n := range nodes {
		if t := all[n]; t != nil && t.jobs == 0 {
			delete(all, n)
		}
	}
}

// snapshot notes the integrals of a job's nodes.
func (all tallies) snapshot(nodes []string, at time.Time) []tally {
	var notes []tally
	for _, n := range nodes {
		if t := all[n]; t != nil {
			t.until(at)
			notes = append(notes, *t)
		}
	}
	return notes
}

// between is the load from one snapshot of the same nodes to another: that of
// the node that was the fullest. ok is false if no time passed, or the nodes differ.
func (c *Cluster) between(from, to []tally) (load surroundings, node string, ok bool) {
	if len(from) != len(to) {
		return load, node, false
	}
	for i := range to {
		seconds := to[i].at.Sub(from[i].at).Seconds()
		if seconds <= 0 || to[i].node != from[i].node {
			return load, node, false
		}
		on := c.fleet[to[i].node]
		if procs := (to[i].procsSeconds - from[i].procsSeconds) / seconds; i == 0 ||
			schemas.MoreLoaded(procs, on, load.Processes, load.on) {
			load = surroundings{
				schemas.Load{
					ConcurrentJobs: (to[i].jobSeconds - from[i].jobSeconds) / seconds,
					Processes:      procs,
				},
				on,
			}
			node = to[i].node
		}
	}
	return load, node, len(to) > 0
}

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
