package advisor

import (
	"fmt"
	"math"
	"slices"
	"time"

	"courier/policy"
	"courier/schemas"
)

// DecideMove returns the advice for a running job whose CPUs should change: the prediction with the
// new CPUs is chosen, and the one with the current CPUs is the last alternative. It is pure like
// Decide.
func DecideMove(q *Question, m schemas.PlannedMove, r Regressors, at time.Time) *schemas.Advice {
	current := Decide(q.withCPUs([]int{int(m.FromCPUs)}), r, at)
	a := Decide(q.withCPUs([]int{int(m.ToCPUs)}), r, at)
	unmoved := current.Alternatives[0]
	unmoved.Reason = reasonOtherCPUs
	a.Alternatives = append(a.Alternatives, unmoved)
	a.Action, a.Move = schemas.ActionCPUs, &m
	a.Message = moveMessage(&m) + costMessage(&m, a.Chosen, &unmoved) + ": " + a.Message
	return a
}

// moveMessage returns why the CPUs of a job should change.
func moveMessage(m *schemas.PlannedMove) string {
	text := schemas.FormatCPUs(m.ToCPUs) + " instead of " + schemas.FormatCPUs(m.FromCPUs)
	if reason := ruleMessage(m); reason != "" {
		return text + reason
	}
	switch m.Purpose {
	case schemas.MoveLent:
		if m.ForJob != "" {
			return text + ", lent to job " + m.ForJob
		}
		return text + ", lent to other jobs"
	case schemas.MoveForeignLoad:
		return text + ", because other work uses the node"
	case schemas.MoveReturned:
		return text + ", as before"
	case schemas.MoveAtRisk:
		return text + ", because the SLO is at risk"
	}
	return text + ", because no other job needs them for its SLO"
}

// ruleMessage returns why the CPUs change by a rule of an objective; empty for other rules.
func ruleMessage(m *schemas.PlannedMove) string {
	switch policy.Reason(m.Rule) {
	case policy.ReasonGrowing:
		if m.ToCPUs > m.FromCPUs {
			return ", because its loss falls fast"
		}
		return ", because the loss of other jobs falls faster"
	case policy.ReasonNewcomer:
		return ", until the fall of its loss is known"
	case policy.ReasonWatched, policy.ReasonCompleting:
		if m.ToCPUs < m.FromCPUs {
			return ", because its loss hardly falls"
		}
	case policy.ReasonCost:
		if m.ToCPUs < m.FromCPUs {
			return ", because they suffice for its SLO"
		}
		return ", because that saves core-seconds"
	}
	return ""
}

// costMessage returns the predicted core-hours of a move for the least cost.
func costMessage(m *schemas.PlannedMove, with, without *schemas.Alternative) string {
	if policy.Reason(m.Rule) != policy.ReasonCost || with == nil ||
		with.PredictedSeconds == nil || without.PredictedSeconds == nil {
		return ""
	}
	hours := func(a *schemas.Alternative) float64 {
		return float64(a.CPUs) * *a.PredictedSeconds / 3600
	}
	return fmt.Sprintf(" (%.3g instead of %.3g core-hours)", hours(with), hours(without))
}

// Admit returns the advice for an elastic job that may start now; nil if it must wait. A job that
// meets its SLO may start if the deadline policy admits it. Any other job may start on CPUs that
// nobody holds, if that breaks no promise. Foreign load does not keep a job from an idle node.
func (s *NodeShares) Admit(q *Question, r Regressors, now time.Time) *schemas.Advice {
	if q == nil {
		return nil
	}
	if room := s.MakeRoom(q, r, now); room != nil {
		return room
	}
	free := s.Capacity - s.held()
	counts := slices.DeleteFunc(slices.Clone(q.Request.CPUs), func(n int) bool { return n > free })
	if len(counts) == 0 && s.IsIdle {
		counts = schemas.CPUs{slices.Min(q.Request.CPUs)}
	}
	if len(counts) == 0 {
		return nil
	}
	advice := Decide(q.withLoans(nil, slices.Max(counts)), r, now)
	if len(brokenJobs(advice)) > 0 {
		return nil
	}
	advice.Admission = &schemas.Admission{Verdict: schemas.Admitted}
	return advice
}

// MakeRoom returns the advice for a job that may start because elastic jobs lend it CPUs or, if it is
// elastic, because the CPUs are free. It returns nil if the deadline policy does not admit the job, or
// if its SLO or one of theirs would not be likely. A nil question gives nil.
func (s *NodeShares) MakeRoom(q *Question, r Regressors, now time.Time) *schemas.Advice {
	if q == nil || q.Request.SLO == 0 {
		return nil
	}
	arrival, ok := s.arrival(q, r, now)
	if !ok {
		return nil
	}
	jobs, granted := s.plan(&arrival, r, now)
	if granted == 0 {
		return nil
	}
	var loans []schemas.Loan
	for i := range jobs {
		if f := &jobs[i]; f.target < f.cpus {
			loans = append(loans, schemas.Loan{
				JobID: f.Question.JobID, FromCPUs: uint32(f.cpus), ToCPUs: uint32(f.target),
			})
		}
	}
	if len(loans) == 0 && !q.Request.Elastic {
		return nil
	}

	advice := Decide(q.withLoans(loans, granted), r, now)
	if advice.Decision != schemas.MeetsSLO || len(brokenJobs(advice)) > 0 {
		return nil
	}
	advice.Admission = &schemas.Admission{Verdict: schemas.Admitted, Loans: loans}
	if len(loans) > 0 {
		advice.Message = loanMessage(loans) + ": " + advice.Message
	}
	return advice
}

// CanWait reports whether a new job meets its SLO although it borrows no CPUs: if it starts when the
// first elastic job has ended, and jobs that are more urgent have run for a time. Two jobs that run
// one after the other end as early as side by side, but the CPUs are free for an urgent job sooner.
func (s *NodeShares) CanWait(q *Question, r Regressors, before time.Duration, now time.Time) bool {
	if q == nil || q.Request.SLO == 0 {
		return false
	}
	firstEnd, first, cpus := math.Inf(1), "", s.Capacity
	for i := range s.Jobs {
		f, job, ok := s.Jobs[i].forecast(r, now)
		if !ok {
			cpus -= f.cpus
			continue
		}
		if end := 1 / job.Options[0].Curve.Rate(f.cpus); end < firstEnd {
			firstEnd, first = end, job.ID
		}
	}
	later := *q
	later.Others = slices.DeleteFunc(slices.Clone(q.Others), func(m Member) bool {
		return m.JobID == first
	})
	arrival, ok := s.arrival(&later, r, now)
	if !ok {
		return false
	}
	for n := cpus; n > 0; n-- {
		if rate := arrival.Options[0].Curve.Rate(n); rate > 0 {
			return firstEnd+before.Seconds()+1/rate <= q.left()
		}
	}
	return false
}

// arrival describes a new job for the policy, if the elastic jobs held the fewest CPUs. ok is false
// if nothing is known about the job.
func (s *NodeShares) arrival(q *Question, r Regressors, now time.Time) (policy.ElasticJob, bool) {
	var fewest []schemas.Loan
	for i := range s.Jobs {
		fewest = append(fewest, schemas.Loan{
			JobID: s.Jobs[i].Question.JobID, ToCPUs: uint32(s.Jobs[i].Counts[0]),
		})
	}
	best := Decide(q.withLoans(fewest, 0), r, now)
	curve := curveOf(best, int(best.Chosen.BatchSize), map[int]*schemas.Alternative{})
	return policy.ElasticJob{
		ID:        q.JobID,
		Submitted: now.Add(-q.Elapsed),
		Deadline:  now.Add(time.Duration(q.left() * float64(time.Second))),
		Options:   []policy.Option{{Work: 1, Curve: curve}},
	}, len(curve) > 0 && q.left() > 0
}

// withLoans returns the question of a new job while other jobs lend CPUs. granted is the number of CPUs
// of the new job; 0 leaves the choice.
func (q *Question) withLoans(loans []schemas.Loan, granted int) *Question {
	other := *q
	if granted > 0 {
		other.Request.CPUs = schemas.CPUs{granted}
	}
	other.Others = slices.Clone(q.Others)
	for i := range other.Others {
		m := &other.Others[i]
		for _, l := range loans {
			if l.JobID == m.JobID {
				m.Setting.CPUs = l.ToCPUs
			}
		}
	}
	return &other
}

// AssumeMoves returns the question to which a recorded advice was the answer, with the loans and the
// CPUs that were granted.
func (q *Question) AssumeMoves(recorded *schemas.Advice) *Question {
	v := recorded.Admission
	isAdmitted := v != nil && v.Verdict == schemas.Admitted && recorded.Chosen != nil
	if isAdmitted && (q.Request.Elastic || len(v.Loans) > 0) {
		return q.withLoans(v.Loans, int(recorded.Chosen.CPUs))
	}
	return q
}

// loanMessage returns which jobs lend CPUs.
func loanMessage(loans []schemas.Loan) string {
	names, cpus := make([]string, len(loans)), uint32(0)
	for i, l := range loans {
		names[i], cpus = l.JobID, cpus+l.FromCPUs-l.ToCPUs
	}
	return "admitted with " + schemas.FormatCPUs(cpus) + " lent by " + listJobs(names)
}
