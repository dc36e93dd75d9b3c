package simulate

import (
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
	last       schemas.Event
	sequence   uint64       // of the last event
	changed    *cluster.Job // job that the last event changed
}

// Apply implements Rule.
func (c *courierRule) Apply(e schemas.Event, sequence uint64, at time.Time) {
	c.add(e, sequence)
	c.last, c.sequence = e, sequence
	c.changed = c.cluster.Apply(e, sequence, at)
}

// Watch implements Watcher.
func (c *courierRule) Watch(at time.Time) []*schemas.Risk {
	if c.regressors.EpochTime == nil {
		return nil // There are no promises yet.
	}
	return decide.Watch(c.cluster, c.last, c.changed, c.sequence, c.regressors, at)
}

// Submit implements Rule.
func (c *courierRule) Submit(q schemas.JobRequest, _ NodeLoad, at time.Time) (*schemas.Advice, error) {
	if c.isDue() {
		if err := c.fit(); err != nil {
			return nil, err
		}
	}
	return decide.Decide(decide.Ask(c.cluster, q, at), c.regressors, at), nil
}

// fit fits the regressors of all targets as the trainer does, and loads them from their files as the
// advisor does.
func (c *courierRule) fit() error {
	fitted := map[string]*decide.Regressor{}
	for _, target := range schemas.Targets() {
		files, err := trainer.Fit(c.ctx, target, c.past.Examples(target), nil, trainer.Options{})
		if err == nil {
			fitted[target], err = decide.LoadRegressor(files.Model, files.Manifest)
		}
		if err != nil {
			return fmt.Errorf("fit %s: %w", target, err)
		}
	}
	c.regressors = decide.Regressors{
		EpochTime: fitted[schemas.TargetEpochTime],
		Startup:   fitted[schemas.TargetStartup],
		Accuracy:  fitted[schemas.TargetAccuracy],
	}
	c.fitted()
	return nil
}
