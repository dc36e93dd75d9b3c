package shares

import (
	"math"
	"slices"
	"time"

	"courier/advisor/decide"
	"courier/policy"
	"courier/policy/cost"
	"courier/policy/deadline"
	"courier/policy/fit"
	"courier/policy/quality"
	"courier/policy/speed"
	"courier/schemas"
)

// PlannedChange is a change of the CPUs of a job.
type PlannedChange struct {
	Question *decide.Question
	Move     schemas.PlannedMove
}

// Plan returns the changes of CPUs, in order of job IDs, by the policy of the objective with the rules
// above all policies (policy.Guard).
func (s *Pool) Plan(r decide.Regressors, now time.Time) []PlannedChange {
	jobs, _ := s.plan(nil, r, now)
	var planned []PlannedChange
	for i := range jobs {
		j := &jobs[i]
		if j.target == j.cpus {
			continue
		}
		m := schemas.PlannedMove{
			Purpose:      s.purpose(jobs, j),
			ForJob:       borrower(jobs, j),
			FromCPUs:     uint32(j.cpus),
			ToCPUs:       uint32(j.target),
			Rule:         string(j.move.Reason),
			SlackSeconds: j.slack(),
			FreeCPUs:     uint32(max(0, s.Capacity-s.held())),
			Growth:       j.move.Growth,
			Bottleneck:   j.bottleneck,
		}
		if j.alternatives[j.target] == nil || j.alternatives[j.cpus] == nil {
			m.SpeedRatio = j.move.SpeedRatio
		}
		m.RejectedCPUs, m.RejectedReasons = j.rejected(int(m.FreeCPUs))
		planned = append(planned, PlannedChange{j.Question, m})
	}
	return planned
}

// plan returns the target of each job, and the CPUs of an arriving job; 0 if there is none or if it
// does not fit.
func (s *Pool) plan(arrival *policy.Job, r decide.Regressors, now time.Time) (jobs []forecast, granted int) {
	view := policy.View{Now: now, Units: s.Capacity, Cores: s.Cores}
	needed, isEfficient := s.held(), arrival == nil && s.Objective == ObjectiveEfficiency
	if arrival != nil {
		needed += arrival.Options[0].Curve[0].Units
	}
	if isEfficient {
		view.Units += max(0, s.unused()-s.lacking)
	}
	isFull := needed > s.Capacity
	for i := range s.Jobs {
		f, job, ok := s.Jobs[i].predict(r, isFull, now)
		// Jobs may never have been measured with so many processes on the node, or with so many CPUs. If
		// the node is full, their plan uses the predictions for fewer CPUs.
		isUnknown := !ok && (!isFull || len(f.alternatives) == 0)
		if isEfficient {
			isUnknown = !ok && job.Training == nil
		}
		job.IsFixed = s.IsFixed || isUnknown
		jobs, view.Jobs = append(jobs, f), append(view.Jobs, job)
	}
	if arrival != nil {
		view.Queue = append(view.Queue, *arrival)
	}
	for _, m := range s.policy(arrival != nil).Plan(&view) {
		if m.Kind != policy.Resize {
			continue
		}
		if arrival != nil && m.Job == arrival.ID {
			granted = m.Units
		}
		for i := range jobs {
			if jobs[i].Question.JobID == m.Job {
				jobs[i].target, jobs[i].move = m.Units, m
			}
		}
	}
	return jobs, granted
}

// policies are the policies of the objectives on a node.
var policies = map[string]policy.Policy{
	ObjectiveSLO:        policy.Guard(deadline.ForNode()),
	ObjectiveJCT:        policy.Guard(policy.JCT()),
	ObjectiveQuality:    policy.Guard(quality.New(quality.Options{})),
	ObjectiveCost:       policy.Guard(cost.Policy{}),
	ObjectiveEfficiency: policy.Guard(fit.Node{}),
}

// policy returns the policy of the objective. An arriving job is planned by its SLO under each of them.
func (s *Pool) policy(isArrival bool) policy.Policy {
	if p, isKnown := policies[s.Objective]; isKnown && !isArrival {
		return p
	}
	return policies[ObjectiveSLO]
}

// held returns the CPUs that the elastic jobs hold.
func (s *Pool) held() int {
	held := 0
	for i := range s.Jobs {
		held += int(s.Jobs[i].Question.Self.Setting.CPUs)
	}
	return held
}

// unused returns the whole CPUs that jobs do not use although they cannot hold fewer, because they wait for
// something else: the kernel gives them to other jobs. The times of their epochs may scatter.
func (s *Pool) unused() int {
	fewest, used := 0, 0.0
	for i := range s.Jobs {
		e := &s.Jobs[i]
		if e.isStarved || e.use.IsIdle() && e.Question.EpochsDone() >= speed.MinReports {
			fewest += e.Counts[0]
			used += min(float64(e.Counts[0]), e.use.WorkerCPURatio*float64(e.use.Shape.WorkerCores))
		}
	}
	return fewest - int(math.Round(used))
}

// purpose returns why the CPUs of a job change. A job lends CPUs to other jobs. If all jobs would fit
// without the foreign load of the node, and none gets more, it makes room for that load.
func (s *Pool) purpose(jobs []forecast, f *forecast) string {
	isRaise := func(j forecast) bool { return j.target > j.cpus }
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
	case f.target < f.cpus && (f.move.Reason == policy.ReasonCost || f.move.Reason == policy.ReasonSurplus):
		return schemas.MoveSaved
	case f.target < f.cpus && f.target < initial:
		return schemas.MoveLent
	case f.target < f.cpus || f.cpus < initial && f.target <= initial:
		return schemas.MoveReturned
	case f.alternatives[f.cpus] != nil && !f.isLikely(f.cpus):
		// A job without a prediction, for example beside an unknown job, is not known to be at risk.
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
	return new(f.Question.Left() - *alt.UpperBoundSeconds)
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
