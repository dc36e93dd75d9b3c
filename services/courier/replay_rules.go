package main

import (
	"context"
	"slices"
	"time"

	"courier/advisor"
	"courier/schemas"
	"courier/simulate"
)

// replayRules are the rules that can be asked about a past: all of simulate but
// the oracle, which no log can be.
var replayRules = []string{"courier", "paper", simulate.RuleRandom, simulate.RuleLargest}

// ruleRecorded is what the advisor of the log decided.
const ruleRecorded = "recorded"

// pastRule answers the submissions of a log. Before each it is told which
// regressors were in use.
type pastRule interface {
	simulate.Rule
	use(all regressorSet)
	heeds(s pastSetting) bool // whether it answers otherwise than without the setting
}

func newPastRule(ctx context.Context, name string) pastRule {
	switch name {
	case "courier":
		return &pastCourier{cluster: advisor.NewCluster()}
	case "paper":
		return &pastPaper{PaperRule: simulate.NewPaperRule(simulate.NewLearner(ctx, 1, 0))}
	case simulate.RuleRandom:
		return pastAny{simulate.NewRandom(1)}
	}
	return pastAny{simulate.NewLargest()}
}

// pastCourier is the advisor with other regressors.
type pastCourier struct {
	cluster    *advisor.Cluster
	regressors advisor.Regressors
}

func (c *pastCourier) use(all regressorSet) { c.regressors = all.advisor() }

func (c *pastCourier) heeds(pastSetting) bool { return true }

// Apply implements simulate.Rule.
func (c *pastCourier) Apply(e schemas.Event, sequence uint64, at time.Time) {
	c.cluster.Apply(e, sequence, at)
}

// Submit implements simulate.Rule.
func (c *pastCourier) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	return advisor.Decide(c.cluster.Ask(q, at), c.regressors, at), nil
}

// pastPaper is the paper's rule. Of a model that its regressors do not know it
// says nothing.
type pastPaper struct {
	*simulate.PaperRule
	regressors regressorSet
}

func (p *pastPaper) use(all regressorSet) { p.regressors = all }

func (p *pastPaper) heeds(s pastSetting) bool { return len(s.regressors) > 0 }

// Apply implements simulate.Rule.
func (p *pastPaper) Apply(e schemas.Event, sequence uint64, at time.Time) {
	p.View.Apply(e, sequence, at)
}

// Submit implements simulate.Rule.
func (p *pastPaper) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	q = allEpochs(q)
	level := schemas.ModelLevel(q.Model, q.Dataset)
	epochTime, accuracy := p.regressors[schemas.TargetEpochTime], p.regressors[schemas.TargetAccuracy]
	for _, v := range []*servedVersion{epochTime, accuracy} {
		if v == nil || !v.point.Knows(level) {
			on, err := p.Place(&q)
			if err != nil {
				return nil, err
			}
			cpus, batch := uint32(slices.Max(q.CPUs)), uint32(slices.Max(q.BatchSizes))
			return simulate.Answer(&q, at, schemas.Exploring, on, p.Load(on, cpus), batch, cpus), nil
		}
	}
	p.Use(epochTime.point, accuracy.point)
	return p.PaperRule.Decide(q, at)
}

// pastAny is a rule without regressors.
type pastAny struct{ simulate.Rule }

func (pastAny) use(regressorSet) {}

func (pastAny) heeds(pastSetting) bool { return false }

// Submit implements simulate.Rule.
func (p pastAny) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	return p.Rule.Submit(allEpochs(q), at)
}

// allEpochs is a request for a rule that cannot choose epochs: it runs them all.
func allEpochs(q schemas.JobRequest) schemas.JobRequest {
	if q.Epochs == 0 {
		q.Epochs = q.MaxEpochs
	}
	return q
}

// pastSetting is what a replay changes.
type pastSetting struct {
	name       string // for people; empty: as it was
	regressors regressorSet
	confidence float64 // 0: as each job asked
	promise    schemas.Promise
}

// answers lets a rule answer each submission of the log, from the events before
// it. Its own answers take the place of those recorded, so that a rule that
// corrects itself by what came of its advice does. Jobs run where, when and as
// they ran: nobody knows what they would have done otherwise.
func (l *replayLog) answers(ctx context.Context, rule pastRule, s pastSetting) (map[string]*schemas.Advice, error) {
	versions, all := l.versions(), map[string]*schemas.Advice{}
	for _, step := range l.steps() {
		e, submitted := step.Event.(*schemas.Submitted)
		switch {
		case step.ask && submitted && all[e.JobID] == nil:
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			rule.use(versions.of(e, s.regressors))
			a, err := rule.Submit(s.request(e), e.Advice.At)
			if err != nil {
				return nil, err
			}
			all[e.JobID] = a
		case !step.changes():
		case submitted && all[e.JobID] != nil:
			own := *e
			own.Advice, own.EncodedAdvice = *all[e.JobID], nil
			rule.Apply(&own, step.Sequence, step.StoredAt)
		default:
			rule.Apply(step.Event, step.Sequence, step.StoredAt)
		}
	}
	return all, nil
}

// request is what a job asked for, on the nodes where it ran.
func (s *pastSetting) request(e *schemas.Submitted) schemas.JobRequest {
	q := e.Request
	if len(q.Nodes) == 0 {
		q.Nodes = e.Advice.Nodes
	}
	if len(q.Nodes) == 0 {
		q.Nodes = []string{""} // no node was known: as if it had one for itself
	}
	if s.confidence > 0 {
		q.Confidence = s.confidence
	}
	if s.promise != "" {
		q.Promise = s.promise
	}
	return q
}
