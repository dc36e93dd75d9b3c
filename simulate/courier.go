package simulate

import (
	"context"
	"time"

	"courier/advisor"
	"courier/schemas"
	"courier/trainer"
)

// courierRule is the advisor without a network.
type courierRule struct {
	*Learner
	promise    schemas.Promise
	cluster    *advisor.Cluster
	regressors advisor.Regressors
	last       HistoryRecord
	changed    *advisor.Job // job that the last event changed
}

// NewCourierRule returns the advisor as a rule, with the regressors of a learner. Every request
// asks for the given promise.
func NewCourierRule(l *Learner, promise schemas.Promise) Rule {
	return &courierRule{Learner: l, promise: promise, cluster: advisor.NewCluster()}
}

// Apply implements Rule.
func (c *courierRule) Apply(e schemas.Event, sequence uint64, at time.Time) {
	c.add(e, sequence)
	c.last = HistoryRecord{Event: e, Sequence: sequence, At: at}
	c.changed = c.cluster.Apply(e, sequence, at)
}

// Watch implements Watcher.
func (c *courierRule) Watch(at time.Time) []*schemas.Risk {
	if c.regressors.EpochTime == nil {
		return nil // There are no promises yet.
	}
	return c.cluster.Watch(c.last.Event, c.changed, c.last.Sequence, c.regressors, at)
}

// Submit implements Rule.
func (c *courierRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	fitted, err := c.learn()
	if err != nil {
		return nil, err
	}
	if fitted || c.regressors.EpochTime == nil {
		if c.regressors, err = c.champions(); err != nil {
			return nil, err
		}
	}
	q.Promise = c.promise
	return advisor.Decide(c.cluster.Ask(q, at), c.regressors, at), nil
}

// champions returns the regressors of the last fit as the advisor loads them.
func (c *courierRule) champions() (r advisor.Regressors, err error) {
	r.EpochTime, err = advisor.NewRegressor(c.epochTime.predictor, c.epochTime.digest)
	if err != nil {
		return r, err
	}
	r.Startup, err = advisor.NewRegressor(c.startup.predictor, c.startup.digest)
	if err != nil {
		return r, err
	}
	r.Accuracy, err = advisor.NewRegressor(c.accuracy.predictor, c.accuracy.digest)
	return r, err
}

// Names of the rules with regressors. RuleMean is the advisor with promises whose confidence is
// the mean over all jobs.
const (
	RuleCourier = "courier"
	RuleMean    = "courier-mean"
	RulePaper   = "paper"
)

// DefaultRules returns the names of the rules that are compared by default, in the order in which
// they are shown.
func DefaultRules() []string {
	return []string{RuleCourier, RuleMean, RulePaper, RuleRandom, RuleLargest, RuleOracle}
}

// Rules returns the names of all rules.
func Rules() []string { return append(DefaultRules(), RuleInformed) }

// NewRule returns the rule of a name for one play; nil if there is no such rule. The rules of
// Courier use the given method to fit, the rule of the paper uses families. refit is the number of
// finished jobs between two fits, 0 for a single fit.
func NewRule(ctx context.Context, name string, method trainer.FitMethod, seed uint64, refit int) Rule {
	switch name {
	case RuleCourier:
		return NewCourierRule(NewLearner(ctx, method, seed, refit), schemas.PromiseEach)
	case RuleMean:
		return NewCourierRule(NewLearner(ctx, method, seed, refit), schemas.PromiseMean)
	case RulePaper:
		return NewPaperRule(NewLearner(ctx, trainer.MethodFamilies, seed, refit))
	case RuleRandom:
		return NewRandom(seed)
	case RuleLargest:
		return NewLargest()
	case RuleInformed:
		return NewInformed(seed)
	case RuleOracle:
		return NewOracle()
	}
	return nil
}
