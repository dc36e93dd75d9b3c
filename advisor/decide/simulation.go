package decide

import (
	"math"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/regress/evidence"
	"courier/schemas"
)

// simulation holds the running jobs that share nodes. At any time the rate of a job follows from the
// epoch time that the regressor predicts for the current load; a job that ends frees its nodes.
type simulation struct {
	r       *Regressor
	nodes   []simulatedNode
	running []plannedJob
}

// simulatedNode is a node of a job.
type simulatedNode struct {
	name     string
	hardware schemas.Hardware
	nodeType string          // by the regressor
	foreign  schemas.Foreign // load that no job causes; assumed constant
}

// plannedJob is a job at the beginning of a simulation.
type plannedJob struct {
	at       []int // indices of its nodes
	model    trainedOn
	isKnown  bool // by past runs of its model or its own epochs; otherwise its end is unknown
	standsIn bool // runs on nodes of unknown hardware are examples for it
	batch    uint32
	cpus     uint32          // the number of its processes
	done     []evidence.Span // its epochs until now
	total    int             // epochs that it has then done
	wait     float64         // seconds until it starts
	startup  float64         // remaining seconds of its start-up
	epochs   float64         // remaining epochs
	spent    float64         // seconds since the end of its last epoch
	block    float64         // epochs that its next report has, as far as is known; 0: unknown

	times map[nodeLoad]evidence.EpochTime // of a running job, for all forecasts; nil for the added job
}

// setProgress sets the progress of a running job in its start-up or in its current epoch.
func (j *plannedJob) setProgress(m *Member, startup evidence.Distribution) {
	if len(m.ObservedEpochs) > 0 || m.Together > heldBack {
		j.block = float64(max(1, min(m.Together, m.epochsLeft())))
	}
	switch {
	case m.EpochsDone > 0 || !startup.Known():
		j.spent = m.Since.Seconds()
	default:
		left := startup.Median() - m.Since.Seconds() // a start-up may last until the first epoch is reported
		j.startup, j.spent = max(tinySeconds, left), max(0, -left)
	}
}

// simulatedJob is a job during a simulation, and after it.
type simulatedJob struct {
	plan                         *plannedJob
	wait, startup, epochs, spent float64            // what is left of the plan
	seconds                      float64            // of an epoch at the current load
	end                          float64            // in seconds from the beginning; +Inf if unknown
	leastCertain                 evidence.EpochTime // its least certain prediction
}

// forecast is the result of a simulation.
type forecast struct {
	others []simulatedJob // the running jobs, in their order
	job    *simulatedJob  // the job that was added; nil without one
	path   []progressPoint
	whole  evidence.EpochTime // of the added job at the load at its start; unknown until it is needed
}

// progressPoint is the number of epochs that the added job has left at a time.
type progressPoint struct{ at, epochs float64 }

// addNodes returns the indices of the nodes of a job, which it adds on first use. hardware and
// foreign are in the order of nodes and may be shorter.
func (s *simulation) addNodes(nodes []string, hardware []schemas.Hardware, foreign []schemas.Foreign) []int {
	at := make([]int, 0, max(1, len(nodes)))
	for i, name := range nodesOrAny(nodes) {
		n := simulatedNode{name: name}
		if i < len(hardware) {
			n.hardware = hardware[i]
		}
		if i < len(foreign) {
			n.foreign = foreign[i]
		}
		at = append(at, s.addNode(n))
	}
	return at
}

// nodesOrAny replaces an empty list of nodes by an unnamed node without other load.
func nodesOrAny(nodes []string) []string {
	if len(nodes) == 0 {
		return []string{""}
	}
	return nodes
}

// addNode returns the index of a node, which it adds on first use.
func (s *simulation) addNode(n simulatedNode) int {
	isSame := func(o simulatedNode) bool { return o.name == n.name }
	if i := slices.IndexFunc(s.nodes, isSame); i >= 0 {
		return i
	}
	n.nodeType = s.r.nodeType(n.name, n.hardware.NodeType())
	s.nodes = append(s.nodes, n)
	return len(s.nodes) - 1
}

// state returns a node without the load of its jobs. With standsIn it is a node of unknown hardware.
func (s *simulation) state(at int, standsIn bool) nodeState {
	n := &s.nodes[at]
	on := nodeState{nodeType: n.nodeType, cores: n.hardware.Cores}
	if standsIn {
		on.nodeType, on.cores = s.r.evidence.NodeType(n.name, ""), 0
	}
	n.foreign.Set(&on.load)
	return on
}

// run simulates the running jobs, and another job unless it is nil, until they end.
func (s *simulation) run(job *plannedJob) forecast {
	c := course{
		simulation: s,
		jobs:       make([]simulatedJob, 0, len(s.running)+1),
		loads:      make([]nodeLoad, len(s.nodes)),
	}
	for i := range s.running {
		c.add(&s.running[i])
	}
	if job != nil {
		c.add(job)
	}
	for now := 0.0; ; {
		next, step := c.nextChange()
		if next == nil {
			break
		}
		now += step
		c.advance(now, step, next)
	}

	f := forecast{others: c.jobs[:len(s.running)], path: c.path}
	if job != nil {
		f.job = &c.jobs[len(s.running)]
	}
	return f
}

// course is a simulation at its current time.
type course struct {
	*simulation
	jobs  []simulatedJob // the running jobs, then the added one
	loads []nodeLoad     // of the nodes
	path  []progressPoint
}

// nodeLoad is the number of jobs and processes on a node.
type nodeLoad struct {
	node  int // index
	jobs  int
	procs float64
}

// add adds a job.
func (c *course) add(plan *plannedJob) {
	c.jobs = append(c.jobs, simulatedJob{
		plan:    plan,
		wait:    plan.wait,
		startup: plan.startup,
		epochs:  plan.epochs,
		spent:   plan.spent,
		end:     math.Inf(1),
	})
	if plan.wait == 0 {
		c.occupy(plan, 1)
	}
}

// occupy adds a job to its nodes (sign 1) or removes it (sign -1).
func (c *course) occupy(plan *plannedJob, sign int) {
	for _, n := range plan.at {
		c.loads[n].node = n
		c.loads[n].jobs += sign
		c.loads[n].procs += float64(sign) * float64(plan.cpus)
	}
}

// nextChange returns the job whose state changes first and the seconds until then, or nil if no state
// changes.
func (c *course) nextChange() (next *simulatedJob, seconds float64) {
	seconds = math.Inf(1)
	for i := range c.jobs {
		j := &c.jobs[i]
		if !math.IsInf(j.end, 1) {
			continue
		}
		if rest := c.untilChange(j); rest < seconds {
			next, seconds = j, rest
		}
	}
	return next, seconds
}

// untilChange returns the seconds until the state of a job changes at the current load, +Inf if
// unknown. It never returns NaN.
func (c *course) untilChange(j *simulatedJob) float64 {
	switch {
	case j.wait > 0:
		return j.wait
	case j.startup > 0:
		return j.startup
	case !j.plan.isKnown:
		return math.Inf(1)
	case j.epochs <= 0:
		return 0 // even if the epoch time at this load is unknown
	}
	if c.predict(j); math.IsInf(j.seconds, 1) {
		return j.seconds
	}
	if j.spent > 0 {
		j.epochs -= j.plan.unreported(j.spent / j.seconds)
		j.spent = 0
	}
	return max(0, j.epochs) * j.seconds
}

// overdueEpochs is the number of its last epochs after which the next one is overdue.
const overdueEpochs = 2

// IsOverdue reports whether a job takes much longer for its next epochs than for those that it reported
// together at last.
func IsOverdue(epochs []cluster.ObservedEpoch, together uint32, since time.Duration) bool {
	n := len(epochs)
	if n == 0 || epochs[n-1].Seconds == 0 {
		return false
	}
	usual := epochs[n-1].Seconds / float64(epochs[n-1].Count) * float64(max(1, together))
	return since.Seconds() > overdueEpochs*usual
}

// heldBack is the number of epochs of a first report: the first epoch may wait until the second one confirms
// that it was read well.
const heldBack = 2

// leastLeft is the share of an epoch that is left until its event.
const leastLeft = 0.05

// unreported returns the part of the remaining epochs that has passed without an event. Epochs that are
// overdue are expected to take as much longer as they are overdue, and it is negative then.
func (j *plannedJob) unreported(spent float64) float64 {
	if j.block == 0 {
		return min(spent, max(1, min(heldBack, j.epochs))-leastLeft)
	}
	return min(spent, j.block-max(leastLeft, spent-j.block))
}

// predict sets the seconds of an epoch of a job at the current load, +Inf if unknown.
func (c *course) predict(j *simulatedJob) {
	at := c.busiestNode(j.plan.at)
	under := c.loads[at]
	e, isKnown := j.plan.times[under]
	if !isKnown {
		on := c.state(at, j.plan.standsIn)
		on.load.ConcurrentJobs, on.load.Processes = float64(under.jobs), under.procs
		e = c.r.epochTime(j.plan.model, j.plan.batch, j.plan.cpus, on, j.plan.done, j.plan.total)
		if j.plan.times != nil {
			j.plan.times[under] = e
		}
	}
	if isLessCertain(&e, &j.leastCertain) {
		j.leastCertain = e
	}
	if j.seconds = math.Exp(e.Location); !e.Known() {
		j.seconds = math.Inf(1)
	}
}

// busiestNode returns the most loaded of a job's nodes, which determines its rate.
func (c *course) busiestNode(nodes []int) int {
	at := nodes[0]
	for _, n := range nodes[1:] {
		if schemas.MoreLoaded(c.loads[n].procs, c.nodes[n].hardware,
			c.loads[at].procs, c.nodes[at].hardware) {
			at = n
		}
	}
	return at
}

// isLessCertain reports whether a prediction is less certain than another.
func isLessCertain(a, b *evidence.EpochTime) bool {
	switch {
	case !a.Known() || !b.Known():
		return a.Known()
	case a.Support != b.Support:
		return a.Support < b.Support
	}
	return a.Variance > b.Variance
}

// advance simulates a step at the loads for which it was computed. The state of next changes
// regardless of rounding errors, so that every step brings the simulation closer to its end.
func (c *course) advance(now, step float64, next *simulatedJob) {
	for i := range c.jobs {
		if j := &c.jobs[i]; j.isTraining() && j.epochs > 0 && j.seconds < math.Inf(1) {
			j.epochs -= step / j.seconds
		}
	}
	if next.isTraining() {
		next.epochs = 0
	}
	if len(c.jobs) > len(c.running) {
		c.path = append(c.path, progressPoint{now, c.jobs[len(c.jobs)-1].epochs})
	}
	for i := range c.jobs {
		c.change(&c.jobs[i], now, step, next)
	}
}

// change changes the state of a job at the end of a step.
func (c *course) change(j *simulatedJob, now, step float64, next *simulatedJob) {
	switch {
	case !math.IsInf(j.end, 1):
	case j.wait > 0:
		if j.wait -= step; j == next || j.wait < tinySeconds {
			j.wait = 0
			c.occupy(j.plan, 1)
		}
	case j.startup > 0:
		if j.startup -= step; j == next || j.startup < tinySeconds {
			j.startup = 0
		}
	case j.plan.isKnown && j.epochs < tinyEpochs:
		j.end = now
		c.occupy(j.plan, -1)
	}
}

// isTraining reports whether the job is past its start-up and has not ended.
func (j *simulatedJob) isTraining() bool {
	return math.IsInf(j.end, 1) && j.wait == 0 && j.startup == 0 && j.plan.isKnown
}

// endAfter returns when the added job would have ended with a number of epochs, at most those of its
// plan. Until its end, the other jobs do not depend on its number of epochs.
func (f *forecast) endAfter(epochs float64) float64 {
	all := f.job.plan.epochs
	if epochs == all {
		return f.job.end
	}
	last := progressPoint{0, all}
	for _, m := range f.path {
		if all-m.epochs >= epochs-tinyEpochs {
			if m.epochs == last.epochs {
				return m.at
			}
			return last.at + (m.at-last.at)*(epochs-(all-last.epochs))/(last.epochs-m.epochs)
		}
		last = m
	}
	return math.Inf(1)
}

// Rounding errors that may remain of a start-up or of the last epoch.
const (
	tinySeconds = 1e-9
	tinyEpochs  = 1e-9
)
