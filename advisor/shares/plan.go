package shares

import (
	"math"
	"slices"
	"time"

	"courier/advisor/decide"
	"courier/policy"
	"courier/policy/deadline"
	"courier/schemas"
)

// PlannedChange is a change of the CPUs of a job.
type PlannedChange struct {
	Question *decide.Question
	Move     schemas.PlannedMove
}

// Plan returns the changes of CPUs, in order of job IDs. It asks the objective's policy, and then keeps
// the rules above every policy: no job is stopped, no job that lends CPUs is predicted to miss its
// SLO because of it, and no change is too small to matter.
func (s *Pool) Plan(r decide.Regressors, now time.Time) []PlannedChange {
	jobs, _ := s.plan(nil, r, now)
	s.grow(jobs)
	var planned []PlannedChange
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
		planned = append(planned, PlannedChange{j.Question, m})
	}
	return planned
}

// plan returns the target of each job, and the CPUs of an arriving job; 0 if there is none or if it
// does not fit.
func (s *Pool) plan(
	arrival *policy.ElasticJob, r decide.Regressors, now time.Time,
) (jobs []forecast, granted int) {
	view := policy.ClusterView{Units: s.Capacity}
	isFull := s.held() > s.Capacity
	var kept []forecast
	for i := range s.Jobs {
		f, job, ok := s.Jobs[i].predict(r, now)
		// More processes than CPUs may never have been measured. Their jobs are planned by what is
		// known about fewer CPUs.
		isUnknown := !ok && (!isFull || len(f.alternatives) == 0)
		if s.IsFixed || isUnknown { // it keeps what it has
			kept = append(kept, f)
			view.Units -= f.cpus
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
	isUrgent := isFull || arrival != nil || slices.ContainsFunc(jobs, func(f forecast) bool {
		return f.target > f.cpus && !f.isLikely(f.cpus)
	})
	for i := range jobs {
		f := &jobs[i]
		// An arriving job must not count on a loan that is too small.
		if f.protect(); !f.isWorthwhile(s.Cores) || f.target < f.cpus && !f.isSettled && !isUrgent {
			f.target = f.cpus
		}
	}
	if !limitRaises(jobs, view.Units-granted, granted > 0) {
		for i := range jobs {
			jobs[i].target = jobs[i].cpus
		}
		granted = 0
	}
	jobs = append(jobs, kept...)
	s.keepGrown(jobs, granted)
	return jobs, granted
}

// deadlinePolicy plans the CPUs of a node. Its margins are small, because the rates are already upper
// bounds, and a running job changes its CPUs without a pause. It must not refuse a job that fits.
var deadlinePolicy = deadline.New(deadline.Options{
	MomentInterval: time.Hour,
	PayBack:        time.Second,
	ReviewInterval: time.Second,
	Margin:         time.Second,
	Urgent:         time.Second,
	NoHeadroom:     true,
})

// floors returns the CPUs that each job keeps under any objective: the fewest with which it is likely
// to meet its SLO, in order of the deadlines as far as the CPUs suffice, otherwise its fewest.
func floors(jobs []forecast, capacity int) []int {
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
func (s *Pool) held() int {
	held := 0
	for i := range s.Jobs {
		held += s.Jobs[i].base
	}
	return held
}

// limitRaises takes back raises until the targets fit the capacity: first those of jobs that are
// likely to meet their SLO without them. It reports whether they fit. Running jobs may hold more than
// the capacity, but isArrival says that the rest of it is for a new job.
func limitRaises(jobs []forecast, capacity int, isArrival bool) bool {
	held := 0
	for i := range jobs {
		held += jobs[i].target
	}
	for _, mayNeed := range []bool{false, true} {
		for i := range jobs {
			f := &jobs[i]
			if held > capacity && f.target > f.cpus && (mayNeed || f.isLikely(f.cpus)) {
				held -= f.target - f.cpus
				f.target = f.cpus
			}
		}
	}
	return held <= capacity || !isArrival && !slices.ContainsFunc(jobs, func(f forecast) bool {
		return f.target > f.cpus
	})
}

// Hysteresis of a change of CPUs (resource policies, section 1.3): it is at least one of these.
const (
	minShareOfNode = 0.05
	minShareOfSelf = 0.2
)

// isWorthwhile reports whether the change is large enough.
func (f *forecast) isWorthwhile(cores int) bool {
	change := math.Abs(float64(f.target - f.cpus))
	return change >= minShareOfSelf*float64(f.cpus) || change >= minShareOfNode*float64(cores)
}

// purpose returns why the CPUs of a job change. A job lends CPUs to other jobs. If all jobs would fit
// without the foreign load of the node, and none gets more, it makes room for that load.
func (s *Pool) purpose(jobs []forecast, f *forecast) string {
	isRaise := func(j forecast) bool { return j.target > j.actual }
	purpose, held := f.purpose(), s.held()
	if purpose == schemas.MoveLent && held > s.Capacity && held <= s.Capacity+s.Foreign &&
		!slices.ContainsFunc(jobs, isRaise) {
		return schemas.MoveForeignLoad
	}
	return purpose
}

// purpose returns why the CPUs of the job change, regardless of the foreign load.
func (f *forecast) purpose() string {
	initial := int(f.Initial)
	switch {
	case f.target < f.cpus && f.reason == policy.ReasonCost:
		return schemas.MoveSaved
	case f.target >= f.cpus && f.target < f.actual:
		return schemas.MoveReturned
	case f.target < f.cpus && f.target < initial:
		return schemas.MoveLent
	case f.target < f.cpus || f.cpus < initial && f.target <= initial:
		return schemas.MoveReturned
	case !f.isLikely(f.cpus):
		return schemas.MoveAtRisk
	}
	return schemas.MoveLeftOver
}

// borrower returns the only job that gets more CPUs while another lends some.
func borrower(jobs []forecast, lender *forecast) string {
	if lender.target >= lender.cpus {
		return ""
	}
	id := ""
	for i := range jobs {
		if jobs[i].target > jobs[i].cpus {
			if id != "" {
				return ""
			}
			id = jobs[i].Question.JobID
		}
	}
	return id
}

// slack returns the time to the deadline minus the upper bound of the remaining time with the current
// CPUs; nil if one of them is unknown.
func (f *forecast) slack() *float64 {
	alt := f.alternatives[f.cpus]
	if f.Deadline.IsZero() || alt == nil || alt.UpperBoundSeconds == nil {
		return nil
	}
	seconds := f.Question.Left() - *alt.UpperBoundSeconds
	return &seconds
}

// rejected returns the numbers of CPUs of the request that are neither the current one nor the target,
// and why the plan turned each of them down. free is the number of free CPUs of the node.
func (f *forecast) rejected(free int) (cpus []uint32, reasons []string) {
	for _, n := range slices.Sorted(slices.Values(slices.Concat(f.Counts, f.Barred))) {
		reason := "the policy prefers " + schemas.FormatCPUs(uint32(f.target))
		switch {
		case n == f.cpus || n == f.target:
			continue
		case f.isStarved && n > f.cpus:
			reason = "the job waits for its memory or storage"
		case slices.Contains(f.Barred, n):
			reason = "the runner undid or refused it recently"
		case f.alternatives[n] == nil:
			reason = "it was never measured"
		case n < f.cpus && !f.isLikely(n):
			reason = "the SLO would be at risk"
		case n > f.target && n > f.cpus+free:
			reason = "too few CPUs are free"
		}
		cpus, reasons = append(cpus, uint32(n)), append(reasons, reason)
	}
	return cpus, reasons
}
