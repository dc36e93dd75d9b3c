package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
	"courier/trainer"
)

// Rule answers job requests. It sees the event log of its world. One goroutine calls it, in the order
// of simulated time.
type Rule interface {
	// Apply receives the next event. The rule must not change it, because other rules see it, too.
	Apply(e schemas.Event, sequence uint64, at time.Time)
	// Submit answers a request, whose defaults are set; on is the node for rules that choose none.
	// Only the decision, the node and the chosen alternative of the advice matter: meets_slo is a
	// promise, best_effort a refusal, and exploring a run without a promise.
	Submit(q schemas.JobRequest, on NodeLoad, at time.Time) (*schemas.Advice, error)
}

// NodeLoad is the node with the fewest processes per core among the nodes with enough cores for the
// smallest requested number of CPUs, the first by name, as the advisor places jobs.
type NodeLoad struct {
	WorldNode
	Jobs      int
	Processes int // sum of the CPUs of the jobs
}

// Watcher is a rule that warns of promises at risk.
type Watcher interface {
	// Watch returns the warnings and all-clears after the last applied event. It is called after
	// each event of a job.
	Watch(at time.Time) []*schemas.Risk
}

// omniscient is a rule that sees the world: only rules of this package can.
type omniscient interface{ know(p *play) }

// Names of the rules.
const (
	RuleCourier  = "courier"
	RulePaper    = "paper"
	RuleRandom   = "random"
	RuleLargest  = "largest"
	RuleOracle   = "oracle"
	RuleInformed = "informed" // knows everything except future random events
)

// DefaultRules returns the names of the rules that are compared by default, in the order in which
// they are shown.
func DefaultRules() []string {
	return []string{RuleCourier, RulePaper, RuleRandom, RuleLargest, RuleOracle}
}

// Rules returns the names of all rules.
func Rules() []string { return append(DefaultRules(), RuleInformed) }

// NewRule returns the rule of a name for one play; nil if there is no such rule. refit is the number
// of finished jobs between two fits, 0 for a single fit at the first submission.
func NewRule(ctx context.Context, name string, seed uint64, refit int) Rule {
	l := learner{ctx: ctx, seed: seed, refit: refit, past: trainer.NewPast()}
	switch name {
	case RuleCourier:
		return &courierRule{learner: l, cluster: cluster.New()}
	case RulePaper:
		return &paperRule{learner: l}
	case RuleRandom:
		return &randomRule{seed: seed}
	case RuleLargest:
		return largestRule{}
	case RuleInformed:
		return &informed{seed: seed}
	case RuleOracle:
		return &oracle{}
	}
	return nil
}

// stateless is a rule that needs no events.
type stateless struct{}

// Apply implements Rule.
func (stateless) Apply(schemas.Event, uint64, time.Time) {}

// randomRule chooses a random candidate and promises everything.
type randomRule struct {
	stateless
	seed uint64
}

// Submit implements Rule.
func (r *randomRule) Submit(q schemas.JobRequest, on NodeLoad, at time.Time) (*schemas.Advice, error) {
	all := candidates(&q)
	choice := all[randomFor(r.seed, streamRandomRule, q.JobID).IntN(len(all))]
	return answer(&q, at, schemas.MeetsSLO, on.Name, choice), nil
}

// largestRule chooses the largest batch size and number of CPUs, and promises everything.
type largestRule struct{ stateless }

// Submit implements Rule.
func (largestRule) Submit(q schemas.JobRequest, on NodeLoad, at time.Time) (*schemas.Advice, error) {
	choice := jobCandidate{uint32(slices.Max(q.BatchSizes)), uint32(slices.Max(q.CPUs))}
	return answer(&q, at, schemas.MeetsSLO, on.Name, choice), nil
}

func answer(
	q *schemas.JobRequest, at time.Time, decision schemas.Decision, node string, choice jobCandidate,
) *schemas.Advice {
	a := &schemas.Advice{
		JobStamp:   schemas.JobStamp{Stamp: schemas.Stamp{At: at}, JobID: q.JobID},
		Decision:   decision,
		Action:     schemas.ActionStart,
		Model:      q.Model,
		Dataset:    q.Dataset,
		Nodes:      []string{node},
		SLOSeconds: q.SLO.Seconds(),
		Confidence: q.Confidence,
		Regressors: map[string]string{},
		Message: fmt.Sprintf("batch size %d on %s", choice.batch,
			schemas.FormatCPUs(choice.cpus)),
	}
	for _, c := range candidates(q) {
		x := schemas.Alternative{BatchSize: c.batch, CPUs: c.cpus, Epochs: uint32(q.Epochs)}
		a.Alternatives = append(a.Alternatives, x)
		if c == choice {
			a.Chosen = &x
		}
	}
	return a
}
