package advisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// LoadedRegressor predicts a target from the runs of each model on each dataset.
type LoadedRegressor struct {
	Digest   string // SHA-256 of its model file, in hex
	target   string
	examples int // that it was fitted on

	evidence *evidence.Predictor
	drift    *evidence.Corrections // nil without drift
	factors  []evidence.Factor     // of the corrections
	foreign  schemas.ForeignColumns
	trained  []trainedOn // sorted
}

// trainedOn is a model on a dataset.
type trainedOn struct{ model, dataset string }

func (t trainedOn) compare(o trainedOn) int {
	return cmp.Or(cmp.Compare(t.model, o.model), cmp.Compare(t.dataset, o.dataset))
}

// trainedBy returns the model and the dataset of a job.
func trainedBy(s *schemas.Setting) trainedOn { return trainedOn{s.Model, s.Dataset} }

// configuration returns the configuration of a job of the model with a batch size and CPUs.
func (t trainedOn) configuration(batch, cpus uint32) evidence.Configuration {
	return evidence.Configuration{
		Model: t.model, Dataset: t.dataset, BatchSize: int(batch), CPUs: int(cpus),
	}
}

// LoadRegressor loads a regressor from its files.
func LoadRegressor(model, manifest []byte) (*LoadedRegressor, error) {
	file, err := treefile.Load(model, manifest)
	if err != nil {
		return nil, err
	}
	m := file.Manifest()
	r := &LoadedRegressor{Digest: m.SHA256, target: m.Target, examples: m.Examples.Count}
	for _, f := range m.Features {
		r.foreign = r.foreign.Add(f.Name, f.Typical, f.Max)
	}

	var s evidence.ServedHierarchy
	if err := json.Unmarshal(m.State, &s); err != nil {
		return nil, fmt.Errorf("read the state of %s: %w", m.Target, err)
	}
	if r.evidence, r.drift, err = s.Compile(); err != nil {
		return nil, err
	}
	r.factors = r.drift.Factors()
	for i := range s.Subjects {
		r.trained = append(r.trained, trainedOn{s.Subjects[i].Model, s.Subjects[i].Dataset})
	}
	slices.SortFunc(r.trained, trainedOn.compare)
	return r, nil
}

// knows reports whether the regressor was fitted on runs of a model. A nil regressor knows nothing.
func (r *LoadedRegressor) knows(t trainedOn) bool {
	if r == nil {
		return false
	}
	_, found := slices.BinarySearchFunc(r.trained, t, trainedOn.compare)
	return found
}

// datasetsOf returns the sorted datasets of the runs of a model; "" stands for runs without one.
func (r *LoadedRegressor) datasetsOf(model string) (all []string) {
	if r == nil {
		return nil
	}
	for _, t := range r.trained {
		if t.model == model {
			all = append(all, t.dataset)
		}
	}
	return all
}

// epochTime predicts an epoch under a load.
func (r *LoadedRegressor) epochTime(
	t trainedOn, batch, cpus uint32, on nodeState,
) evidence.EpochTime {
	c := r.timeConfiguration(t, batch, cpus, on)
	e := r.evidence.Epochs(r.drift, c)
	if !e.Known() || r.foreign.AreKnown(&on.load) {
		return e
	}

	// The prediction assumes the typical foreign load, but the load may be any measured one.
	on.load = r.foreign.Busiest(on.load)
	c = r.timeConfiguration(t, batch, cpus, on)
	if slower := r.evidence.Epochs(r.drift, c).Location - e.Location; slower > 0 {
		e.Variance += slower * slower / foreignDeviations / foreignDeviations
	}
	return e
}

// foreignDeviations is the number of standard deviations between the typical and the highest
// measured foreign load, for an unknown foreign load.
const foreignDeviations = 2

// nodeState is what an epoch time depends on beside the job itself.
type nodeState struct {
	nodeType string
	cores    uint32 // 0 if unknown
	load     schemas.Load
}

// timeConfiguration returns the configuration that determines an epoch time.
func (r *LoadedRegressor) timeConfiguration(
	t trainedOn, batch, cpus uint32, on nodeState,
) evidence.Configuration {
	c := t.configuration(batch, cpus)
	c.NodeType = on.nodeType
	c.ConcurrentJobs = on.load.ConcurrentJobs
	if on.cores > 0 {
		c.ProcessesPerCore = on.load.Processes / float64(on.cores)
	}
	c.ForeignCPURatio, c.ForeignIOWaitRatio = r.foreign.Ratios(&on.load)
	return c
}

// startup predicts the seconds from the start to the first epoch; their scale is 0 if unknown.
func (r *LoadedRegressor) startup(t trainedOn, nodeType string) evidence.Distribution {
	if r == nil {
		return evidence.Distribution{}
	}
	c := t.configuration(0, 0)
	c.NodeType = nodeType
	return r.evidence.Startup(c)
}

// accuracyAt predicts the accuracy of a batch size after some epochs.
func (r *LoadedRegressor) accuracyAt(t trainedOn, batch, epochs uint32) evidence.Accuracy {
	return r.evidence.Accuracy(t.configuration(batch, 1), int(epochs))
}

// epochsTo returns the number of epochs after which the accuracy of a batch size has reached a
// target with some probability; 0 if never.
func (r *LoadedRegressor) epochsTo(t trainedOn, batch uint32, target, probability float64) uint32 {
	c := t.configuration(batch, 1)
	return uint32(r.evidence.SmallestEpochs(c, target, probability, schemas.MaxEpochs))
}

// standsIn reports whether runs on nodes of unknown hardware, such as imported runs, are examples
// for a request that names no node. They are examples until the model has run on a node of known
// hardware, and only if they do not differ from node to node.
func (r *LoadedRegressor) standsIn(t trainedOn, nodeType string) bool {
	types := r.evidence.NodeTypes(t.configuration(0, 0))
	return nodeType != "" && len(types) == 1 && types[0] == ""
}

// Regressors are the regressors in use, nil for a target without one.
type Regressors struct{ EpochTime, Startup, Accuracy *LoadedRegressor }

// with returns the regressors with one replaced, or false for an unknown target.
func (r Regressors) with(target string, next *LoadedRegressor) (Regressors, bool) {
	switch target {
	case schemas.TargetEpochTime:
		r.EpochTime = next
	case schemas.TargetStartup:
		r.Startup = next
	case schemas.TargetAccuracy:
		r.Accuracy = next
	default:
		return r, false
	}
	return r, true
}

// digests returns the digest of each regressor in use, by target.
func (r Regressors) digests() map[string]string {
	all := make(map[string]string, 3)
	if r.EpochTime != nil {
		all[schemas.TargetEpochTime] = r.EpochTime.Digest
	}
	if r.Startup != nil {
		all[schemas.TargetStartup] = r.Startup.Digest
	}
	if r.Accuracy != nil {
		all[schemas.TargetAccuracy] = r.Accuracy.Digest
	}
	return all
}

// followRegressors loads every new champion and uses it if it passes all checks.
func (a *Advisor) followRegressors(ctx context.Context) error {
	return a.bus.WatchChampions(ctx, func(c schemas.Champion, revision uint64) {
		r, err := a.load(ctx, c)
		if err != nil {
			a.metrics.regressors.WithLabelValues(c.Target, "refused").Inc()
			a.log.Error("champion rejected, keeping the previous one", "target", c.Target, "digest",
				c.ModelDigest, "error", err)
			e := &schemas.Rejected{
				Target:      c.Target,
				ModelDigest: c.ModelDigest,
				Reason:      err.Error(),
			}
			e.EventID, e.At = schemas.RejectedID(c.Target, c.ModelDigest), time.Now().UTC()
			a.publish(ctx, e)
			return
		}
		next, known := a.regressors.Load().with(c.Target, r)
		if !known {
			return
		}
		a.regressors.Store(&next)
		a.metrics.regressors.WithLabelValues(c.Target, "loaded").Inc()
		a.metrics.loaded.WithLabelValues(c.Target).Set(float64(r.examples))
		a.log.Info("regressor in use", "target", c.Target, "revision", revision, "digest",
			c.ModelDigest, "examples", r.examples)
	})
}

// A champion is announced after its files are stored, but another server of a NATS cluster may not
// have them yet. Fetching is retried for fetchTimeout.
const (
	fetchTimeout = 10 * time.Second
	fetchRetry   = 200 * time.Millisecond
)

// fetch reads a file of a champion. While NATS is unavailable it retries until ctx ends.
func (a *Advisor) fetch(ctx context.Context, digest string) ([]byte, error) {
	begin, tick := time.Now(), time.NewTicker(fetchRetry)
	defer tick.Stop()
	for {
		data, err := a.bus.Artifact(ctx, digest)
		late := errors.Is(err, schemas.ErrNotFound) && time.Since(begin) < fetchTimeout
		if !late && !errors.Is(err, schemas.ErrUnavailable) {
			return data, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// load fetches and checks the files of a champion.
func (a *Advisor) load(ctx context.Context, c schemas.Champion) (*LoadedRegressor, error) {
	manifest, err := a.fetch(ctx, c.ManifestDigest)
	if err != nil {
		return nil, err
	}
	model, err := a.fetch(ctx, c.ModelDigest)
	if err != nil {
		return nil, err
	}
	r, err := LoadRegressor(model, manifest)
	if err != nil {
		return nil, err
	}
	if r.target != c.Target {
		return nil, fmt.Errorf("regressor has target %q, want %q", r.target, c.Target)
	}
	return r, nil
}
