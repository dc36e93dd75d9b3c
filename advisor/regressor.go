package advisor

import (
	"fmt"
	"math"
	"sync/atomic"

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
var made atomic.Uint64

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
		serial:    made.Add(1),
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
func (r *Regressor) predict(f *schemas.Features, m *memory) (regress.Prediction, bool) {
	s := m.place(r, f)
	if s.by != r.serial || s.of != *f {
		row := m.row[:len(r.encoder.Columns())]
		r.encoder.Fill(row, f)
		p, err := r.predictor.Predict(row)
		if f.Node.OutsideSupport {
			p.Extrapolated, p.Distance = true, p.Distance+1
		}
		*s = saying{r.serial, *f, p, err == nil}
	}
	return s.Prediction, s.ok
}

// reading remembers how a regressor reads a node: most are the one before.
type reading struct {
	by   *Regressor
	of   schemas.Hardware
	code schemas.NodeCode
}

func (m *reading) node(r *Regressor, h schemas.Hardware) schemas.NodeCode {
	if m.by != r || m.of != h {
		*m = reading{r, h, r.encoder.Node(h)}
	}
	return m.code
}

// Regressors are those in use; one that is not known is nil.
type Regressors struct {
	EpochTime, Startup, Accuracy *Regressor

	named map[string]string // their digests, never changed; nil: not written down yet
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
	r.named = nil
	r.named = r.digests()
	return r, true
}

// digests returns the version of each regressor in use.
func (r Regressors) digests() map[string]string {
	if r.named != nil {
		return r.named
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
func (r *Regressor) foreignSpread(f *schemas.Features, typical float64, m *memory) float64 {
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
