package shares

import (
	"math"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/policy"
	"courier/schemas"
)

// Pools are the nodes of a new job, in its order. The job holds as many CPUs on each of them.
type Pools []*Pool

// PoolsOf returns the nodes of a job; nil if there are none, or the cores of one are unknown.
// With isFixed, the running jobs keep their CPUs.
func PoolsOf(c *cluster.Cluster, names []string, isFixed bool, now time.Time) Pools {
	var nodes Pools
	for _, name := range names {
		s := PoolOf(c, name, now)
		if s == nil {
			return nil
		}
		s.IsFixed = isFixed
		nodes = append(nodes, s)
	}
	return nodes
}

// onEach returns the CPUs of a job on each of its nodes.
func (n Pools) onEach(cpus int) int {
	return wholeCPUs(float64(cpus) / float64(max(1, len(n))))
}

// free returns the CPUs that are free on each of the nodes, without those that save the SLO of a
// running job: it is about to get them.
func (n Pools) free(r decide.Regressors, now time.Time) int {
	free := math.MaxInt
	for _, s := range n {
		own := s.Capacity - s.held()
		if own > 0 {
			jobs, _ := s.plan(nil, r, now)
			for i := range jobs {
				if f := &jobs[i]; f.target > f.cpus && !f.isLikely(f.cpus) && f.isLikely(f.target) {
					own -= f.target - f.cpus
				}
			}
		}
		free = min(free, own)
	}
	return free
}

// Admit returns the advice for an elastic job that may start now; nil if it must wait. A job that
// meets its SLO may start if the deadline policy admits it. Any other job may start on CPUs that
// nobody holds, if that breaks no promise. Foreign load does not keep a job from idle nodes.
func (n Pools) Admit(q *decide.Question, r decide.Regressors, now time.Time) *schemas.Advice {
	if q == nil {
		return nil
	}
	if room := n.MakeRoom(q, r, now); room != nil {
		return room
	}
	free := n.free(r, now)
	counts := slices.DeleteFunc(slices.Clone(q.Request.CPUs), func(cpus int) bool {
		return n.onEach(cpus) > free
	})
	isBusy := func(s *Pool) bool { return !s.IsIdle }
	if len(counts) == 0 && !slices.ContainsFunc(n, isBusy) {
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
func (n Pools) MakeRoom(q *decide.Question, r decide.Regressors, now time.Time) *schemas.Advice {
	if q == nil || q.Request.SLO == 0 {
		return nil
	}
	granted, loans := n.grant(q, r, now)
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
// deadline policy does not start the job on each of the nodes.
func (n Pools) grant(
	q *decide.Question, r decide.Regressors, now time.Time,
) (cpus int, loans []schemas.Loan) {
	arrival, totals := n.arrival(q, r, now)
	option := &arrival.Options[0]
	for len(option.Curve) > 0 {
		least, most, loans := n.lend(&arrival, r, now)
		if least == most || least == 0 {
			return totals[least], loans
		}
		// The node that gives least limits the job, so the others need not give more.
		option.Curve = slices.DeleteFunc(option.Curve, func(p policy.CurvePoint) bool {
			return p.Units > least
		})
	}
	return 0, nil
}

// lend plans a new job on each node. It returns the fewest and the most CPUs that a node gives it, and
// the loans of all of them.
func (n Pools) lend(
	arrival *policy.Job, r decide.Regressors, now time.Time,
) (least, most int, loans []schemas.Loan) {
	least = math.MaxInt
	for _, s := range n {
		jobs, granted := s.plan(arrival, r, now)
		least, most = min(least, granted), max(most, granted)
		for i := range jobs {
			if f := &jobs[i]; f.target < f.actual {
				loans = append(loans, schemas.Loan{
					JobID: f.Question.JobID, FromCPUs: uint32(f.actual), ToCPUs: uint32(f.target),
				})
			}
		}
	}
	return least, most, loans
}

// CanWait reports whether a new job meets its SLO although it borrows no CPUs: if it starts when the
// first elastic job of each node has ended, and jobs that are more urgent have run for a time. Two
// jobs that run one after the other end as early as side by side, but the CPUs are free for an urgent
// job sooner.
func (n Pools) CanWait(
	q *decide.Question, r decide.Regressors, before time.Duration, now time.Time,
) bool {
	if q == nil || q.Request.SLO == 0 {
		return false
	}
	var first []string
	start, cpus := 0.0, math.MaxInt
	for _, s := range n {
		job, end, others := s.firstEnd(r, now)
		first, start, cpus = append(first, job), max(start, end), min(cpus, s.Capacity-others)
	}
	later := *q
	later.Others = slices.DeleteFunc(slices.Clone(q.Others), func(m decide.Member) bool {
		return slices.Contains(first, m.JobID)
	})
	arrival, _ := n.arrival(&later, r, now)
	for i := cpus; i > 0; i-- {
		if rate := arrival.Options[0].Curve.Rate(i); rate > 0 {
			return start+before.Seconds()+1/rate <= q.Left()
		}
	}
	return false
}

// firstEnd returns the elastic job that ends first, and when it does, in seconds: 0 without elastic
// jobs, and +Inf if no end is known. others are the CPUs of the jobs whose end is unknown.
func (s *Pool) firstEnd(r decide.Regressors, now time.Time) (first string, end float64, others int) {
	if len(s.Jobs) == 0 {
		return "", 0, 0
	}
	end = math.Inf(1)
	for i := range s.Jobs {
		f, job, ok := s.Jobs[i].predict(r, true, now)
		if !ok {
			others += f.cpus
			continue
		}
		if seconds := 1 / job.Options[0].Curve.Rate(f.cpus); seconds < end {
			first, end = job.ID, seconds
		}
	}
	return first, end, others
}

// arrival describes a new job for the policy, if the elastic jobs held the fewest CPUs that they may.
// Its curve has the CPUs on each node; totals has the CPUs on all nodes for each of them. The curve
// is empty if nothing is known about the job, or if its SLO has passed.
func (n Pools) arrival(
	q *decide.Question, r decide.Regressors, now time.Time,
) (job policy.Job, totals map[int]int) {
	var fewest []schemas.Loan
	for _, s := range n {
		for i := range s.Jobs {
			if e := &s.Jobs[i]; !s.IsFixed {
				fewest = append(fewest, schemas.Loan{
					JobID: e.Question.JobID, ToCPUs: uint32(e.Counts[0]),
				})
			}
		}
	}
	job = policy.Job{
		ID:        q.JobID,
		Submitted: now.Add(-q.Elapsed),
		Deadline:  now.Add(time.Duration(q.Left() * float64(time.Second))),
		Options:   []policy.Option{{Work: 1}},
	}
	totals = map[int]int{}
	if q.Left() <= 0 {
		return job, totals
	}
	best := decide.Decide(q.WithLoans(fewest, 0), r, now)
	curve := curveOf(best, int(best.Chosen.BatchSize), map[int]*schemas.Alternative{})
	for _, p := range curve {
		total := p.Units
		p.Units = n.onEach(total)
		points := &job.Options[0].Curve
		if last := len(*points) - 1; last >= 0 && (*points)[last].Units == p.Units {
			if (*points)[last].Rate >= p.Rate {
				continue
			}
			*points = (*points)[:last]
		}
		*points = append(*points, p)
		totals[p.Units] = total
	}
	return job, totals
}
