package replay

import (
	"context"
	"slices"
	"time"

	"courier/advisor"
	"courier/schemas"
	"courier/simulate"
	"courier/trainer"
)

// rule answers the submissions of a log.
type rule interface {
	simulate.Rule
	use(all regressorSet)     // sets the regressors of the next answer
	dependsOn(v variant) bool // reports whether a variant can change the answers
}

func newRule(ctx context.Context, name string) rule {
	switch name {
	case simulate.RuleCourier:
		return &advisorRule{cluster: advisor.NewCluster()}
	case simulate.RulePaper:
		l := simulate.NewLearner(ctx, trainer.MethodFamilies, 1, 0)
		return &paperRule{PaperRule: simulate.NewPaperRule(l)}
	case simulate.RuleRandom:
		return simpleRule{simulate.NewRandom(1)}
	}
	return simpleRule{simulate.NewLargest()}
}

// advisorRule is the advisor.
type advisorRule struct {
	cluster    *advisor.Cluster
	regressors advisor.Regressors
}

func (c *advisorRule) use(all regressorSet)   { c.regressors = all.advisor() }
func (c *advisorRule) dependsOn(variant) bool { return true }

// Apply implements simulate.Rule.
func (c *advisorRule) Apply(e schemas.Event, sequence uint64, at time.Time) {
	c.cluster.Apply(e, sequence, at)
}

// Submit implements simulate.Rule.
func (c *advisorRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	return advisor.Decide(c.cluster.Ask(q, at), c.regressors, at), nil
}

// paperRule is the rule of the paper. It explores models that its regressors do not know.
type paperRule struct {
	*simulate.PaperRule
	regressors regressorSet
}

func (p *paperRule) use(all regressorSet)     { p.regressors = all }
func (p *paperRule) dependsOn(v variant) bool { return len(v.regressors) > 0 }

// Apply implements simulate.Rule.
func (p *paperRule) Apply(e schemas.Event, sequence uint64, at time.Time) {
	p.View.Apply(e, sequence, at)
}

// Submit implements simulate.Rule.
func (p *paperRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	q = withAllEpochs(q)
	level := schemas.ModelLevel(q.Model, q.Dataset)
	epochTime := p.regressors[schemas.TargetEpochTime]
	accuracy := p.regressors[schemas.TargetAccuracy]
	for _, v := range []*version{epochTime, accuracy} {
		if v != nil && v.point.Knows(level) {
			continue
		}
		on, err := p.Place(&q)
		if err != nil {
			return nil, err
		}
		cpus, batch := uint32(slices.Max(q.CPUs)), uint32(slices.Max(q.BatchSizes))
		return simulate.Answer(&q, at, schemas.Exploring, on, p.Load(on, cpus), batch, cpus), nil
	}
	p.Use(epochTime.point, accuracy.point)
	return p.Decide(q, at)
}

// simpleRule is a rule without regressors.
type simpleRule struct{ simulate.Rule }

func (simpleRule) use(regressorSet)       {}
func (simpleRule) dependsOn(variant) bool { return false }

// Submit implements simulate.Rule.
func (r simpleRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	return r.Rule.Submit(withAllEpochs(q), at)
}

// withAllEpochs returns the request for a rule that cannot choose the number of epochs.
func withAllEpochs(q schemas.JobRequest) schemas.JobRequest {
	if q.Epochs == 0 {
		q.Epochs = q.MaxEpochs
	}
	return q
}

// variant changes the circumstances in which a rule answers.
type variant struct {
	name       string // name in reports; empty means as recorded
	regressors regressorSet
	confidence float64 // 0 means that of each request
	promise    schemas.Promise
}

// request is the request of a job, on the nodes where it ran.
func (v *variant) request(e *schemas.Submitted) schemas.JobRequest {
	q := e.Request
	if len(q.Nodes) == 0 {
		q.Nodes = e.Advice.Nodes
	}
	if len(q.Nodes) == 0 {
		q.Nodes = []string{""} // no node was known: an unnamed node without load
	}
	if v.confidence > 0 {
		q.Confidence = v.confidence
	}
	if v.promise != "" {
		q.Promise = v.promise
	}
	return q
}

// answers lets a rule answer each submission of the log from the earlier events. Its own answers
// replace the recorded ones in what it sees later, because a rule may correct itself by the
// outcomes of its advice. Jobs run where, when and as they did: their outcome under another choice
// is unknown.
func (l *Log) answers(
	ctx context.Context, r rule, v variant,
) (map[string]*schemas.Advice, error) {
	versions, all := l.versions(), map[string]*schemas.Advice{}
	for _, step := range l.steps() {
		e, isSubmission := step.Event.(*schemas.Submitted)
		switch {
		case step.decide && isSubmission && all[e.JobID] == nil:
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			r.use(versions.regressorsOf(e, v.regressors))
			a, err := r.Submit(v.request(e), e.Advice.At)
			if err != nil {
				return nil, err
			}
			all[e.JobID] = a

		case !step.changesState():

		case isSubmission && all[e.JobID] != nil:
			own := *e
			own.Advice, own.EncodedAdvice = *all[e.JobID], nil
			r.Apply(&own, step.Sequence, step.StoredAt)

		default:
			r.Apply(step.Event, step.Sequence, step.StoredAt)
		}
	}
	return all, nil
}
