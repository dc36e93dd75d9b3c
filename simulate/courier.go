package simulate

import (
	"context"
	"fmt"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
	"courier/trainer"
)

// courierRule is Courier without a network: the fits of the trainer, and the decisions and warnings
// of the advisor.
type courierRule struct {
	learner
	cluster    *cluster.Cluster
	regressors decide.Regressors
	last       HistoryRecord
	changed    *cluster.Job // job that the last event changed
}

// NewCourier returns Courier as a rule. It fits at the first submission, and again after refit
// finished jobs if refit is above 0.
func NewCourier(ctx context.Context, seed uint64, refit int) Rule {
	return &courierRule{learner: newLearner(ctx, seed, refit), cluster: cluster.New()}
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
	return decide.Watch(c.cluster, c.last.Event, c.changed, c.last.Sequence, c.regressors, at)
}

// Submit implements Rule.
func (c *courierRule) Submit(
	q schemas.JobRequest, _ NodeLoad, at time.Time,
) (*schemas.Advice, error) {
	if c.isDue() {
		if err := c.fit(); err != nil {
			return nil, err
		}
	}
	return decide.Decide(decide.Ask(c.cluster, q, at), c.regressors, at), nil
}

// fit fits the regressors of all targets.
func (c *courierRule) fit() error {
	for _, f := range []struct {
		target    string
		regressor **decide.Regressor
	}{
		{schemas.TargetEpochTime, &c.regressors.EpochTime},
		{schemas.TargetStartup, &c.regressors.Startup},
		{schemas.TargetAccuracy, &c.regressors.Accuracy},
	} {
		r, err := c.fitTarget(f.target)
		if err != nil {
			return fmt.Errorf("fit %s: %w", f.target, err)
		}
		*f.regressor = r
	}
	c.fitted()
	return nil
}

// fitTarget fits a regressor as the trainer does, and loads it from its files as the advisor does.
func (c *courierRule) fitTarget(target string) (*decide.Regressor, error) {
	files, err := trainer.Fit(c.ctx, target, c.past.Examples(target), nil, trainer.Options{})
	if err != nil {
		return nil, err
	}
	return decide.LoadRegressor(files.Model, files.Manifest)
}
