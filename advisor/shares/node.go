package shares

import (
	"math"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/policy"
	"courier/policy/speed"
	"courier/schemas"
)

// Options.Objective. Whatever it is, jobs keep the SLO that they were promised, and a job is admitted
// by its SLO.
const (
	ObjectiveSLO = "slo" // most SLOs are met: policy/deadline
	ObjectiveJCT = "jct" // the mean completion time is short: policy.JCT
	// ObjectiveQuality: CPUs go to the jobs whose loss falls fastest: policy/quality.
	ObjectiveQuality = "quality"
	// ObjectiveCost: each job takes few core-seconds: policy/cost.
	ObjectiveCost = "cost"
	// ObjectiveEfficiency: CPUs go to the jobs that they make faster: policy/fit.
	ObjectiveEfficiency = "efficiency"
)

// Pool is the input of the plan for the CPUs of a node: its elastic jobs, and the CPUs that all
// other work leaves to them.
type Pool struct {
	Node      string
	Cores     int
	Capacity  int     // CPUs for the elastic jobs
	Foreign   int     // CPUs that work outside Courier takes from Capacity
	IsIdle    bool    // no job runs or is about to start
	IsFixed   bool    // the running jobs keep their CPUs, as moves are not turned on
	Jobs      []Share // by ID
	Objective string  // of Plan; empty: ObjectiveSLO

	lacking int // CPUs of Capacity that the node does not have, but its jobs cannot do with fewer
}

// Objectives returns the values of Options.Objective.
func Objectives() []string {
	return []string{ObjectiveSLO, ObjectiveJCT, ObjectiveQuality, ObjectiveCost, ObjectiveEfficiency}
}

// Share is a running elastic job.
type Share struct {
	Question  *decide.Question // its re-prediction with its current CPUs
	Counts    []int            // numbers of CPUs that it may hold, ascending
	Barred    []int            // other numbers of its request, which it may not hold now, ascending
	Initial   uint32           // CPUs at its start
	Deadline  time.Time        // zero: none
	Submitted time.Time

	use        speed.StepReport   // mean of its last epochs, possibly with other CPUs
	window     []speed.StepReport // its last epochs; nil if they show nothing yet
	former     []speed.ShapeTime  // its epochs with other numbers of CPUs
	bottleneck schemas.Bottleneck

	losses     policy.Losses
	isError    bool   // the losses are 1 - accuracy
	isStarved  bool   // more CPUs would not make it faster
	movedAfter uint32 // epochs before its CPUs last changed; 0: they did not
}

// PoolOf returns the elastic jobs of a node with the capacity that they share; nil if the cores of
// the node are unknown.
func PoolOf(c *cluster.Cluster, node string, now time.Time) *Pool {
	n := c.Node(node)
	if n == nil {
		return nil
	}
	cores := c.Cores(node)
	if cores == 0 {
		return nil
	}
	held := wholeCPUs(c.HeldCPUs(node, now))
	s := &Pool{
		Node: node, Cores: cores, Capacity: cores, IsIdle: len(n.Running) == 0 && held == 0,
	}
	s.Foreign = foreignCPUs(n.Foreign.CPU.Ratio(now).Or(0), cores)
	s.Capacity -= s.Foreign + held
	least, ioRate := 0, ioRateOf(n)
	for _, j := range n.Running {
		if !j.IsElasticNow() {
			s.Capacity -= wholeCPUs(j.ProcessesPerNode())
			continue
		}
		share := shareOf(c, j, ioRate, now)
		least += share.Counts[0]
		s.Jobs = append(s.Jobs, share)
	}
	s.lacking = max(0, least-s.Capacity)
	s.Capacity += s.lacking // a running job cannot be stopped
	return s
}

// shareOf returns the share of a running elastic job. ioRate is that of all jobs of its node.
func shareOf(c *cluster.Cluster, j *cluster.Job, ioRate float64, now time.Time) Share {
	counts, isStarved := j.AllowedCPUs(now), j.IsStarved()
	if isStarved {
		counts = slices.DeleteFunc(counts, func(n int) bool { return n > int(j.Setting.CPUs) })
	}
	if len(counts) == 0 { // the current number is not in the request, and all others are ruled out
		counts = []int{int(j.Setting.CPUs)}
	}
	barred := slices.DeleteFunc(slices.Sorted(slices.Values(j.Request.CPUs)), func(n int) bool {
		return slices.Contains(counts, n)
	})
	return Share{
		Question:   decide.AskRunning(c, j, now),
		Counts:     counts,
		Barred:     barred,
		Initial:    j.InitialCPUs,
		Deadline:   j.Deadline(),
		Submitted:  j.SubmittedAt,
		losses:     j.Losses.History(now.Sub(j.ProgressAt), ioRatio(j.Losses.IORate, ioRate)),
		isError:    j.Losses.IsError,
		isStarved:  isStarved,
		movedAfter: j.MovedAfter,
		use:        j.LastUse(),
		window:     j.Window(),
		former:     j.FormerShapes(),
		bottleneck: j.Bottleneck(),
	}
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
		sum += j.Losses.IORate
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
