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

// LoadedRegressor is a loaded regressor with the encoder of its features.
type LoadedRegressor struct {
	Digest    string // SHA-256 of its file
	predictor *regress.Predictor
	evidence  *evidence.Predictor // the distributions of a regressor of that family; nil for others
	drift     *evidence.Corrections
	factors   []evidence.Factor // of the corrections
	encoder   *schemas.Encoder
	model     int                      // index of the column of the model and its dataset
	trained   []evidence.Configuration // model and dataset of each level of that column
	serial    uint64                   // unique in this process
}

var regressorSerials atomic.Uint64

// NewRegressor prepares a loaded predictor. It returns an error if a feature is unknown to this
// version, or if no feature names the model.
func NewRegressor(p *regress.Predictor, digest string) (*LoadedRegressor, error) {
	features := p.Manifest().Features
	if len(features) > maxColumns {
		return nil, fmt.Errorf("regressor has %d features, maximum %d", len(features), maxColumns)
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
	r := &LoadedRegressor{
		Digest:    digest,
		predictor: p,
		encoder:   encoder,
		model:     encoder.ColumnIndex(schemas.ColumnModel),
		serial:    regressorSerials.Add(1),
	}
	if r.model < 0 {
		return nil, fmt.Errorf("regressor has no feature %q", schemas.ColumnModel)
	}
	if m := p.Manifest(); m.Target != schemas.TargetAccuracy && m.Transform != regress.Log {
		return nil, fmt.Errorf("regressor of %s has transform %q, want %q", m.Target, m.Transform,
			regress.Log)
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

// LoadRegressor loads a regressor from its files.
func LoadRegressor(model, manifest []byte, digest string) (*LoadedRegressor, error) {
	p, err := regress.Load(model, manifest)
	if err != nil {
		return nil, err
	}
	return NewRegressor(p, digest)
}

// maxColumns bounds the columns of a row, so that one buffer serves all regressors.
const maxColumns = 16

// compileEvidence returns the distributions of an evidence regressor and their corrections; nil for
// other regressors.
func compileEvidence(m *regress.Manifest) (*evidence.Predictor, *evidence.Corrections, error) {
	if m.Family != regress.FamilyHierarchy {
		return nil, nil, nil
	}
	var s evidence.ServedHierarchy
	if err := json.Unmarshal(m.Hierarchy, &s); err != nil {
		return nil, nil, fmt.Errorf("read the hierarchy of %s: %w", m.Target, err)
	}
	return s.Compile()
}

// knows returns the code of a model level, and whether the regressor was fitted on examples of it.
// A nil regressor knows nothing.
func (r *LoadedRegressor) knows(level string) (float64, bool) {
	if r == nil {
		return 0, false
	}
	return r.predictor.Features()[r.model].Level(level)
}

// residuals returns the sorted residuals that apply to a model on a node: the table of the model or
// of the CPU model if there is one, otherwise the table of all examples.
func (r *LoadedRegressor) residuals(modelCode float64, on schemas.NodeCode) []float64 {
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

// predict returns the prediction for encoded features. The prediction is an extrapolation if a
// relevant property of the node is unknown.
func (r *LoadedRegressor) predict(f *schemas.Features, m *predictionCache) (regress.Prediction, bool) {
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

// nodeCodeCache caches the code of the last node, because most lookups repeat it.
type nodeCodeCache struct {
	by   *LoadedRegressor
	of   schemas.Hardware
	code schemas.NodeCode
}

func (m *nodeCodeCache) node(r *LoadedRegressor, h schemas.Hardware) schemas.NodeCode {
	if m.by != r || m.of != h {
		*m = nodeCodeCache{r, h, r.encoder.Node(h)}
	}
	return m.code
}

// Regressors are the regressors in use, nil for a target without one.
type Regressors struct {
	EpochTime, Startup, Accuracy *LoadedRegressor

	digestByTarget map[string]string // result of digests, immutable; nil if not computed yet
}

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
	r.digestByTarget = nil
	r.digestByTarget = r.digests()
	return r, true
}

// digests returns the digest of each regressor in use, by target.
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

// foreignSpread returns the log ratio between the predictions at the highest and at the typical
// foreign load, if the foreign load is unknown; otherwise 0.
func (r *LoadedRegressor) foreignSpread(
	f *schemas.Features, typical float64, m *predictionCache,
) float64 {
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

// predictionCache caches predictions of all regressors across decisions, because forecasts
// encounter the same configurations and loads again and again. It is used by one goroutine at a
// time.
type predictionCache struct {
	row     [maxColumns]float64 // buffer for the row of a prediction
	entries [predictionCacheSlots]cachedPrediction
}

// predictionCacheSlots is a power of two.
const predictionCacheSlots = 512

// cachedPrediction is the prediction of a regressor for some features.
type cachedPrediction struct {
	by uint64 // serial of the regressor; 0 for an empty slot
	of schemas.Features
	regress.Prediction
	ok bool
}

// slot returns the only slot that may hold the prediction for the features.
func (m *predictionCache) slot(r *LoadedRegressor, f *schemas.Features) *cachedPrediction {
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

// configuration returns the model and the dataset of a code, or the zero value.
func (r *LoadedRegressor) configuration(code float64) (c evidence.Configuration) {
	if i := int(code); i >= 0 && i < len(r.trained) {
		return r.trained[i]
	}
	return c
}

// epochTime predicts an epoch under a load with an evidence regressor.
func (r *LoadedRegressor) epochTime(
	code float64, batch, cpus uint32, l schemas.Load, cores uint32, nodeType string,
) evidence.EpochTime {
	e := r.evidence.Epochs(r.drift, r.timeConfiguration(code, batch, cpus, l, cores, nodeType))
	f := schemas.Features{Load: l}
	if !e.Known() || !r.encoder.LacksForeign(&f) {
		return e
	}

	// The prediction assumes the typical foreign load, but the load may be any measured one.
	busiest := r.encoder.Busiest(f).Load
	c := r.timeConfiguration(code, batch, cpus, busiest, cores, nodeType)
	if slower := r.evidence.Epochs(r.drift, c).Location - e.Location; slower > 0 {
		e.Variance += slower * slower / foreignDeviations / foreignDeviations
	}
	return e
}

// foreignDeviations is the number of standard deviations between the typical and the highest
// measured foreign load, for an unknown foreign load.
const foreignDeviations = 2

// timeConfiguration returns the configuration that determines an epoch time.
func (r *LoadedRegressor) timeConfiguration(
	code float64, batch, cpus uint32, l schemas.Load, cores uint32, nodeType string,
) evidence.Configuration {
	load := evidence.NodeLoad{ConcurrentJobs: l.ConcurrentJobs}
	if cores > 0 {
		load.ProcessesPerCore = l.Processes / float64(cores)
	}
	load.ForeignCPURatio, load.ForeignIOWaitRatio = r.encoder.ForeignRatios(&l)
	c := r.configuration(code)
	c.NodeType, c.BatchSize, c.CPUs, c.NodeLoad = nodeType, int(batch), int(cpus), load
	return c
}

// accuracyAt predicts the accuracy of a batch size after some epochs.
func (r *LoadedRegressor) accuracyAt(code float64, batch, epochs uint32) evidence.Accuracy {
	return r.evidence.Accuracy(r.accuracyConfiguration(code, batch), int(epochs))
}

// accuracyConfiguration returns the configuration that determines an accuracy.
func (r *LoadedRegressor) accuracyConfiguration(code float64, batch uint32) evidence.Configuration {
	c := r.configuration(code)
	c.BatchSize, c.CPUs = int(batch), 1
	return c
}

// standIn reports whether runs on nodes of unknown hardware, such as imported runs, are examples
// for a request that names no node. They are examples until the model has run on a node of known
// hardware, and only if they do not differ from node to node.
func (r *LoadedRegressor) standIn(code float64, nodeType string) bool {
	types := r.evidence.NodeTypes(r.configuration(code))
	return nodeType != "" && len(types) == 1 && types[0] == ""
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
		a.metrics.loaded.WithLabelValues(c.Target).Set(
			float64(r.predictor.Manifest().Examples.Count),
		)
		a.log.Info("regressor in use", "target", c.Target, "revision", revision, "digest",
			c.ModelDigest, "examples", r.predictor.Manifest().Examples.Count)
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
	r, err := LoadRegressor(model, manifest, c.ModelDigest)
	if err != nil {
		return nil, err
	}
	if got := r.predictor.Manifest().Target; got != c.Target {
		return nil, fmt.Errorf("regressor has target %q, want %q", got, c.Target)
	}
	return r, nil
}
