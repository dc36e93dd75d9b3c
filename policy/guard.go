package policy

import (
	"math"
	"slices"
)

// Guard returns a policy for the running jobs of a node, with the rules above all policies (section 1.3
// of the design page resource-policies):
//
//   - A job with a promised deadline keeps the fewest units with which it meets it. It gives up units
//     only if it still meets its deadline, or is lost anyway.
//   - No running job is stopped, and fixed jobs keep their units.
//   - A job changes by at least 20 % of its units, or by 5 % of the node. The same holds for one of the
//     shares that weights set.
//   - A job that changed lately gives up only units that a deadline, an arrival or a full node needs.
//   - All jobs fit: jobs that hold more than they need yield to a full node. An arriving job
//     starts only if the running ones make room for it.
//
// A number of units that was tried without success is not on the curve of its job, so no policy
// chooses it.
func Guard(p Policy) Policy { return guard{p} }

type guard struct{ Policy }

// guarded is a running job with what the policy wants for it.
type guarded struct {
	*Job
	move Move // of the policy; its units are the target
}

// Plan implements Policy.
func (g guard) Plan(v *View) []Move {
	free, jobs := v.withFloors()
	var moves, arrivals, weights []Move
	granted := 0
	for _, m := range g.Policy.Plan(free) {
		i := slices.IndexFunc(jobs, func(j guarded) bool { return j.ID == m.Job })
		switch {
		case m.Kind == Resize && i >= 0:
			if !m.isShaped() {
				m.Units = max(m.Units, jobs[i].leastUnits())
			}
			jobs[i].move = m
		case m.Kind == Resize:
			granted += m.Units
			arrivals = append(arrivals, m)
		case m.Kind == Weigh:
			weights = append(weights, m)
		default:
			moves = append(moves, m)
		}
	}
	if v.areWorthwhile(weights) {
		moves = append(moves, weights...)
	}

	for i := range jobs {
		j := &jobs[i]
		if j.move.isShaped() {
			continue // policy/fit knows its deadline and what its pause costs
		}
		if j.protect(v); !j.isWorthwhile(v.Cores) {
			j.move.Units = j.Units
		}
	}
	settle(v, jobs, free.Units-granted)
	if !limitRaises(v, jobs, free.Units-granted, granted > 0) {
		return moves
	}
	yield(v, jobs, free.Units-granted)
	for _, j := range jobs {
		isMove := j.move.Units != j.Units
		if j.move.isShaped() {
			isMove = j.move.Units == j.move.Shape.Cores()
		}
		if isMove {
			moves = append(moves, j.move)
		}
	}
	return append(moves, arrivals...)
}

// isShaped reports whether the move changes a shape, possibly with the same units.
func (m *Move) isShaped() bool { return m.Shape.Workers > 0 }

// withFloors returns the view without fixed jobs and their units, with the floor of each other job.
func (v *View) withFloors() (free *View, jobs []guarded) {
	rest := *v
	free, rest.Jobs = &rest, nil
	for i := range v.Jobs {
		if j := &v.Jobs[i]; j.IsFixed {
			free.Units -= j.Units
		} else {
			free.Jobs = append(free.Jobs, *j)
		}
	}

	left := free.Units
	order := make([]*Job, len(free.Jobs))
	for i := range free.Jobs {
		j := &free.Jobs[i]
		j.Floor = j.leastUnits()
		left -= j.Floor
		order[i] = j
		jobs = append(jobs, guarded{j, Move{Kind: Resize, Job: j.ID, Units: j.Units}})
	}
	slices.SortStableFunc(order, func(a, b *Job) int { return a.Deadline.Compare(b.Deadline) })
	for _, j := range order {
		if j.KeepsDeadline(v, j.Floor) {
			continue
		}
		for _, p := range j.curve() {
			if p.Units > j.Floor && p.Units-j.Floor <= left && j.KeepsDeadline(v, p.Units) {
				left -= p.Units - j.Floor
				j.Floor = p.Units
				break
			}
		}
	}
	return free, jobs
}

// protect keeps the job from giving up so many units that it misses its deadline, and from giving up any
// if only more units would save it. A job that is lost may give up all but the fewest.
func (j *guarded) protect(v *View) {
	for _, p := range j.curve() {
		if j.move.Units < j.Units && p.Units >= j.move.Units && j.KeepsDeadline(v, p.Units) {
			j.move.Units = min(p.Units, j.Units)
			return
		}
	}
}

// A job keeps its units for so many epochs after it got them: a prediction that scatters must not move
// units to and fro between equal jobs.
const (
	settlingEpochs = 3
	settlingShare  = 10 // of all epochs: one in so many
)

// isSettling reports whether the units of the job changed lately.
func (j *Job) isSettling() bool {
	return j.HasMoved && j.EpochsSinceMove < max(settlingEpochs, j.Epochs/settlingShare)
}

// Hysteresis of a change: it is at least one of these.
const (
	minShareOfNode = 0.05
	minShareOfSelf = 0.2
)

// isWorthwhile reports whether the change is large enough.
func (j *guarded) isWorthwhile(cores int) bool {
	change := math.Abs(float64(j.move.Units - j.Units))
	return change >= minShareOfSelf*float64(j.Units) || change >= minShareOfNode*float64(cores)
}

// areWorthwhile reports whether new shares of a node are worth setting: one of them changes enough, or
// a job has come or gone.
func (v *View) areWorthwhile(weights []Move) bool {
	sum := 0.0
	for i := range v.Jobs {
		j := &v.Jobs[i]
		sum += j.Share
		at := slices.IndexFunc(weights, func(m Move) bool { return m.Job == j.ID })
		if at < 0 {
			continue
		}
		change := math.Abs(weights[at].Share - j.Share)
		if change >= minShareOfNode || change >= minShareOfSelf*j.Share {
			return true
		}
	}
	return !(math.Abs(sum-1) <= 1e-9)
}

// settle lets jobs that changed lately keep their units, but for those that an arrival, or a job which
// would miss its deadline, needs beyond the free ones of a capacity and those of the other jobs.
func settle(v *View, jobs []guarded, capacity int) {
	needed := -capacity
	for i := range jobs {
		j := &jobs[i]
		needed += j.Units
		isShrinking := j.move.Units < j.Units && !j.isSettling()
		if isShrinking || j.move.Units > j.Units && !j.KeepsDeadline(v, j.Units) {
			needed += j.move.Units - j.Units
		}
	}
	for i := range jobs {
		j := &jobs[i]
		if less := j.Units - j.move.Units; less > 0 && j.isSettling() {
			if needed <= 0 {
				j.move.Units = j.Units
			}
			needed -= less
		}
	}
}

// yield takes units from jobs that keep their deadline with fewer units, until all jobs fit the capacity. A
// policy plans each job at the present load of the node, at which no job may gain from the units.
func yield(v *View, jobs []guarded, capacity int) {
	for i := range jobs {
		capacity -= jobs[i].move.Units
	}
	for i := range jobs {
		j := &jobs[i]
		if capacity < 0 && !j.move.isShaped() && j.Floor < j.move.Units && j.KeepsDeadline(v, j.Floor) {
			capacity += j.move.Units - j.Floor
			j.move.Units, j.move.Reason = j.Floor, ReasonYield
		}
	}
}

// limitRaises takes back raises until the targets fit the capacity: first those of jobs that meet
// their deadline without them. It reports whether they fit. Running jobs may hold more than the
// capacity, but isArrival says that the rest of it is for a new job.
func limitRaises(v *View, jobs []guarded, capacity int, isArrival bool) bool {
	held := 0
	for i := range jobs {
		held += jobs[i].move.Units
	}
	for _, mayNeed := range []bool{false, true} {
		for i := range jobs {
			j := &jobs[i]
			if held > capacity && j.move.Units > j.Units && (mayNeed || j.KeepsDeadline(v, j.Units)) {
				held -= j.move.Units - j.Units
				j.move.Units = j.Units
			}
		}
	}
	return held <= capacity || !isArrival && !slices.ContainsFunc(jobs, func(j guarded) bool {
		return j.move.Units > j.Units
	})
}
