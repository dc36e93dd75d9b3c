package simulate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"courier/regress/baseline"
	"courier/schemas"
)

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
