package advisor

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/policy"
	"courier/policy/deadline"
	"courier/policy/fit"
	"courier/policy/quality"
	"courier/schemas"
)

// Options.MoveCPUs.
const (
	MovesOff    = "off"     // the CPUs of elastic jobs do not change
	MovesDryRun = "dry-run" // changes are published and assessed, but not carried out
	MovesOn     = "on"
)

// Options.Objective. Whatever it is, jobs keep the SLO that they were promised, and a job is admitted
// by its SLO.
const (
	ObjectiveSLO = "slo" // most SLOs are met: policy/deadline
	ObjectiveJCT = "jct" // the mean completion time is short: policy/jct
	// ObjectiveQuality: CPUs go to the jobs whose loss falls fastest: policy/quality.
	ObjectiveQuality = "quality"
	// ObjectiveCost: each job takes few core-seconds.
	ObjectiveCost = "cost"
)

// Hysteresis of a change of CPUs (resource policies, section 1.3): it is at least one of these.
const (
	minShareOfNode = 0.05
	minShareOfSelf = 0.2
)

// sharePolicy plans the CPUs of a node. Its margins are small, because the rates are already upper
// bounds, and a running job changes its CPUs without a pause. It must not refuse a job that fits.
var sharePolicy = deadline.New(deadline.Options{
	MomentInterval: time.Hour,
	PayBack:        time.Second,
	ReviewInterval: time.Second,
	Margin:         time.Second,
	Urgent:         time.Second,
	NoHeadroom:     true,
})

// NodeShares is the input of the plan for the CPUs of a node: its elastic jobs, and the CPUs that all
// other work leaves to them.
type NodeShares struct {
	Node      string
	Cores     int
	Capacity  int            // CPUs for the elastic jobs
	Foreign   int            // CPUs that work outside Courier takes from Capacity
	IsIdle    bool           // no job runs or is about to start
	IsFixed   bool           // the running jobs keep their CPUs, as moves are not turned on
	Jobs      []ElasticShare // by ID
	Objective string         // of Plan; empty: ObjectiveSLO
}

// ElasticShare is a running elastic job.
type ElasticShare struct {
	Question  *decide.Question // its re-prediction with its current CPUs
	Counts    []int            // numbers of CPUs that it may hold, ascending
	Barred    []int            // other numbers of its request, which it may not hold now, ascending
	Initial   uint32           // CPUs at its start
	Deadline  time.Time        // zero: none
	Submitted time.Time

	base int             // CPUs without those by which it has grown by its own epochs
	seen []fit.ShapeTime // its own epochs; none if its CPUs do not limit it

	losses    quality.History
	isError   bool // the losses are 1 - accuracy
	isStarved bool // more CPUs would not make it faster
}

// elasticShares returns the shares of a node with elastic jobs; nil if it has none.
func elasticShares(c *cluster.Cluster, node string, now time.Time) *NodeShares {
	n := c.Node(node)
	if n == nil || !slices.ContainsFunc(n.Running, (*cluster.Job).IsElasticNow) {
		return nil
	}
	return sharesOf(c, node, now)
}

// sharesOf returns the elastic jobs of a node with the capacity that they share; nil if the cores of
// the node are unknown.
func sharesOf(c *cluster.Cluster, node string, now time.Time) *NodeShares {
	n := c.Node(node)
	if n == nil {
		return nil
	}
	cores := c.Cores(node)
	if cores == 0 {
		return nil
	}
	arriving := wholeCPUs(c.ArrivingCPUs(node, now))
	s := &NodeShares{
		Node: node, Cores: cores, Capacity: cores, IsIdle: len(n.Running) == 0 && arriving == 0,
	}
	s.Foreign = foreignCPUs(n.Foreign.CPU.Ratio(now).Or(0), cores)
	s.Capacity -= s.Foreign
	least, ioRate := 0, ioRateOf(n)
	for _, j := range n.Running {
		if !j.IsElasticNow() {
			s.Capacity -= wholeCPUs(j.ProcessesPerNode())
			continue
		}
		counts := j.AllowedCPUs(now)
		isStarved := j.IsStarved()
		if isStarved {
			counts = slices.DeleteFunc(counts, func(n int) bool { return n > int(j.Setting.CPUs) })
		}
		if len(counts) == 0 { // the current number is not in the request, and all others are ruled out
			counts = []int{int(j.Setting.CPUs)}
		}
		least += counts[0]
		barred := slices.DeleteFunc(
			slices.Sorted(slices.Values(j.Request.CPUs)),
			func(n int) bool { return slices.Contains(counts, n) },
		)
		s.Jobs = append(s.Jobs, ElasticShare{
			Question:  decide.AskRunning(c, j, now),
			Counts:    counts,
			Barred:    barred,
			Initial:   j.InitialCPUs,
			Deadline:  j.Deadline(),
			Submitted: j.SubmittedAt,
			losses:    j.Losses.History(now.Sub(j.ProgressAt), ioRatio(j.Losses.IORate(), ioRate)),
			isError:   j.Losses.IsError,
			isStarved: isStarved,
			base:      int(cmp.Or(j.GrownFrom, j.Setting.CPUs)),
			seen:      j.SeenShapes(),
		})
	}
	s.Capacity -= arriving
	s.Capacity = max(s.Capacity, least) // a running job cannot be stopped
	return s
}

// wholeCPUs returns the smallest whole number of CPUs that a job on several nodes holds on each of
// them.
func wholeCPUs(mean float64) int {
	const rounding = 1e-6 // of a sum of fractions
	return int(math.Ceil(mean - rounding))
}

// ioRateOf returns the IO of all jobs of the node, in bytes per second.
func ioRateOf(n *cluster.Node) float64 {
	sum := 0.0
	for _, j := range n.Running {
		sum += j.Losses.IORate()
	}
	return sum
}

// ioRatio returns the share of a job of the IO of its node; 0 if it is unknown.
func ioRatio(job, node float64) float64 {
	if node == 0 {
		return 0
	}
	return job / node
}

// foreignCPUs returns the whole CPUs that foreign work takes from the elastic jobs of a node. A part
// of a CPU takes none: the kernel shares that CPU, and a job that gave up all of it would lose more
// than the foreign work uses.
func foreignCPUs(ratio float64, cores int) int {
	const rounding = 1e-9 // of a ratio in tenths
	return int(ratio*float64(cores) + rounding)
}

// PlannedShare is a change of the CPUs of a job.
type PlannedShare struct {
	Question *decide.Question
	Move     schemas.PlannedMove
}

// Plan returns the changes of CPUs, in order of job IDs. It asks the objective's policy, and then keeps
// the rules above every policy: no job is stopped, no job that lends CPUs is predicted to miss its
// SLO because of it, and no change is too small to matter.
func (s *NodeShares) Plan(r decide.Regressors, now time.Time) []PlannedShare {
	jobs, _ := s.plan(nil, r, now)
	s.grow(jobs)
	var planned []PlannedShare
	for i := range jobs {
		j := &jobs[i]
		if j.target == j.actual {
			continue
		}
		m := schemas.PlannedMove{
			Purpose:      s.purpose(jobs, j),
			ForJob:       borrower(jobs, j),
			FromCPUs:     uint32(j.actual),
			ToCPUs:       uint32(j.target),
			Rule:         string(j.reason),
			SlackSeconds: j.slack(),
			FreeCPUs:     uint32(max(0, s.Capacity-s.held())),
			Growth:       j.growth,
			SpeedRatio:   j.speedRatio,
		}
		m.RejectedCPUs, m.RejectedReasons = j.rejected(int(m.FreeCPUs))
		planned = append(planned, PlannedShare{j.Question, m})
	}
	return planned
}

// plan returns the target of each job, and the CPUs of an arriving job; 0 if there is none or if it
// does not fit.
func (s *NodeShares) plan(
	arrival *policy.ElasticJob, r decide.Regressors, now time.Time,
) (jobs []shareForecast, granted int) {
	view := policy.ClusterView{Nodes: []policy.NodeView{{Name: s.Node, Units: s.Capacity}}}
	isFull := s.held() > s.Capacity
	var kept []shareForecast
	for i := range s.Jobs {
		f, job, ok := s.Jobs[i].forecast(r, now)
		// More processes than CPUs may never have been measured. Their jobs are planned by what is
		// known about fewer CPUs.
		isUnknown := !ok && (!isFull || len(f.alternatives) == 0)
		if s.IsFixed || isUnknown { // it keeps what it has
			kept = append(kept, f)
			view.Nodes[0].Units -= f.cpus
			continue
		}
		jobs, view.Jobs = append(jobs, f), append(view.Jobs, job)
	}
	if arrival != nil {
		view.Queue = append(view.Queue, *arrival)
	}
	for _, m := range s.moves(&view, jobs, now) {
		if m.Kind != policy.Resize {
			continue
		}
		if arrival != nil && m.Job == arrival.ID {
			granted = m.Units
		}
		for i := range jobs {
			if jobs[i].Question.JobID == m.Job {
				jobs[i].target, jobs[i].reason = max(m.Units, jobs[i].leastCPUs()), m.Reason
			}
		}
	}
	for i := range jobs {
		f := &jobs[i]
		if f.protect(); !f.isWorthwhile(s.Cores) { // an arriving job must not count on such a loan
			f.target = f.cpus
		}
	}
	if !limitRaises(jobs, view.Nodes[0].Units-granted, granted > 0) {
		for i := range jobs {
			jobs[i].target = jobs[i].cpus
		}
		granted = 0
	}
	jobs = append(jobs, kept...)
	s.keepGrown(jobs, granted)
	return jobs, granted
}

// floors returns the CPUs that each job keeps under any objective: the fewest with which it is likely
// to meet its SLO, in order of the deadlines as far as the CPUs suffice, otherwise its fewest.
func floors(jobs []shareForecast, capacity int) []int {
	least, order := make([]int, len(jobs)), make([]int, len(jobs))
	for i := range jobs {
		least[i], order[i] = jobs[i].leastCPUs(), i
		capacity -= least[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return jobs[a].Deadline.Compare(jobs[b].Deadline)
	})
	for _, i := range order {
		for _, n := range jobs[i].Counts {
			if n >= least[i] && n-least[i] <= capacity && jobs[i].isLikely(n) {
				capacity -= n - least[i]
				least[i] = n
				break
			}
		}
	}
	return least
}

// held returns the CPUs that the elastic jobs hold, without those by which they have grown by their
// own epochs: these are free for any other job.
func (s *NodeShares) held() int {
	held := 0
	for i := range s.Jobs {
		held += s.Jobs[i].base
	}
	return held
}
