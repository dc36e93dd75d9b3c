package main

import (
	"context"
	"slices"
	"time"

	"courier/advisor"
	"courier/schemas"
	"courier/simulate"
)

// ruleMean is the advisor whose confidence is the mean of all promises.
const ruleMean = "courier-mean"

// ruleNames are the rules in the order in which they are shown.
var ruleNames = []string{"courier", ruleMean, "paper", simulate.RuleRandom, simulate.RuleLargest, simulate.RuleOracle}

// knownRules are all that may be asked for.
var knownRules = append(slices.Clone(ruleNames), simulate.RuleInformed)

// simulatedRules make a rule for one play.
var simulatedRules = map[string]func(context.Context, *simulateSLO) simulate.Rule{
	"courier": func(ctx context.Context, c *simulateSLO) simulate.Rule {
		return newCourierRule(newLearner(ctx, c.Seed, c.Refit), schemas.PromiseEach)
	},
	ruleMean: func(ctx context.Context, c *simulateSLO) simulate.Rule {
		return newCourierRule(newLearner(ctx, c.Seed, c.Refit), schemas.PromiseMean)
	},
	"paper": func(ctx context.Context, c *simulateSLO) simulate.Rule {
		return newPaperRule(newLearner(ctx, c.Seed, c.Refit))
	},
	simulate.RuleRandom:   func(_ context.Context, c *simulateSLO) simulate.Rule { return simulate.NewRandom(c.Seed) },
	simulate.RuleLargest:  func(context.Context, *simulateSLO) simulate.Rule { return simulate.NewLargest() },
	simulate.RuleInformed: func(_ context.Context, c *simulateSLO) simulate.Rule { return simulate.NewInformed(c.Seed) },
	simulate.RuleOracle:   func(context.Context, *simulateSLO) simulate.Rule { return simulate.NewOracle() },
}

// courierRule is the advisor without a network.
type courierRule struct {
	*learner
	promise    schemas.Promise
	cluster    *advisor.Cluster
	regressors advisor.Regressors
	last       simulate.Record
	touched    *advisor.Job // that the last event changed
}

func newCourierRule(l *learner, promise schemas.Promise) *courierRule {
	return &courierRule{learner: l, promise: promise, cluster: advisor.NewCluster()}
}

// Apply implements simulate.Rule.
func (c *courierRule) Apply(e schemas.Event, sequence uint64, at time.Time) {
	c.add(e, sequence)
	c.last, c.touched = simulate.Record{Event: e, Sequence: sequence, At: at}, c.cluster.Apply(e, sequence, at)
}

// Watch implements simulate.Watcher.
func (c *courierRule) Watch(at time.Time) []*schemas.Risk {
	if c.regressors.EpochTime == nil {
		return nil // nothing was promised yet
	}
	return c.cluster.Watch(c.last.Event, c.touched, c.last.Sequence, c.regressors, at)
}

// Submit implements simulate.Rule.
func (c *courierRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	learnt, err := c.learn()
	if err != nil {
		return nil, err
	}
	if learnt || c.regressors.EpochTime == nil {
		if c.regressors, err = c.inUse(); err != nil {
			return nil, err
		}
	}
	q.Promise = c.promise
	return advisor.Decide(c.cluster.Ask(q, at), c.regressors, at), nil
}

// inUse takes what was learnt into use, as the advisor takes champions.
func (c *courierRule) inUse() (r advisor.Regressors, err error) {
	if r.EpochTime, err = advisor.NewRegressor(c.epochTime.predictor, c.epochTime.digest); err != nil {
		return r, err
	}
	if r.Startup, err = advisor.NewRegressor(c.startup.predictor, c.startup.digest); err != nil {
		return r, err
	}
	r.Accuracy, err = advisor.NewRegressor(c.accuracy.predictor, c.accuracy.digest)
	return r, err
}
