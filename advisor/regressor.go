package advisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// Regressor is a regressor that may answer, with what makes its rows.
type Regressor struct {
	Digest    string // sha256 of its file
	predictor *regress.Predictor
	evidence  *evidence.Predictor // the distributions of a regressor of that family; nil for others
	drift     *evidence.Corrections
	factors   []evidence.Factor // of the corrections
	encoder   *schemas.Encoder
	model     int                      // index of the column that names the model and its dataset
	trained   []evidence.Configuration // model and dataset of each level of that column
	serial    uint64                   // no other has it in this process
}

// made counts them.
var regressorSerials atomic.Uint64

// NewRegressor takes a loaded predictor into use. A feature that this version
// does not know, or none that names the model, is an error.
func NewRegressor(p *regress.Predictor, digest string) (*Regressor, error) {
	features := p.Manifest().Features
	if len(features) > maxColumns {
		return nil, fmt.Errorf("%d features are more than %d", len(features), maxColumns)
	}
	inputs := make([]schemas.EncoderInput, len(features))
	for i, f := range features {
		inputs[i] = schemas.EncoderInput{
			Name: f.Name, Levels: f.Levels, Min: f.Min, Max: f.Max, Typical: f.Typical,
		}
	}
	encoder, err := schemas.ReadEncoder(inputs)
	if err != nil {
		return nil, err
	}
	r := &Regressor{
		Digest:    digest,
		predictor: p,
		encoder:   encoder,
		model:     encoder.ColumnIndex(schemas.ColumnModel),
		serial:    regressorSerials.Add(1),
	}
	if r.model < 0 {
		return nil, fmt.Errorf("no feature %q", schemas.ColumnModel)
	}
	if m := p.Manifest(); m.Target != schemas.TargetAccuracy && m.Transform != regress.Log {
		return nil, fmt.Errorf("%s is fitted on %q, want %q: bounds multiply times", m.Target,
			m.Transform, regress.Log)
	}
	for _, level := range encoder.Levels(schemas.ColumnModel) {
		var c evidence.Configuration
		c.Model, c.Dataset = schemas.ParseModelLevel(level)
		r.trained = append(r.trained, c)
	}
	if r.evidence, r.drift, err = compileEvidence(p.Manifest()); err != nil {
		return nil, err
	}
	r.factors = r.drift.Factors()
	return r, nil
}

// maxColumns bounds a row, so that one serves all regressors.
const maxColumns = 16

// compileEvidence returns the distributions of a regressor of package evidence and their
// corrections; nil for others.
func compileEvidence(m *regress.Manifest) (*evidence.Predictor, *evidence.Corrections, error) {
	if m.Family != regress.FamilyHierarchy {
		return nil, nil, nil
	}
	var s evidence.State
	if err := json.Unmarshal(m.Hierarchy, &s); err != nil {
		return nil, nil, fmt.Errorf("read the hierarchy of %s: %w", m.Target, err)
	}
	return s.Compile()
}

// knows returns the code of the level of a model, and whether examples of it were learnt from.
func (r *Regressor) knows(level string) (float64, bool) {
	if r == nil {
		return 0, false
	}
	return r.predictor.Features()[r.model].Level(level)
}

// residuals returns the sorted residuals by which predictions for a model on a node
// are judged: those of the model or of the CPU model, if they have a table, else
// those of all.
func (r *Regressor) residuals(modelCode float64, on schemas.NodeCode) []float64 {
	c := &r.predictor.Manifest().Calibration
	if l := c.Levels; l != nil {
		code := modelCode
		switch l.Feature {
		case r.model:
		case r.encoder.ColumnIndex(schemas.ColumnCPUModel):
			code = on.CPUModel
		default:
			return c.Residuals
		}
		if i := int(code); i >= 0 && i < len(l.Tables) && l.Tables[i].Count > 0 {
			return l.Tables[i].Residuals
		}
	}
	return c.Residuals
}

// predict returns the prediction for features whose codes are set already. Of a node
// of which something is unknown that tells nodes apart, the prediction is one beyond
// the examples.
func (r *Regressor) predict(f *schemas.Features, m *predictionCache) (regress.Prediction, bool) {
	s := m.slot(r, f)
	if s.by != r.serial || s.of != *f {
		row := m.row[:len(r.encoder.Columns())]
		r.encoder.Fill(row, f)
		p, err := r.predictor.Predict(row)
		if f.Node.OutsideSupport {
			p.Extrapolated, p.Distance = true, p.Distance+1
		}
		*s = cachedPrediction{r.serial, *f, p, err == nil}
	}
	return s.Prediction, s.ok
}

// reading remembers how a regressor reads a node: most are the one before.
type nodeCodeCache struct {
	by   *Regressor
	of   schemas.Hardware
	code schemas.NodeCode
}

func (m *nodeCodeCache) node(r *Regressor, h schemas.Hardware) schemas.NodeCode {
	if m.by != r || m.of != h {
		*m = nodeCodeCache{r, h, r.encoder.Node(h)}
	}
	return m.code
}

// Regressors are those in use; one that is not known is nil.
type Regressors struct {
	EpochTime, Startup, Accuracy *Regressor

	digestByTarget map[string]string // their digests, never changed; nil: not written down yet
}

// with returns the regressors with that of a target replaced; false for a target
// of a later version.
func (r Regressors) with(target string, next *Regressor) (Regressors, bool) {
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
	r.digestByTarget = nil
	r.digestByTarget = r.digests()
	return r, true
}

// digests returns the version of each regressor in use.
func (r Regressors) digests() map[string]string {
	if r.digestByTarget != nil {
		return r.digestByTarget
	}
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

// foreignSpread is by how much an epoch may take longer than predicted because the foreign load
// is unknown, as a logarithm: how much longer it takes beside the greatest that was measured than
// beside the typical one.
func (r *Regressor) foreignSpread(f *schemas.Features, typical float64, m *predictionCache) float64 {
	if !r.encoder.LacksForeign(f) {
		return 0
	}
	busiest := r.encoder.Busiest(*f)
	p, ok := r.predict(&busiest, m)
	if !ok || !(p.Value > typical && typical > 0) {
		return 0
	}
	return math.Log(p.Value / typical)
}

// memory remembers what regressors said of some features: forecasts meet the same
// few settings and loads again and again, in one decision and from one to the next,
// and a regressor never changes its word. One goroutine uses it at a time.
type predictionCache struct {
	row     [maxColumns]float64 // room for the row of a prediction
	entries [predictionCacheSlots]cachedPrediction
}

// remembered is how many predictions there is room for, a power of two.
const predictionCacheSlots = 512

// saying is what a regressor said of some features.
type cachedPrediction struct {
	by uint64 // its serial number; 0: nobody said anything yet
	of schemas.Features
	regress.Prediction
	ok bool
}

// place is where a regressor's word on some features would be.
func (m *predictionCache) slot(r *Regressor, f *schemas.Features) *cachedPrediction {
	const prime = 0x9e3779b97f4a7c15
	key := (r.serial*31+uint64(f.BatchSize))*31 + uint64(f.CPUs)
	key = (key*31+uint64(f.EpochsDone))*prime ^ math.Float64bits(f.Load.Processes)
	key = key*prime ^ math.Float64bits(f.Load.ConcurrentJobs)
	key = key*prime ^ math.Float64bits(f.ModelCode)
	key = key*prime ^ math.Float64bits(f.Node.Speed)
	key = key*prime ^ math.Float64bits(f.Load.ForeignCPURatio.Value)
	key = key*prime ^ math.Float64bits(f.Load.ForeignIOWaitRatio.Value)
	return &m.entries[key*prime>>(64-9)%predictionCacheSlots]
}

// configuration is the model and the dataset of a code of this regressor; the zero value if there
// is none.
func (r *Regressor) configuration(code float64) (c evidence.Configuration) {
	if i := int(code); i >= 0 && i < len(r.trained) {
		return r.trained[i]
	}
	return c
}

// epochTime predicts an epoch of a job under a load from the evidence of its model.
func (r *Regressor) epochTime(
	code float64, batch, cpus uint32, l schemas.Load, cores uint32, nodeType string,
) evidence.EpochTime {
	return r.evidence.Epochs(r.drift, r.timeConfiguration(code, batch, cpus, l, cores, nodeType))
}

// timeConfiguration is what the time of an epoch depends on.
func (r *Regressor) timeConfiguration(
	code float64, batch, cpus uint32, l schemas.Load, cores uint32, nodeType string,
) evidence.Configuration {
	load := evidence.Load{ConcurrentJobs: l.ConcurrentJobs}
	if cores > 0 {
		load.ProcessesPerCore = l.Processes / float64(cores)
	}
	c := r.configuration(code)
	c.NodeType, c.BatchSize, c.CPUs, c.Load = nodeType, int(batch), int(cpus), load
	return c
}

// accuracyAt predicts the accuracy of a batch size after some epochs.
func (r *Regressor) accuracyAt(code float64, batch, epochs uint32) evidence.Accuracy {
	return r.evidence.Accuracy(r.accuracyConfiguration(code, batch), int(epochs))
}

// accuracyConfiguration is what an accuracy depends on.
func (r *Regressor) accuracyConfiguration(code float64, batch uint32) evidence.Configuration {
	c := r.configuration(code)
	c.BatchSize, c.CPUs = int(batch), 1
	return c
}

// standIn reports whether runs on nodes of unknown hardware, such as imported ones, count for a
// request that leaves the node to Courier. They stand for any node until the model has run on a
// node whose hardware is known, and as long as they do not differ from node to node.
func (r *Regressor) standIn(code float64, nodeType string) bool {
	types := r.evidence.NodeTypes(r.configuration(code))
	return nodeType != "" && len(types) == 1 && types[0] == ""
}

// followRegressors takes every champion into use that passes all checks.
func (a *Advisor) followRegressors(ctx context.Context) error {
	return a.bus.WatchChampions(ctx, func(c schemas.Champion, revision uint64) {
		r, err := a.load(ctx, c)
		if err != nil {
			a.metrics.regressors.WithLabelValues(c.Target, "refused").Inc()
			a.log.Error("regressor refused, the one before stays", "target", c.Target, "digest",
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
		a.metrics.loaded.WithLabelValues(c.Target).Set(
			float64(r.predictor.Manifest().Examples.Count),
		)
		a.log.Info("regressor in use", "target", c.Target, "revision", revision, "digest",
			c.ModelDigest, "examples", r.predictor.Manifest().Examples.Count)
	})
}

// A champion is named once its files are stored, but in a cluster of NATS the server
// that is asked may not have them yet: for so long it is asked again.
const (
	fetchTimeout = 10 * time.Second
	fetchRetry   = 200 * time.Millisecond
)

// fetch reads a file of a champion. It asks again while NATS is away, until ctx ends.
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

// load fetches a champion's files and checks all that can be checked. Bytes that
// cannot be fetched because NATS is away are tried again until ctx ends.
func (a *Advisor) load(ctx context.Context, c schemas.Champion) (*Regressor, error) {
	manifest, err := a.fetch(ctx, c.ManifestDigest)
	if err != nil {
		return nil, err
	}
	model, err := a.fetch(ctx, c.ModelDigest)
	if err != nil {
		return nil, err
	}
	p, err := regress.Load(model, manifest)
	if err != nil {
		return nil, err
	}
	if got := p.Manifest().Target; got != c.Target {
		return nil, fmt.Errorf("it predicts %q, not %q", got, c.Target)
	}
	return NewRegressor(p, c.ModelDigest)
}
