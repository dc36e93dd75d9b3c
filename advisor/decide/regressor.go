package decide

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// Regressor predicts a target from the runs of each model on each dataset.
type Regressor struct {
	Digest   string // SHA-256 of its model file, in hex
	Target   string
	Examples int // that it was fitted on

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
func LoadRegressor(model, manifest []byte) (*Regressor, error) {
	file, err := treefile.Load(model, manifest)
	if err != nil {
		return nil, err
	}
	m := file.Manifest()
	r := &Regressor{Digest: m.SHA256, Target: m.Target, Examples: m.Examples.Count}
	for _, f := range m.Features {
		r.foreign = r.foreign.Add(f.Name, f.Typical, f.Max)
	}

	var s evidence.State
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
func (r *Regressor) knows(t trainedOn) bool {
	if r == nil {
		return false
	}
	_, found := slices.BinarySearchFunc(r.trained, t, trainedOn.compare)
	return found
}

// datasetsOf returns the sorted datasets of the runs of a model; "" stands for runs without one.
func (r *Regressor) datasetsOf(model string) (all []string) {
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
func (r *Regressor) epochTime(
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
func (r *Regressor) timeConfiguration(
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
func (r *Regressor) startup(t trainedOn, nodeType string) evidence.Distribution {
	if r == nil {
		return evidence.Distribution{}
	}
	c := t.configuration(0, 0)
	c.NodeType = nodeType
	return r.evidence.Startup(c)
}

// accuracyAt predicts the accuracy of a batch size after some epochs.
func (r *Regressor) accuracyAt(t trainedOn, batch, epochs uint32) evidence.Accuracy {
	return r.evidence.Accuracy(t.configuration(batch, 1), int(epochs))
}

// epochsTo returns the number of epochs after which the accuracy of a batch size has reached a
// target with some probability; 0 if never.
func (r *Regressor) epochsTo(t trainedOn, batch uint32, target, probability float64) uint32 {
	c := t.configuration(batch, 1)
	return uint32(r.evidence.SmallestEpochs(c, target, probability, schemas.MaxEpochs))
}

// standsIn reports whether runs on nodes of unknown hardware, such as imported runs, are examples
// for a request that names no node. They are examples until the model has run on a node of known
// hardware, and only if they do not differ from node to node.
func (r *Regressor) standsIn(t trainedOn, nodeType string) bool {
	types := r.evidence.NodeTypes(t.configuration(0, 0))
	return nodeType != "" && len(types) == 1 && types[0] == ""
}

// Regressors are the regressors in use, nil for a target without one.
type Regressors struct{ EpochTime, Startup, Accuracy *Regressor }

// With returns the regressors with one replaced, or false for an unknown target.
func (r Regressors) With(target string, next *Regressor) (Regressors, bool) {
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
