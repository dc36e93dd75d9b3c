package advisor

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/policy"
	"courier/policy/jct"
	"courier/policy/quality"
)

// Objectives returns the values of Options.Objective.
func Objectives() []string {
	return []string{ObjectiveSLO, ObjectiveJCT, ObjectiveQuality, ObjectiveCost}
}

// objectiveOf returns the objective of a job: that of its user, otherwise that of the cluster.
func (s *NodeShares) objectiveOf(e *ElasticShare) string {
	return cmp.Or(s.UserObjectives[e.User], s.Objective, ObjectiveSLO)
}

// moves asks the policy of the objective. An arriving job is planned by its SLO. Jobs of different
// objectives keep what their SLOs need. Those of ObjectiveCost come first, because they take no more
// than that saves core-seconds. The others divide the rest by their number, and what the jobs of one
// objective cannot use goes to the next.
func (s *NodeShares) moves(
	view *policy.ClusterView, jobs []shareForecast, now time.Time,
) []policy.Move {
	groups := map[string][]int{}
	for i := range jobs {
		o := s.objectiveOf(jobs[i].ElasticShare)
		groups[o] = append(groups[o], i)
	}
	if len(view.Queue) > 0 || len(groups[ObjectiveSLO]) == len(jobs) {
		return sharePolicy.Plan(view, now).Moves
	}

	least := floors(jobs, view.Nodes[0].Units)
	spare, waiting := view.Nodes[0].Units, len(jobs)
	for _, n := range least {
		spare -= n
	}
	var moves []policy.Move
	for _, o := range []string{ObjectiveCost, ObjectiveSLO, ObjectiveJCT, ObjectiveQuality} {
		members := groups[o]
		if len(members) == 0 {
			continue
		}
		part := spare
		if o != ObjectiveCost {
			part = spare * len(members) / waiting
		}
		g := newGroup(view, jobs, least, members, part)
		planned := g.plan(o, now)
		spare = max(0, spare-g.used(planned))
		waiting -= len(members)
		moves = append(moves, planned...)
	}
	return moves
}

// jobGroup is the jobs of a node with the same objective.
type jobGroup struct {
	view     policy.ClusterView // of the group
	jobs     []*shareForecast
	least    []int // CPUs that each job keeps
	capacity int   // CPUs of the group
}

// newGroup returns the group of some jobs, with CPUs beyond those that they keep.
func newGroup(
	view *policy.ClusterView, jobs []shareForecast, least, members []int, beyond int,
) *jobGroup {
	g := &jobGroup{view: *view, capacity: beyond}
	g.view.Jobs = nil
	for _, i := range members {
		g.view.Jobs = append(g.view.Jobs, view.Jobs[i])
		g.jobs, g.least = append(g.jobs, &jobs[i]), append(g.least, least[i])
		g.capacity += least[i]
	}
	g.view.Nodes = slices.Clone(view.Nodes)
	g.view.Nodes[0].Units = g.capacity
	return g
}

// used returns the CPUs beyond those that the jobs keep, after some moves.
func (g *jobGroup) used(moves []policy.Move) int {
	used := 0
	for i := range g.jobs {
		units := g.jobs[i].cpus
		for _, m := range moves {
			if m.Kind == policy.Resize && m.Job == g.view.Jobs[i].ID {
				units = m.Units
			}
		}
		used += max(0, units-g.least[i])
	}
	return used
}

// plan returns the moves of the group.
func (g *jobGroup) plan(objective string, now time.Time) []policy.Move {
	switch objective {
	case ObjectiveJCT:
		return g.shortest(now)
	case ObjectiveQuality:
		return g.byGrowth()
	case ObjectiveCost:
		return g.cheapest()
	}
	return sharePolicy.Plan(&g.view, now).Moves
}

// resize returns the moves to some numbers of CPUs, with their reasons.
func (g *jobGroup) resize(cpus []int, reasons []policy.Reason) (moves []policy.Move) {
	for i := range g.jobs {
		if cpus[i] != g.jobs[i].cpus {
			moves = append(moves, policy.Move{
				Kind: policy.Resize, Job: g.view.Jobs[i].ID, Units: cpus[i], Reason: reasons[i],
			})
		}
	}
	return moves
}

// shortest divides the CPUs beyond those that the jobs keep by policy/jct.
func (g *jobGroup) shortest(now time.Time) []policy.Move {
	beyond := g.view
	beyond.Nodes = slices.Clone(g.view.Nodes)
	beyond.Jobs = slices.Clone(g.view.Jobs)
	for i := range beyond.Jobs {
		j := &beyond.Jobs[i]
		j.Units = max(0, j.Units-g.least[i])
		j.Options = []policy.Option{{Work: j.Options[0].Work}}
		for _, p := range g.view.Jobs[i].Options[0].Curve {
			if p.Units -= g.least[i]; p.Units > 0 {
				j.Options[0].Curve = append(j.Options[0].Curve, p)
			}
		}
		beyond.Nodes[0].Units -= g.least[i]
	}
	granted := map[string]policy.Move{}
	for _, m := range jct.New().Plan(&beyond, now).Moves {
		granted[m.Job] = m
	}

	cpus, reasons := make([]int, len(g.jobs)), make([]policy.Reason, len(g.jobs))
	for i := range g.jobs {
		cpus[i], reasons[i] = g.least[i]+beyond.Jobs[i].Units, policy.ReasonShare
		if m, isGranted := granted[beyond.Jobs[i].ID]; isGranted {
			cpus[i], reasons[i] = g.least[i]+m.Units, m.Reason
		}
	}
	return g.resize(cpus, reasons)
}

// phaseReasons are the reasons of moves by policy/quality.
var phaseReasons = map[quality.Phase]policy.Reason{
	quality.Growing:    policy.ReasonGrowing,
	quality.Watched:    policy.ReasonWatched,
	quality.Completing: policy.ReasonCompleting,
}

// byGrowth divides the CPUs by policy/quality. A job that reports neither a loss nor an accuracy keeps
// its CPUs.
func (g *jobGroup) byGrowth() []policy.Move {
	cpus, reasons := slices.Clone(g.least), make([]policy.Reason, len(g.jobs))
	o := quality.Options{Threshold: g.growthThreshold()}
	states, windows := map[string]quality.JobState{}, map[string]*quality.Window{}
	free := g.capacity // for the jobs that are planned
	for i := range g.jobs {
		f := g.jobs[i]
		reasons[i] = policy.ReasonShare
		if f.isLossUnknown() {
			cpus[i] = max(cpus[i], f.cpus)
			free -= cpus[i]
			continue
		}
		phase, w := quality.Observe(f.history(), o)
		id := f.Question.JobID
		states[id] = quality.JobState{Phase: phase, Share: float64(f.cpus) / float64(g.capacity)}
		windows[id] = w
	}
	planned, _ := quality.Plan(states, windows, o)

	wanted := make([]float64, len(g.jobs))
	for i := range g.jobs {
		f := g.jobs[i]
		s, isPlanned := planned[f.Question.JobID]
		if !isPlanned {
			continue
		}
		free -= cpus[i]
		wanted[i] = s.Share * float64(g.capacity)
		f.growth = quality.Growth(windows[f.Question.JobID])
		switch reasons[i] = phaseReasons[s.Phase]; {
		case s.IsStale:
			reasons[i] = policy.ReasonStale
			wanted[i] = float64(f.cpus)
		case windows[f.Question.JobID] == nil:
			reasons[i] = policy.ReasonNewcomer
		}
	}
	g.step(cpus, wanted, free)
	for i := range cpus {
		if cpus[i] == g.least[i] && cpus[i] > g.jobs[i].cpus {
			reasons[i] = policy.ReasonShare // for its SLO
		}
	}
	return g.resize(cpus, reasons)
}

// stayFactor favours the CPUs that a job holds, so that a growth that scatters does not move CPUs
// after each epoch (resource policies, section 1.3: a share moves by at least 20 % of itself).
const stayFactor = 1.2

// step gives free CPUs, one step of a job's list at a time, to the job that wants the most in relation
// to what it would hold: the divisor method of Sainte-Laguë.
func (g *jobGroup) step(cpus []int, wanted []float64, free int) {
	for {
		best, to, highest := -1, 0, 0.0
		for i := range g.jobs {
			f := g.jobs[i]
			next := f.nextCPUs(cpus[i])
			if next == 0 || next-cpus[i] > free || !(wanted[i] > 0) {
				continue
			}
			value := wanted[i] / (float64(cpus[i]+next) / 2)
			if next <= f.cpus {
				value *= stayFactor
			}
			if value > highest {
				best, to, highest = i, next, value
			}
		}
		if best < 0 {
			return
		}
		free -= to - cpus[best]
		cpus[best] = to
	}
}

// nextCPUs returns the next number of CPUs with which the job is predicted to be faster; 0 if there
// is none.
func (f *shareForecast) nextCPUs(cpus int) int {
	for _, n := range f.Counts {
		if n > cpus && f.seconds(n) < f.seconds(cpus) {
			return n
		}
	}
	return 0
}

// seconds returns the predicted time to the end; +Inf if it is unknown.
func (f *shareForecast) seconds(cpus int) float64 {
	alt := f.alternatives[cpus]
	if alt == nil || alt.PredictedSeconds == nil {
		return math.Inf(1)
	}
	return *alt.PredictedSeconds
}

// isLossUnknown reports whether the job has run for two epochs without two losses or accuracies.
func (f *shareForecast) isLossUnknown() bool {
	return len(f.losses.Reports) == 0 && f.Question.epochsDone() >= 2
}

// history returns the losses of the job, with the last one if it is predicted.
func (f *shareForecast) history() *quality.History {
	h := f.losses
	alt := f.alternatives[f.cpus]
	if f.isError && alt != nil && alt.PredictedAccuracy != nil {
		final := 1 - *alt.PredictedAccuracy
		h.Final = &final
	}
	return &h
}

// growthThreshold returns the growth that counts: that of a loss which falls evenly, from its largest
// value to zero, during the whole work of a mean job. Zero is the default of policy/quality. An
// absolute threshold fits one length of jobs: 0.01 per second that of about 100 seconds.
func (g *jobGroup) growthThreshold() float64 {
	work, n := 0.0, 0
	for i := range g.jobs {
		h, epochs := &g.jobs[i].losses, g.jobs[i].Question.Self.Setting.Epochs
		if len(h.Reports) == 0 || epochs == 0 {
			continue
		}
		mean := 0.0 // node-seconds of an epoch
		for _, r := range h.Reports {
			mean += r.Seconds * r.CPURatio / float64(len(h.Reports))
		}
		work, n = work+mean*float64(epochs), n+1
	}
	if !(work > 0) {
		return 0
	}
	return float64(n) / work
}

// minSaving is the ratio of core-seconds that more CPUs than the SLO needs must save. Predictions
// scatter by as much.
const minSaving = 0.05

// cheapest gives each job the fewest CPUs with which its SLO is likely, and more only where that saves
// core-seconds.
func (g *jobGroup) cheapest() []policy.Move {
	cpus, reasons := make([]int, len(g.jobs)), make([]policy.Reason, len(g.jobs))
	free := g.capacity
	for i := range g.jobs {
		cpus[i], reasons[i] = g.jobs[i].fewestCPUs(g.least[i]), policy.ReasonCost
		if cpus[i] > g.jobs[i].cpus {
			reasons[i] = policy.ReasonShare
		}
		free -= cpus[i]
	}
	for i := range g.jobs {
		f := g.jobs[i]
		best := cpus[i]
		for _, n := range f.Counts {
			if n > best && n-cpus[i] <= free && f.isLikely(n) == f.isLikely(cpus[i]) &&
				f.coreSeconds(n) < (1-minSaving)*f.coreSeconds(best) {
				best = n
			}
		}
		if best != cpus[i] {
			free -= best - cpus[i]
			cpus[i], reasons[i] = best, policy.ReasonCost
		}
	}
	return g.resize(cpus, reasons)
}

// fewestCPUs returns the CPUs to which a job may shrink. Its SLO must stay likely by a margin, or the
// next slow epoch would take the CPUs back.
func (f *shareForecast) fewestCPUs(least int) int {
	if least >= f.cpus || f.Deadline.IsZero() || !f.isLikely(f.cpus) {
		return least
	}
	p := f.Question.minProbability()
	for _, n := range f.Counts {
		alt := f.alternatives[n]
		if n >= least && n < f.cpus && alt != nil && probability(alt) >= p+clearRatio*(1-p) {
			return n
		}
	}
	return f.cpus
}

// coreSeconds returns the predicted CPUs times seconds until the end; +Inf if they are unknown.
func (f *shareForecast) coreSeconds(cpus int) float64 {
	return float64(cpus) * f.seconds(cpus)
}
