package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"courier/regress"
	"courier/schemas"
	"courier/trainer"
)

// Learner fits regressors on the events of a log, as the trainer does.
type Learner struct {
	ctx          context.Context // of the simulation; the calls of a rule carry none
	method       trainer.FitMethod
	seed         uint64
	refit        int // finished jobs between two fits; 0: one fit, at the first submission
	past         *trainer.Past
	finishedJobs int // number of finished jobs since the last fit

	epochTime, startup, accuracy *PointRegressor
}

// NewLearner returns a learner that fits by a method, and again after refit finished jobs; 0 fits
// once, at the first submission.
func NewLearner(ctx context.Context, method trainer.FitMethod, seed uint64, refit int) *Learner {
	return &Learner{ctx: ctx, method: method, seed: seed, refit: refit, past: trainer.NewPast()}
}

// add applies the next event.
func (l *Learner) add(e schemas.Event, sequence uint64) {
	if l.epochTime != nil && l.refit == 0 {
		return // There will be no further fit.
	}
	l.past.Add(e, sequence)
	if ended, ok := e.(*schemas.Ended); ok && ended.Outcome == schemas.EventFinished {
		l.finishedJobs++
	}
}

// learn fits all targets if a fit is due, and reports whether it did.
func (l *Learner) learn() (bool, error) {
	if l.epochTime != nil && (l.refit == 0 || l.finishedJobs < l.refit) {
		return false, nil
	}

	epochTime, err := l.fit(schemas.TargetEpochTime)
	if err != nil {
		return false, err
	}
	startup, err := l.fit(schemas.TargetStartup)
	if err != nil {
		return false, err
	}
	accuracy, err := l.fit(schemas.TargetAccuracy)
	if err != nil {
		return false, err
	}

	l.epochTime, l.startup, l.accuracy, l.finishedJobs = epochTime, startup, accuracy, 0
	return true, nil
}

// fit fits a target as the trainer does, and loads the regressor as the advisor would.
func (l *Learner) fit(target string) (*PointRegressor, error) {
	r, err := trainer.Fit(l.ctx, target, l.past.Examples(target), trainer.Options{
		Method: l.method,
		Seed:   l.seed,
	})
	if err != nil {
		return nil, err
	}
	p, digest, err := Reload(r)
	if err != nil {
		return nil, err
	}
	return NewPointRegressor(p, digest)
}

// Reload encodes a fitted regressor and loads it from its file, as the advisor does. It also
// returns the SHA-256 of the file in hex.
func Reload(r *regress.Regressor) (*regress.Predictor, string, error) {
	model := r.EncodeModel()
	manifest, err := r.EncodeManifest()
	if err != nil {
		return nil, "", err
	}
	p, err := regress.Load(model, manifest)
	if err != nil {
		return nil, "", fmt.Errorf("load a fitted regressor: %w", err)
	}
	sum := sha256.Sum256(model)
	return p, hex.EncodeToString(sum[:]), nil
}

// PointRegressor predicts points without bounds. It is not safe for concurrent use.
type PointRegressor struct {
	predictor *regress.Predictor
	digest    string // SHA-256 of its file, in hex
	encoder   *schemas.Encoder
	row       []float64
}

// NewPointRegressor returns a regressor that predicts points; digest is the SHA-256 of its file.
func NewPointRegressor(p *regress.Predictor, digest string) (*PointRegressor, error) {
	inputs := make([]schemas.EncoderInput, len(p.Features()))
	for i, f := range p.Manifest().Features {
		inputs[i] = schemas.EncoderInput{
			Name:    f.Name,
			Levels:  f.Levels,
			Min:     f.Min,
			Max:     f.Max,
			Typical: f.Typical,
		}
	}
	encoder, err := schemas.ReadEncoder(inputs)
	return &PointRegressor{
		predictor: p,
		digest:    digest,
		encoder:   encoder,
		row:       make([]float64, len(inputs)),
	}, err
}

// Knows reports whether the regressor was fitted on examples of a model level.
func (r *PointRegressor) Knows(level string) bool {
	_, known := r.encoder.Model(level)
	return known
}

// Predict returns the prediction for a model level on a node, in the unit of the target.
func (r *PointRegressor) Predict(
	level string, on schemas.Hardware, f schemas.Features,
) (float64, error) {
	code, known := r.encoder.Model(level)
	if !known {
		return 0, fmt.Errorf("the regressor has no examples of model %s", level)
	}
	f.ModelCode, f.Node = code, r.encoder.Node(on)
	r.encoder.Fill(r.row, &f)
	p, err := r.predictor.Predict(r.row)
	return p.Value, err
}
