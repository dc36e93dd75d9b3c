package shares

import (
	"math"
	"slices"
	"time"

	"courier/advisor/decide"
	"courier/policy"
	"courier/policy/quality"
)

// Objectives returns the values of Options.Objective.
func Objectives() []string {
	return []string{ObjectiveSLO, ObjectiveJCT, ObjectiveQuality, ObjectiveCost}
}

// moves asks the policy of the objective. An arriving job is planned by its SLO under each of them.
func (s *Pool) moves(
	view *policy.ClusterView, jobs []forecast, now time.Time,
) []policy.Move {
	if len(view.Queue) > 0 {
		return deadlinePolicy.Plan(view, now).Moves
	}
	d := division{view: view, jobs: jobs, least: floors(jobs, view.Units)}
	switch s.Objective {
	case ObjectiveJCT:
		return d.shortest(now)
	case ObjectiveQuality:
		return d.byGrowth()
	case ObjectiveCost:
		return d.cheapest()
	}
	return deadlinePolicy.Plan(view, now).Moves
}

// division divides the CPUs of a node by an objective.
type division struct {
	view  *policy.ClusterView
	jobs  []forecast
	least []int // CPUs that each job keeps for its SLO
}

func (d *division) capacity() int { return d.view.Units }

// resize returns the moves to some numbers of CPUs, with their reasons.
func (d *division) resize(cpus []int, reasons []policy.Reason) (moves []policy.Move) {
	for i := range d.jobs {
		if cpus[i] != d.jobs[i].cpus {
			moves = append(moves, policy.Move{
				Kind: policy.Resize, Job: d.view.Jobs[i].ID, Units: cpus[i], Reason: reasons[i],
			})
		}
	}
	return moves
}

// shortest divides the CPUs beyond those that the jobs keep by policy.JCT.
func (d *division) shortest(now time.Time) []policy.Move {
	beyond := *d.view
	beyond.Jobs = slices.Clone(d.view.Jobs)
	for i := range beyond.Jobs {
		j := &beyond.Jobs[i]
		j.Units = max(0, j.Units-d.least[i])
		j.Options = []policy.Option{{Work: j.Options[0].Work}}
		for _, p := range d.view.Jobs[i].Options[0].Curve {
			if p.Units -= d.least[i]; p.Units > 0 {
				j.Options[0].Curve = append(j.Options[0].Curve, p)
			}
		}
		beyond.Units -= d.least[i]
	}
	granted := map[string]policy.Move{}
	for _, m := range policy.JCT().Plan(&beyond, now).Moves {
		granted[m.Job] = m
	}

	cpus, reasons := make([]int, len(d.jobs)), make([]policy.Reason, len(d.jobs))
	for i := range d.jobs {
		cpus[i], reasons[i] = d.least[i]+beyond.Jobs[i].Units, policy.ReasonShare
		if m, isGranted := granted[beyond.Jobs[i].ID]; isGranted {
			cpus[i], reasons[i] = d.least[i]+m.Units, m.Reason
		}
	}
	return d.resize(cpus, reasons)
}

// phaseReasons are the reasons of moves by policy/quality.
var phaseReasons = map[quality.Phase]policy.Reason{
	quality.Growing:    policy.ReasonGrowing,
	quality.Watched:    policy.ReasonWatched,
	quality.Completing: policy.ReasonCompleting,
}

// byGrowth divides the CPUs by policy/quality. A job that reports neither a loss nor an accuracy keeps
// its CPUs.
func (d *division) byGrowth() []policy.Move {
	cpus, reasons := slices.Clone(d.least), make([]policy.Reason, len(d.jobs))
	o := quality.Options{Threshold: d.growthThreshold()}
	states, windows := map[string]quality.JobState{}, map[string]*quality.Window{}
	free := d.capacity() // for the jobs that are planned
	for i := range d.jobs {
		f := &d.jobs[i]
		reasons[i] = policy.ReasonShare
		if f.isLossUnknown() {
			cpus[i] = max(cpus[i], f.cpus)
			free -= cpus[i]
			continue
		}
		phase, w := quality.Observe(f.history(), o)
		id := f.Question.JobID
		states[id] = quality.JobState{Phase: phase, Share: float64(f.cpus) / float64(d.capacity())}
		windows[id] = w
	}
	planned, _ := quality.Plan(states, windows, o)

	wanted := make([]float64, len(d.jobs))
	for i := range d.jobs {
		f := &d.jobs[i]
		s, isPlanned := planned[f.Question.JobID]
		if !isPlanned {
			continue
		}
		free -= cpus[i]
		wanted[i] = s.Share * float64(d.capacity())
		f.growth = quality.Growth(windows[f.Question.JobID])
		switch reasons[i] = phaseReasons[s.Phase]; {
		case s.IsStale:
			reasons[i] = policy.ReasonStale
			wanted[i] = float64(f.cpus)
		case windows[f.Question.JobID] == nil:
			reasons[i] = policy.ReasonNewcomer
		}
	}
	d.step(cpus, wanted, free)
	for i := range cpus {
		if cpus[i] == d.least[i] && cpus[i] > d.jobs[i].cpus {
			reasons[i] = policy.ReasonShare // for its SLO
		}
	}
	return d.resize(cpus, reasons)
}

// stayFactor favours the CPUs that a job holds, so that a growth that scatters does not move CPUs
// after each epoch (resource policies, section 1.3: a share moves by at least 20 % of itself).
const stayFactor = 1.2

// step gives free CPUs, one step of a job's list at a time, to the job that wants the most in relation
// to what it would hold: the divisor method of Sainte-Laguë.
func (d *division) step(cpus []int, wanted []float64, free int) {
	for {
		best, to, highest := -1, 0, 0.0
		for i := range d.jobs {
			f := &d.jobs[i]
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
func (f *forecast) nextCPUs(cpus int) int {
	for _, n := range f.Counts {
		if n > cpus && f.seconds(n) < f.seconds(cpus) {
			return n
		}
	}
	return 0
}

// seconds returns the predicted time to the end; +Inf if it is unknown.
func (f *forecast) seconds(cpus int) float64 {
	alt := f.alternatives[cpus]
	if alt == nil || alt.PredictedSeconds == nil {
		return math.Inf(1)
	}
	return *alt.PredictedSeconds
}

// isLossUnknown reports whether the job has run for two epochs without two losses or accuracies.
func (f *forecast) isLossUnknown() bool {
	return len(f.losses.Reports) == 0 && f.Question.EpochsDone() >= 2
}

// history returns the losses of the job, with the last one if it is predicted.
func (f *forecast) history() *quality.History {
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
func (d *division) growthThreshold() float64 {
	work, n := 0.0, 0
	for i := range d.jobs {
		h, epochs := &d.jobs[i].losses, d.jobs[i].Question.Self.Setting.Epochs
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
func (d *division) cheapest() []policy.Move {
	cpus, reasons := make([]int, len(d.jobs)), make([]policy.Reason, len(d.jobs))
	free := d.capacity()
	for i := range d.jobs {
		cpus[i], reasons[i] = d.jobs[i].fewestCPUs(d.least[i]), policy.ReasonCost
		if cpus[i] > d.jobs[i].cpus {
			reasons[i] = policy.ReasonShare
		}
		free -= cpus[i]
	}
	for i := range d.jobs {
		f := &d.jobs[i]
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
	return d.resize(cpus, reasons)
}

// fewestCPUs returns the CPUs to which a job may shrink. Its SLO must stay likely by a margin, or the
// next slow epoch would take the CPUs back.
func (f *forecast) fewestCPUs(least int) int {
	if least >= f.cpus || f.Deadline.IsZero() || !f.isLikely(f.cpus) {
		return least
	}
	p := f.Question.Request.Confidence
	for _, n := range f.Counts {
		alt := f.alternatives[n]
		if n >= least && n < f.cpus && alt != nil && decide.ProbabilityOf(alt) >= p+decide.ClearRatio*(1-p) {
			return n
		}
	}
	return f.cpus
}

// coreSeconds returns the predicted CPUs times seconds until the end; +Inf if they are unknown.
func (f *forecast) coreSeconds(cpus int) float64 {
	return float64(cpus) * f.seconds(cpus)
}
