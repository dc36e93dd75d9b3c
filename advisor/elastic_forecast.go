package advisor

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/advisor/decide"
	"courier/policy"
	"courier/schemas"
)

// shareForecast is an elastic job with its predictions.
type shareForecast struct {
	*ElasticShare
	alternatives map[int]*schemas.Alternative // by CPUs; only those that may be promised from
	actual       int                          // current CPUs
	cpus         int                          // without those by which it has grown by its own epochs
	target       int
	reason       policy.Reason // of the target; empty if the policy gave none
	growth       float64       // of its loss, by policy/quality; 0: none or unknown
	speedRatio   float64       // of the target, by its own epochs; 0: unknown
}

// forecast predicts a job with each number of CPUs. ok is false if its current rate is unknown.
func (e *ElasticShare) forecast(r decide.Regressors, now time.Time) (shareForecast, policy.ElasticJob, bool) {
	f := shareForecast{
		ElasticShare: e,
		alternatives: map[int]*schemas.Alternative{},
		actual:       int(e.Question.Self.Setting.CPUs),
		cpus:         e.base,
		target:       e.base,
	}
	job := policy.ElasticJob{
		ID: e.Question.JobID, Submitted: e.Submitted, Deadline: e.Deadline, Units: e.base,
	}
	q := e.Question.WithCPUs(e.Counts)
	advice := decide.Decide(q, r, now)
	job.Options = []policy.Option{{Work: 1, Curve: curveOf(advice, q.Request.BatchSizes[0], f.alternatives)}}
	_, ok := f.alternatives[e.base]
	return f, job, ok
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
	return alt != nil && decide.ProbabilityOf(alt) >= f.Question.Request.Confidence
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

// limitRaises takes back raises until the targets fit the capacity: first those of jobs that are
// likely to meet their SLO without them. It reports whether they fit. Running jobs may hold more than
// the capacity, but isArrival says that the rest of it is for a new job.
func limitRaises(jobs []shareForecast, capacity int, isArrival bool) bool {
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
	return held <= capacity || !isArrival && !slices.ContainsFunc(jobs, func(f shareForecast) bool {
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
	isRaise := func(j shareForecast) bool { return j.target > j.actual }
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

// slack returns the time to the deadline minus the upper bound of the remaining time with the current
// CPUs; nil if one of them is unknown.
func (f *shareForecast) slack() *float64 {
	alt := f.alternatives[f.cpus]
	if f.Deadline.IsZero() || alt == nil || alt.UpperBoundSeconds == nil {
		return nil
	}
	seconds := f.Question.Left() - *alt.UpperBoundSeconds
	return &seconds
}

// rejected returns the numbers of CPUs of the request that are neither the current one nor the target,
// and why the plan turned each of them down. free is the number of free CPUs of the node.
func (f *shareForecast) rejected(free int) (cpus []uint32, reasons []string) {
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
