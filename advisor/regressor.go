package advisor

import (
	"courier/regress"
	"courier/schemas"
	"fmt"
)

// Regressor is a regressor that may answer, with the columns that it wants.
type Regressor struct {
	Digest    string // sha256 of its file
	predictor *regress.Predictor
	columns   []schemas.Column
	model     int // index of the column that names the model
}

// NewRegressor takes a loaded predictor into use. A feature that this version
// does not know, or none that names the model, is an error.
func NewRegressor(p *regress.Predictor, digest string) (*Regressor, error) {
	features := p.Features()
	names := make([]string, len(features))
	for i, f := range features {
		names[i] = f.Name
	}
	columns, err := schemas.ParseColumns(names)
	if err != nil {
		return nil, err
	}
	if len(columns) > maxColumns {
		return nil, fmt.Errorf("%d features are more than %d", len(columns), maxColumns)
	}
	r := &Regressor{Digest: digest, predictor: p, columns: columns, model: -1}
	for i, c := range columns {
		if c == schemas.ColumnModel {
			r.model = i
		}
	}
	if r.model < 0 {
		return nil, fmt.Errorf("no feature %q", schemas.ColumnModel)
	}
	if m := p.Manifest(); m.Target != schemas.TargetAccuracy && m.Transform != regress.Log {
		return nil, fmt.Errorf("%s is fitted on %q, want %q: bounds multiply times", m.Target, m.Transform, regress.Log)
	}
	return r, nil
}

// maxColumns bounds a row, so that one serves all regressors.
const maxColumns = 16

// knows returns the code of a model, and whether examples of it were learnt from.
func (r *Regressor) knows(model string) (float64, bool) {
	if r == nil {
		return 0, false
	}
	return r.predictor.Features()[r.model].Level(model)
}

// residuals returns the sorted residuals by which predictions for a model are
// judged: its own, if it has a table, else those of all.
func (r *Regressor) residuals(modelCode float64) []float64 {
	c := &r.predictor.Manifest().Calibration
	if l := c.Levels; l != nil && l.Feature == r.model {
		if i := int(modelCode); i >= 0 && i < len(l.Tables) && l.Tables[i].Count > 0 {
			return l.Tables[i].Residuals
		}
	}
	return c.Residuals
}

// predict returns the prediction for features whose model code is set already.
// row is room for maxColumns numbers.
func (r *Regressor) predict(f *schemas.Features, row []float64) (regress.Prediction, bool) {
	row = row[:len(r.columns)]
	f.Fill(row, r.columns)
	p, err := r.predictor.Predict(row)
	return p, err == nil
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
