package advisor

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/policy"
	"courier/policy/deadline"
	"courier/policy/jct"
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
	HeadroomRatio:  1e-9,
	CostLimit:      math.MaxFloat64,
})

// NodeShares is the input of the plan for the CPUs of a node: its elastic jobs, and the CPUs that all
// other work leaves to them.
type NodeShares struct {
	Node      string
	Cores     int
	Capacity  int            // CPUs for the elastic jobs
	Foreign   int            // CPUs that work outside Courier takes from Capacity
	IsIdle    bool           // no job runs or is about to start
	Jobs      []ElasticShare // by ID
	Objective string         // of Plan; empty: ObjectiveSLO
}

// ElasticShare is a running elastic job.
type ElasticShare struct {
	Question  *Question // its re-prediction with its current CPUs
	Counts    []int     // numbers of CPUs that it may hold, ascending
	Barred    []int     // other numbers, whose moves its runner undid or refused, ascending
	Initial   uint32    // CPUs at its start
	Deadline  time.Time // zero: none
	Submitted time.Time
}

// isElasticNow reports whether the CPUs of the running job can change.
func (j *Job) isElasticNow() bool {
	return j.State == schemas.StateRunning && j.isElastic && len(j.Setting.Nodes) == 1 &&
		j.Submitted != nil && len(j.Submitted.Request.CPUs) > 1
}

// elasticShares returns the shares of a node with elastic jobs; nil if it has none.
func (c *Cluster) elasticShares(node string, now time.Time) *NodeShares {
	n := c.nodes[node]
	if n == nil || !slices.ContainsFunc(n.running, (*Job).isElasticNow) {
		return nil
	}
	return c.sharesOf(node, now)
}

// sharesOf returns the elastic jobs of a node with the capacity that they share; nil if the cores of
// the node are unknown.
func (c *Cluster) sharesOf(node string, now time.Time) *NodeShares {
	n := c.nodes[node]
	if n == nil {
		return nil
	}
	cores := int(n.Cores)
	if cores == 0 {
		cores = int(c.fleet[node].Cores)
	}
	if cores == 0 {
		return nil
	}
	arriving := int(math.Ceil(c.arrivals.cpus(node, now)))
	s := &NodeShares{
		Node: node, Cores: cores, Capacity: cores, IsIdle: len(n.running) == 0 && arriving == 0,
	}
	s.Foreign = foreignCPUs(n.foreign.CPU.at(now).Or(0), cores)
	s.Capacity -= s.Foreign
	least := 0
	for _, j := range n.running {
		if !j.isElasticNow() {
			s.Capacity -= int(math.Ceil(j.processesPerNode()))
			continue
		}
		counts := j.allowedCPUs(now)
		if len(counts) == 0 { // all are barred, and the current one is not among them
			counts = []int{int(j.Setting.CPUs)}
		}
		least += counts[0]
		barred := slices.DeleteFunc(
			slices.Sorted(slices.Values(j.Submitted.Request.CPUs)),
			func(n int) bool { return slices.Contains(counts, n) },
		)
		s.Jobs = append(s.Jobs, ElasticShare{
			Question:  c.AskRunning(j, now),
			Counts:    counts,
			Barred:    barred,
			Initial:   j.initialCPUs,
			Deadline:  j.deadline(),
			Submitted: j.Submitted.At,
		})
	}
	s.Capacity -= arriving
	s.Capacity = max(s.Capacity, least) // a running job cannot be stopped
	return s
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
	Question *Question
	Move     schemas.PlannedMove
}

// shareForecast is an elastic job with its predictions.
type shareForecast struct {
	*ElasticShare
	alternatives map[int]*schemas.Alternative // by CPUs; only those that may be promised from
	cpus         int                          // current
	target       int
	reason       policy.Reason // of the target; empty if the policy gave none
}

// Plan returns the changes of CPUs, in order of job IDs. It asks the objective's policy, and then keeps
// the rules above every policy: no job is stopped, no job that lends CPUs is predicted to miss its
// SLO because of it, and no change is too small to matter.
func (s *NodeShares) Plan(r Regressors, now time.Time) []PlannedShare {
	jobs, _ := s.plan(nil, r, now)
	var planned []PlannedShare
	for i := range jobs {
		j := &jobs[i]
		if j.target == j.cpus || !j.isWorthwhile(s.Cores) {
			continue
		}
		m := schemas.PlannedMove{
			Purpose:      s.purpose(jobs, j),
			ForJob:       borrower(jobs, j),
			FromCPUs:     uint32(j.cpus),
			ToCPUs:       uint32(j.target),
			Rule:         string(j.reason),
			SlackSeconds: j.slack(),
			FreeCPUs:     uint32(max(0, s.Capacity-s.held())),
		}
		m.RejectedCPUs, m.RejectedReasons = j.rejected(int(m.FreeCPUs))
		planned = append(planned, PlannedShare{j.Question, m})
	}
	return planned
}

// plan returns the target of each job that can be planned, and the CPUs of an arriving job; 0 if
// there is none or if it does not fit.
func (s *NodeShares) plan(
	arrival *policy.ElasticJob, r Regressors, now time.Time,
) (jobs []shareForecast, granted int) {
	view := policy.ClusterView{Nodes: []policy.NodeView{{Name: s.Node, Units: s.Capacity}}}
	isFull := s.held() > s.Capacity
	for i := range s.Jobs {
		f, job, ok := s.Jobs[i].forecast(r, now)
		// More processes than CPUs may never have been measured. Their jobs are planned by what is
		// known about fewer CPUs.
		if !ok && (!isFull || len(f.alternatives) == 0) { // it keeps what it has
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
		jobs[i].protect()
	}
	if !fit(jobs, view.Nodes[0].Units-granted) {
		for i := range jobs {
			jobs[i].target = jobs[i].cpus
		}
		granted = 0
	}
	return jobs, granted
}

// moves asks the policy of the objective. An arriving job is planned by its SLO.
func (s *NodeShares) moves(
	view *policy.ClusterView, jobs []shareForecast, now time.Time,
) []policy.Move {
	if s.Objective != ObjectiveJCT || len(view.Queue) > 0 {
		return sharePolicy.Plan(view, now).Moves
	}
	// Each job keeps what its SLO needs, and the policy divides the other CPUs.
	least := floors(jobs, view.Nodes[0].Units)
	beyond := *view
	beyond.Nodes = slices.Clone(view.Nodes)
	beyond.Jobs = slices.Clone(view.Jobs)
	for i := range beyond.Jobs {
		j := &beyond.Jobs[i]
		j.Units = max(0, j.Units-least[i])
		j.Options = []policy.Option{{Work: j.Options[0].Work}}
		for _, p := range view.Jobs[i].Options[0].Curve {
			if p.Units -= least[i]; p.Units > 0 {
				j.Options[0].Curve = append(j.Options[0].Curve, p)
			}
		}
		beyond.Nodes[0].Units -= least[i]
	}
	granted := map[string]policy.Move{}
	for _, m := range jct.New().Plan(&beyond, now).Moves {
		granted[m.Job] = m
	}

	var moves []policy.Move
	for i := range view.Jobs {
		id, more := view.Jobs[i].ID, beyond.Jobs[i].Units
		m, isGranted := granted[id]
		if isGranted {
			more = m.Units
		} else {
			m = policy.Move{Kind: policy.Resize, Job: id, Reason: policy.ReasonShare}
		}
		if m.Units = least[i] + more; m.Units != view.Jobs[i].Units {
			moves = append(moves, m)
		}
	}
	return moves
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

// held returns the CPUs that the elastic jobs hold.
func (s *NodeShares) held() int {
	held := 0
	for i := range s.Jobs {
		held += int(s.Jobs[i].Question.Self.Setting.CPUs)
	}
	return held
}

// forecast predicts a job with each number of CPUs. ok is false if its current rate is unknown.
func (e *ElasticShare) forecast(r Regressors, now time.Time) (shareForecast, policy.ElasticJob, bool) {
	current := int(e.Question.Self.Setting.CPUs)
	f := shareForecast{
		ElasticShare: e, alternatives: map[int]*schemas.Alternative{}, cpus: current, target: current,
	}
	job := policy.ElasticJob{
		ID: e.Question.JobID, Submitted: e.Submitted, Deadline: e.Deadline, Units: current,
	}
	q := e.Question.withCPUs(e.Counts)
	advice := Decide(q, r, now)
	job.Options = []policy.Option{{Work: 1, Curve: curveOf(advice, q.Request.BatchSizes[0], f.alternatives)}}
	_, ok := f.alternatives[current]
	return f, job, ok
}

// withCPUs returns the question of a running job with other numbers of CPUs and its own batch size.
func (q *Question) withCPUs(counts []int) *Question {
	other := *q
	other.Request.CPUs = counts
	if q.Self != nil {
		other.Request.BatchSizes = []int{int(q.Self.Setting.BatchSize)}
	}
	return &other
}

// curveOf returns the rates of the alternatives with a batch size, in jobs per second. The rate is
// that of the upper bound, so that a plan keeps the SLO with the requested confidence. A number of
// CPUs that never ran has no rate.
func curveOf(a *schemas.Advice, batch int, known map[int]*schemas.Alternative) policy.Curve {
	var curve policy.Curve
	for i := range a.Alternatives {
		alt := &a.Alternatives[i]
		seconds := alt.PredictedSeconds
		if a.SLOSeconds > 0 {
			seconds = alt.UpperBoundSeconds
		}
		if int(alt.BatchSize) != batch || alt.Extrapolated || seconds == nil || !(*seconds > 0) {
			continue
		}
		known[int(alt.CPUs)] = alt
		curve = append(curve, policy.CurvePoint{Units: int(alt.CPUs), Rate: 1 / *seconds})
	}
	slices.SortFunc(curve, func(a, b policy.CurvePoint) int { return cmp.Compare(a.Units, b.Units) })
	return curve
}

func (f *shareForecast) leastCPUs() int {
	for _, n := range f.Counts {
		if f.alternatives[n] != nil {
			return n
		}
	}
	return f.cpus
}

// isLikely reports whether the job meets its SLO with a number of CPUs, with at least the probability
// that it was promised. A job without an SLO always does.
func (f *shareForecast) isLikely(cpus int) bool {
	if f.Deadline.IsZero() {
		return true
	}
	alt := f.alternatives[cpus]
	return alt != nil && probability(alt) >= f.Question.minProbability()
}

// protect keeps the job from lending so many CPUs that its SLO is no longer likely, and from lending
// any if only more CPUs would save its SLO. A job that is lost may lend all but the fewest.
func (f *shareForecast) protect() {
	if f.target >= f.cpus {
		return
	}
	for _, n := range f.Counts {
		if n >= f.target && f.isLikely(n) {
			f.target = min(n, f.cpus)
			return
		}
	}
}

// fit takes back raises until the targets fit the capacity: first those of jobs that are likely to
// meet their SLO without them. It reports whether they fit.
func fit(jobs []shareForecast, capacity int) bool {
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
	return held <= capacity || !slices.ContainsFunc(jobs, func(f shareForecast) bool {
		return f.target > f.cpus
	})
}

// isWorthwhile reports whether the change is large enough.
func (f *shareForecast) isWorthwhile(cores int) bool {
	change := math.Abs(float64(f.target - f.cpus))
	return change >= minShareOfSelf*float64(f.cpus) || change >= minShareOfNode*float64(cores)
}

// purpose returns why the CPUs of a job change. A job lends CPUs to other jobs. If all jobs would fit
// without the foreign load of the node, and none gets more, it makes room for that load.
func (s *NodeShares) purpose(jobs []shareForecast, f *shareForecast) string {
	isRaise := func(j shareForecast) bool { return j.target > j.cpus }
	purpose, held := f.purpose(), s.held()
	if purpose == schemas.MoveLent && held > s.Capacity && held <= s.Capacity+s.Foreign &&
		!slices.ContainsFunc(jobs, isRaise) {
		return schemas.MoveForeignLoad
	}
	return purpose
}

// purpose returns why the CPUs of the job change, regardless of the foreign load.
func (f *shareForecast) purpose() string {
	initial := int(f.Initial)
	switch {
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
func borrower(jobs []shareForecast, lender *shareForecast) string {
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
	a.Message = moveMessage(&m) + ": " + a.Message
	return a
}

// moveMessage returns why the CPUs of a job should change.
func moveMessage(m *schemas.PlannedMove) string {
	text := schemas.FormatCPUs(m.ToCPUs) + " instead of " + schemas.FormatCPUs(m.FromCPUs)
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
