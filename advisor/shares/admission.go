package shares

import (
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// ApplyPolicy sets the verdict of a repeated advice under the policy of the recorded advice, with
// the queue of the cluster.
func ApplyPolicy(c *cluster.Cluster, again, recorded *schemas.Advice) {
	switch v := recorded.Admission; {
	case v == nil:
	case decide.IsAdmittedByCPUs(v):
		again.Admission = v
		if len(v.Loans) > 0 {
			again.Message = loanMessage(v.Loans) + ": " + again.Message
		}
	case v.Rule == schemas.AdmissionByCPUs:
		HoldForCPUs(again, v.Policy, c.QueuedFor(again.Nodes, again.At))
	case recorded.EventID == schemas.AdmittedID(recorded.JobID):
		again.Admission = AdmittedByPromises(v.Policy)
	default:
		SetVerdict(again, v.Policy, c.QueuedFor(again.Nodes, again.At))
	}
}

// SetVerdict sets the verdict of a policy on a job that would start now, given the number of queued jobs
// that may run on its nodes.
func SetVerdict(advice *schemas.Advice, policy string, waits int) {
	v := AdmittedByPromises(policy)
	v.Breaks = brokenJobs(advice)
	advice.Admission = v
	switch {
	case policy == schemas.AdmissionProtect && len(v.Breaks) > 0:
		hold(advice, waits, "it would break the promise to "+schemas.FormatList(v.Breaks))
	case policy == schemas.AdmissionQueue && (waits > 0 || !FitsNow(advice)):
		if start := startDelay(advice); waits == 0 && start > 0 {
			v.StartSeconds = &start
		}
		why := "others wait before it"
		switch {
		case len(v.Breaks) > 0:
			why = "a start now would break the promise to " + schemas.FormatList(v.Breaks)
		case waits == 0:
			why = "started later it keeps its own SLO"
		}
		hold(advice, waits, why)
	}
}

// HoldForCPUs queues or refuses a job for which no CPUs are free.
func HoldForCPUs(advice *schemas.Advice, policy string, waits int) {
	advice.Admission = &schemas.Admission{Policy: policy, Rule: schemas.AdmissionByCPUs}
	hold(advice, waits, "too few CPUs are free")
}

// hold refuses a job if its policy is to protect promises. Otherwise it queues the job.
func hold(advice *schemas.Advice, waits int, why string) {
	v, verb := advice.Admission, "queued"
	if v.Policy == schemas.AdmissionProtect {
		verb, v.Verdict, advice.Action = "refused", schemas.Refused, schemas.ActionRefuse
	} else {
		v.Verdict, v.Position, advice.Action = schemas.Queued, waits+1, schemas.ActionWait
	}
	advice.Message = verb + ", as " + why + ": " + advice.Message
}

// AdmittedByPromises returns the verdict on a queued job that breaks no promise.
func AdmittedByPromises(policy string) *schemas.Admission {
	return &schemas.Admission{
		Policy: policy, Verdict: schemas.Admitted, Rule: schemas.AdmissionByPromises,
	}
}

// brokenJobs returns the jobs whose promise the advice would break.
func brokenJobs(a *schemas.Advice) []string {
	var all []string
	for i := range a.Effects {
		if a.Effects[i].BreaksSLO {
			all = append(all, a.Effects[i].JobID)
		}
	}
	return all
}

// startDelay returns the seconds after which a job would keep its own SLO and break no promise. If
// it cannot keep its own SLO, it is the time after which it breaks no promise. 0 means now or
// unknown.
func startDelay(a *schemas.Advice) float64 {
	for _, kind := range [...]string{schemas.ChoiceStart, schemas.ChoiceDeadline} {
		for i := range a.Menu {
			if c := &a.Menu[i]; c.Kind == kind {
				return c.StartSeconds
			}
		}
	}
	return 0
}

// FitsNow reports whether the policy queue permits a job to start now: it breaks no promise, and
// would not gain by waiting.
func FitsNow(a *schemas.Advice) bool {
	gains := a.Decision == schemas.BestEffort &&
		slices.ContainsFunc(a.Menu, func(c schemas.Choice) bool {
			return c.Kind == schemas.ChoiceStart
		})
	return len(brokenJobs(a)) == 0 && !gains
}

// likelyMisses reports whether the job will probably miss its SLO, and a later start does not help.
func likelyMisses(a *schemas.Advice) bool {
	if a.SLOSeconds == 0 || a.Chosen.Probability == nil {
		return false
	}
	return *a.Chosen.Probability < decide.LikelyMissed &&
		!slices.ContainsFunc(a.Menu, func(c schemas.Choice) bool {
			return c.Kind == schemas.ChoiceStart
		})
}

// NextToStart returns the advice for the queued job that may start now, or nil. It is the first one that
// fits, if no job before it may run on its nodes. Otherwise it ends before the first of these can start
// (EASY backfilling, Lifka 1995). Jobs that will probably miss their SLO come last. admit returns the
// advice for a job that may start now, nil for any other; isFirst says that no job before it may run on
// its nodes, which mayUse reports.
func NextToStart(
	queue []*schemas.Advice, mayUse func(before *schemas.Advice, nodes []string) bool,
	admit func(queued *schemas.Advice, isFirst bool) *schemas.Advice,
) *schemas.Advice {
	ordered := slices.DeleteFunc(slices.Clone(queue), likelyMisses)
	for _, a := range queue {
		if likelyMisses(a) {
			ordered = append(ordered, a)
		}
	}
	for i, queued := range ordered {
		before := func(nodes []string) int {
			return slices.IndexFunc(ordered[:i], func(b *schemas.Advice) bool { return mayUse(b, nodes) })
		}
		advice := admit(queued, before(queued.Nodes) < 0)
		if advice == nil {
			continue
		}
		first := before(advice.Nodes)
		if first < 0 {
			return advice
		}
		room := startDelay(ordered[first])
		if end := advice.Chosen.UpperBoundSeconds; end != nil && *end <= room {
			return advice
		}
	}
	return nil
}

// NeedsBusyCPUs reports whether a node that is not idle has fewer free CPUs than a job needs there. It
// is false if the cores of the node are unknown.
func NeedsBusyCPUs(c *cluster.Cluster, node string, needed float64, now time.Time) bool {
	n := c.Node(node)
	if n == nil {
		return false
	}
	held := c.HeldCPUs(node, now)
	for _, j := range n.Running {
		held += j.ProcessesPerNode()
	}
	cores := float64(c.Cores(node))
	return cores > 0 && held > 0 && held+needed > cores
}

// loanMessage returns which jobs lend CPUs.
func loanMessage(loans []schemas.Loan) string {
	names, cpus := make([]string, len(loans)), uint32(0)
	for i, l := range loans {
		names[i], cpus = l.JobID, cpus+l.FromCPUs-l.ToCPUs
	}
	return "admitted with " + schemas.FormatCPUs(cpus) + " lent by " + schemas.FormatList(names)
}
