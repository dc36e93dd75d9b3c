package decide

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"courier/advisor/cluster"
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
	factors  []evidence.Factor // of the drift that the evidence is adjusted for
	foreign  schemas.ForeignColumns
	trained  []trainedOn       // sorted
	setAside map[string]string // why runs are not learned from, by job and run
}

// trainedOn is a model on a dataset.
type trainedOn struct{ model, dataset string }

func (t trainedOn) compare(o trainedOn) int {
	return cmp.Or(cmp.Compare(t.model, o.model), cmp.Compare(t.dataset, o.dataset))
}

// trainedBy returns the model and the dataset under which the runs of a job with a batch size are learned.
func trainedBy(s *schemas.Setting, batch uint32) trainedOn {
	model, _ := schemas.LearnedAs(s.LearnedModel(), batch)
	return trainedOn{model, s.Dataset}
}

// timedWith returns the model and the dataset under which times with some data loaders are learned.
func (t trainedOn) timedWith(loaders uint32) trainedOn {
	return trainedOn{schemas.TimedModel(t.model, loaders), t.dataset}
}

// configuration returns the configuration of a job of the model with a batch size and CPUs of all workers.
func (t trainedOn) configuration(batch, cpus uint32) evidence.Configuration {
	_, batch = schemas.LearnedAs(t.model, batch)
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
	if err := serve(file, &s); err != nil {
		return nil, fmt.Errorf("read the values of %s: %w", m.Target, err)
	}
	if r.evidence, err = evidence.Compile(s.Regressor); err != nil {
		return nil, err
	}
	r.factors = s.Factors()
	for i := range s.Subjects {
		r.trained = append(r.trained, trainedOn{s.Subjects[i].Model, s.Subjects[i].Dataset})
	}
	slices.SortFunc(r.trained, trainedOn.compare)
	r.setAside = map[string]string{}
	for _, a := range s.SetAside {
		r.setAside[a.Run] = a.Reason
	}
	return r, nil
}

// serve replaces the point predictions of a state by those that package leaves reads from the file.
func serve(file *treefile.File, s *evidence.State) error {
	columns := file.Manifest().Features
	value := func(c *evidence.Configuration, epochs int) (float64, error) {
		y, err := file.Predict(evidence.Row(columns, schemas.ModelLevel(c.Model, c.Dataset), c, epochs))
		return math.Log(y), err
	}
	return s.ServeTimes(value)
}

// NotLearned returns why a run of a job is not learned from, wholly or in part; "" if that is not known.
func (r Regressors) NotLearned(job string, run uint32) string {
	for _, of := range []*Regressor{r.EpochTime, r.Accuracy, r.Startup} {
		if of == nil {
			continue
		}
		if why := of.setAside[fmt.Sprintf("%s/%d", job, run)]; why != "" {
			return why
		}
	}
	return ""
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

// epochTime predicts the epochs of a job that are left until a total, under a load.
func (r *Regressor) epochTime(
	t trainedOn, batch, cpus uint32, on nodeState, done []evidence.Span, total int,
) evidence.EpochTime {
	e := r.rest(r.timeConfiguration(t, batch, cpus, on), done, total)
	if e.Support <= evidence.OwnEpochs || r.foreign.AreKnown(&on.load) {
		return e
	}

	// The prediction assumes the typical foreign load, but the load may be any measured one.
	on.load = r.foreign.Busiest(on.load)
	busy := r.rest(r.timeConfiguration(t, batch, cpus, on), done, total)
	if slower := busy.Location - e.Location; slower > 0 {
		e.Variance += slower * slower / foreignDeviations / foreignDeviations
	}
	return e
}

// rest predicts by past runs and the job's own epochs, or by its own epochs alone.
func (r *Regressor) rest(c evidence.Configuration, done []evidence.Span, total int) evidence.EpochTime {
	var e evidence.EpochTime
	if r != nil {
		e = r.evidence.Rest(c, done, total)
	}
	if e.Known() || len(done) == 0 {
		return e
	}
	if alone := evidence.RestAlone(done, total); alone.Known() {
		alone.Counts = e.Counts
		return alone
	}
	return e
}

// spansOf returns the epochs of a running job with the configurations under which they ran.
func (r *Regressor) spansOf(m *Member) []evidence.Span {
	return spans(m, func(o *cluster.ObservedEpoch) evidence.Configuration {
		timed := trainedBy(&m.Setting, o.BatchSize).timedWith(m.Setting.Loaders)
		return r.timeConfiguration(timed, o.BatchSize, o.CPUs, nodeState{
			nodeType: r.nodeType(o.Node, o.Load.On.NodeType()),
			cores:    o.Load.On.Cores,
			load:     o.Load.Load,
		})
	})
}

// nodeType returns the type of a node by the regressor.
func (r *Regressor) nodeType(node, hardware string) string {
	if r == nil {
		return hardware
	}
	return r.evidence.NodeType(node, hardware)
}

// spans returns the epochs of a running job. Those that were not observed come first, without a time.
func spans(m *Member, under func(*cluster.ObservedEpoch) evidence.Configuration) []evidence.Span {
	all, observed := make([]evidence.Span, 1, 1+len(m.ObservedEpochs)), 0
	for i := range m.ObservedEpochs {
		o := &m.ObservedEpochs[i]
		s := evidence.Span{Epochs: int(o.Count), Seconds: o.Seconds}
		if o.Seconds > 0 {
			s.Under = under(o)
		}
		all, observed = append(all, s), observed+s.Epochs
	}
	if all[0].Epochs = int(m.EpochsDone) - observed; all[0].Epochs <= 0 {
		return all[1:]
	}
	return all
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
func (r *Regressor) timeConfiguration(t trainedOn, batch, cpus uint32, on nodeState) evidence.Configuration {
	c := t.configuration(batch, cpus)
	if r == nil {
		return c
	}
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
func (p *problem) accuracyAt(batch, epochs uint32) evidence.Accuracy {
	return p.r.Accuracy.evidence.Accuracy(p.accuracyConfiguration(batch), int(epochs))
}

// passage predicts when a batch size reaches the target accuracy, given the best accuracy of the job;
// never without a target.
func (p *problem) passage(batch uint32) (a evidence.Passage) {
	if !p.hasAccuracy || p.Request.TargetAccuracy == 0 {
		return a
	}
	a = p.r.Accuracy.evidence.Passage(p.accuracyConfiguration(batch), p.Request.TargetAccuracy)
	if m := p.Self; m != nil && m.BestAccuracy != nil {
		a = a.AfterAccuracy(int(m.EpochsDone), *m.BestAccuracy)
	}
	return a
}

func (p *problem) accuracyConfiguration(batch uint32) evidence.Configuration {
	c := p.job.configuration(batch, 1)
	c.NodeType = p.firstNodeType()
	return c
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
	for _, of := range []*Regressor{r.EpochTime, r.Startup, r.Accuracy} {
		if of != nil {
			all[of.Target] = of.Digest
		}
	}
	return all
}
