package simulate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/regress/baseline"
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

// learner keeps the past of a log, on which a rule fits.
type learner struct {
	ctx      context.Context // of the simulation; the calls of a rule carry none
	seed     uint64
	refit    int // finished jobs between two fits; 0: one fit, at the first submission
	past     *trainer.Past
	isFitted bool
	finished int // number of finished jobs since the last fit
}

func (l *learner) add(e schemas.Event, sequence uint64) {
	if l.isFitted && l.refit == 0 {
		return // There will be no further fit.
	}
	l.past.Add(e, sequence)
	if ended, ok := e.(*schemas.Ended); ok && ended.Outcome == schemas.EventFinished {
		l.finished++
	}
}

// isDue reports whether a submission needs a new fit.
func (l *learner) isDue() bool {
	return !l.isFitted || l.refit > 0 && l.finished >= l.refit
}

func (l *learner) fitted() { l.isFitted, l.finished = true, 0 }

// paperRule chooses as in the paper (Courier, ICPE 2021, section 4.4): random forests predict a point
// at the current load. Of the candidates within the SLO it promises the most accurate; if there is
// none it refuses. It has no bound, and ignores future load and start-up time.
type paperRule struct {
	learner
	models              []string // levels of the model in a row
	epochTime, accuracy baseline.Predict
}

// Apply implements Rule.
func (p *paperRule) Apply(e schemas.Event, sequence uint64, _ time.Time) { p.add(e, sequence) }

// Submit implements Rule.
func (p *paperRule) Submit(q schemas.JobRequest, on NodeLoad, at time.Time) (*schemas.Advice, error) {
	if p.isDue() {
		if err := p.fit(); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(p.models, q.Model) {
		return nil, fmt.Errorf("there are no examples of model %s", q.Model)
	}
	decision, best := choosePoint(p.predictCandidates(&q, &on), q.SLO.Seconds())
	return answer(&q, at, decision, on.Name, best.jobCandidate), nil
}

const forestTrees, forestDepth = 100, 12

func (p *paperRule) fit() (err error) {
	p.models = nil
	for _, x := range p.past.Examples(schemas.TargetEpochTime) {
		p.models = append(p.models, x.Model)
	}
	slices.Sort(p.models)
	p.models = slices.Compact(p.models)
	if p.epochTime, err = p.forest(schemas.TargetEpochTime); err != nil {
		return err
	}
	if p.accuracy, err = p.forest(schemas.TargetAccuracy); err != nil {
		return err
	}
	p.fitted()
	return nil
}

func (p *paperRule) forest(target string) (baseline.Predict, error) {
	d := &baseline.Dataset{Features: []baseline.Feature{
		{Name: "model", Levels: p.models},
		{Name: "batch_size"},
		{Name: "cpus"},
		{Name: "concurrent_jobs"},
		{Name: "processes_per_core"},
		{Name: "epochs"},
	}}
	for _, x := range p.past.Examples(target) {
		d.Rows = append(d.Rows, p.row(target, x.Model, &x.Features))
		d.Target = append(d.Target, x.Value)
	}
	predict, err := baseline.Forest(p.ctx, d, baseline.ForestOptions{
		Trees:    forestTrees,
		MaxDepth: forestDepth,
		Seed:     p.seed,
		Log:      target == schemas.TargetEpochTime,
	})
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", target, err)
	}
	return predict, nil
}

// row returns the features that matter for a target; the others are 0.
func (p *paperRule) row(target, model string, f *schemas.Features) []float64 {
	code := float64(slices.Index(p.models, model))
	if target == schemas.TargetAccuracy {
		return []float64{code, float64(f.BatchSize), 0, 0, 0, float64(f.EpochsDone)}
	}
	return []float64{
		code, float64(f.BatchSize), float64(f.CPUs), f.Load.ConcurrentJobs, f.Load.ProcessesPerCore, 0,
	}
}

// predictedCandidate is a candidate with its point predictions.
type predictedCandidate struct {
	jobCandidate
	seconds, accuracy float64
}

func (p *paperRule) predictCandidates(q *schemas.JobRequest, on *NodeLoad) []predictedCandidate {
	var all []predictedCandidate
	for _, c := range candidates(q) {
		f := schemas.Features{BatchSize: c.batch, CPUs: c.cpus, EpochsDone: uint32(q.Epochs)}
		f.Load.ConcurrentJobs = float64(on.Jobs + 1)
		f.Load.ProcessesPerCore = float64(on.Processes+int(c.cpus)) / float64(on.Cores)
		epoch := p.epochTime(p.row(schemas.TargetEpochTime, q.Model, &f))
		accuracy := p.accuracy(p.row(schemas.TargetAccuracy, q.Model, &f))
		all = append(all, predictedCandidate{c, float64(q.Epochs) * epoch, accuracy})
	}
	return all
}

// choosePoint returns the most accurate candidate within the SLO, the fastest of equally accurate
// ones. If none is within the SLO it returns the fastest.
func choosePoint(all []predictedCandidate, sloSeconds float64) (schemas.Decision, predictedCandidate) {
	best, fastest := predictedCandidate{accuracy: math.Inf(-1)}, all[0]
	isFound := false
	for _, c := range all {
		if c.seconds < fastest.seconds {
			fastest = c
		}
		better := c.accuracy > best.accuracy ||
			c.accuracy == best.accuracy && c.seconds < best.seconds
		if c.seconds <= sloSeconds && better {
			best, isFound = c, true
		}
	}
	if !isFound {
		return schemas.BestEffort, fastest
	}
	return schemas.MeetsSLO, best
}
