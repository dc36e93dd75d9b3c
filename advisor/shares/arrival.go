package shares

import (
	"slices"
	"time"

	"courier/advisor/decide"
	"courier/policy"
	"courier/schemas"
)

// free returns the CPUs that are free, without those that save the SLO of a running job: it is about to
// get them.
func (s *Pool) free(r decide.Regressors, now time.Time) int {
	free := s.Capacity - s.held()
	if free <= 0 {
		return free
	}
	jobs, _ := s.plan(nil, r, now)
	for i := range jobs {
		if f := &jobs[i]; f.target > f.cpus && !f.isLikely(f.cpus) && f.isLikely(f.target) {
			free -= f.target - f.cpus
		}
	}
	return free
}

// Admit returns the advice for an elastic job that may start now; nil if it must wait. A job that
// meets its SLO may start if the deadline policy admits it. Any other job may start on CPUs that
// nobody holds, if that breaks no promise. Foreign load does not keep a job from an idle node.
func (s *Pool) Admit(q *decide.Question, r decide.Regressors, now time.Time) *schemas.Advice {
	if q == nil {
		return nil
	}
	if room := s.MakeRoom(q, r, now); room != nil {
		return room
	}
	free := s.free(r, now)
	counts := slices.DeleteFunc(slices.Clone(q.Request.CPUs), func(cpus int) bool { return cpus > free })
	if len(counts) == 0 && s.IsIdle {
		counts = schemas.CPUs{slices.Min(q.Request.CPUs)}
	}
	if len(counts) == 0 {
		return nil
	}
	advice := decide.Decide(q.WithLoans(nil, slices.Max(counts)), r, now)
	if len(brokenJobs(advice)) > 0 {
		return nil
	}
	advice.Admission = &schemas.Admission{Verdict: schemas.Admitted, Rule: schemas.AdmissionByCPUs}
	return advice
}

// MakeRoom returns the advice for a job that may start because elastic jobs lend it CPUs or, if it is
// elastic, because the CPUs are free. It returns nil if the deadline policy does not admit the job, or
// if its SLO or one of theirs would not be likely. A nil question gives nil.
func (s *Pool) MakeRoom(q *decide.Question, r decide.Regressors, now time.Time) *schemas.Advice {
	if q == nil || q.Request.SLO == 0 {
		return nil
	}
	granted, loans := s.grant(q, r, now)
	if granted == 0 || len(loans) == 0 && !q.Request.Elastic {
		return nil
	}

	advice := decide.Decide(q.WithLoans(loans, granted), r, now)
	if advice.Decision != schemas.MeetsSLO || len(brokenJobs(advice)) > 0 {
		return nil
	}
	advice.Admission = &schemas.Admission{
		Verdict: schemas.Admitted, Rule: schemas.AdmissionByCPUs, Loans: loans,
	}
	if len(loans) > 0 {
		advice.Message = loanMessage(loans) + ": " + advice.Message
	}
	return advice
}

// grant returns the CPUs of a new job, and the loans that make room for them. It returns 0 if the
// deadline policy does not start the job.
func (s *Pool) grant(q *decide.Question, r decide.Regressors, now time.Time) (cpus int, loans []schemas.Loan) {
	arrival := s.arrival(q, r, now)
	if len(arrival.Options[0].Curve) == 0 {
		return 0, nil
	}
	jobs, cpus := s.plan(&arrival, r, now)
	for i := range jobs {
		if f := &jobs[i]; f.target < f.cpus {
			loans = append(loans, schemas.Loan{
				JobID: f.Question.JobID, FromCPUs: uint32(f.cpus), ToCPUs: uint32(f.target),
			})
		}
	}
	return cpus, loans
}

// arrival describes a new job for the policy, if the elastic jobs held the fewest CPUs that they may. Its
// curve is empty if nothing is known about the job, or if its SLO has passed.
func (s *Pool) arrival(q *decide.Question, r decide.Regressors, now time.Time) policy.Job {
	job := policy.Job{
		ID:        q.JobID,
		Submitted: now.Add(-q.Elapsed),
		Deadline:  now.Add(time.Duration(q.Left() * float64(time.Second))),
		Options:   []policy.Option{{Work: 1}},
	}
	if q.Left() <= 0 {
		return job
	}
	var fewest []schemas.Loan
	for i := range s.Jobs {
		if e := &s.Jobs[i]; !s.IsFixed {
			fewest = append(fewest, schemas.Loan{
				JobID: e.Question.JobID, ToCPUs: uint32(e.Counts[0]),
			})
		}
	}
	best := decide.Decide(q.WithLoans(fewest, 0), r, now)
	job.Options[0].Curve = curveOf(best, int(best.Chosen.BatchSize), map[int]*schemas.Alternative{})
	return job
}
