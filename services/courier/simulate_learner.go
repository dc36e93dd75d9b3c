package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"courier/regress"
	"courier/schemas"
	"courier/trainer"
)

// learner fits regressors on the events that it was told, as the trainer does.
type learner struct {
	ctx      context.Context // of the simulation: a rule's calls carry none
	seed     uint64
	refit    int // finished jobs between two fits; 0: one fit, at the first submission
	past     *trainer.Past
	finished int // since the last fit

	epochTime, startup, accuracy *learnt
}

func newLearner(ctx context.Context, seed uint64, refit int) *learner {
	return &learner{ctx: ctx, seed: seed, refit: refit, past: trainer.NewPast()}
}

// add tells the next event.
func (l *learner) add(e schemas.Event, sequence uint64) {
	if l.epochTime != nil && l.refit == 0 {
		return // nothing will be learnt from it
	}
	l.past.Add(e, sequence)
	if ended, ok := e.(*schemas.Ended); ok && ended.Outcome == schemas.EventFinished {
		l.finished++
	}
}

// learn fits both targets if it is time, and reports whether it did.
func (l *learner) learn() (bool, error) {
	if l.epochTime != nil && (l.refit == 0 || l.finished < l.refit) {
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
	l.epochTime, l.startup, l.accuracy, l.finished = epochTime, startup, accuracy, 0
	return true, nil
}

// fit fits as the trainer does, and loads the regressor from its file as the
// advisor would.
func (l *learner) fit(target string) (*learnt, error) {
	r, err := trainer.Fit(l.ctx, target, l.past.Examples(target), trainer.Options{Seed: l.seed})
	if err != nil {
		return nil, err
	}
	p, digest, err := served(r)
	if err != nil {
		return nil, err
	}
	return newLearnt(p, digest)
}

// served loads a fitted regressor from its file, as the advisor would, and
// returns the file's sha256 in hex.
func served(r *regress.Regressor) (*regress.Predictor, string, error) {
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

// learnt is a regressor in the hand of a rule.
type learnt struct {
	predictor *regress.Predictor
	digest    string // sha256 of its file, in hex
	encoder   *schemas.Encoder
	row       []float64
}

func newLearnt(p *regress.Predictor, digest string) (*learnt, error) {
	inputs := make([]schemas.EncoderInput, len(p.Features()))
	for i, f := range p.Manifest().Features {
		inputs[i] = schemas.EncoderInput{
			Name: f.Name, Levels: f.Levels, Min: f.Min, Max: f.Max, Typical: f.Typical,
		}
	}
	encoder, err := schemas.ReadEncoder(inputs)
	return &learnt{predictor: p, digest: digest, encoder: encoder, row: make([]float64, len(inputs))}, err
}

// point is the prediction for the level of a model, a node and features, in the unit of the
// target.
func (l *learnt) point(level string, on schemas.Hardware, f schemas.Features) (float64, error) {
	code, known := l.encoder.Model(level)
	if !known {
		return 0, fmt.Errorf("the regressor has learnt nothing of model %s", level)
	}
	f.ModelCode, f.Node = code, l.encoder.Node(on)
	l.encoder.Fill(l.row, &f)
	p, err := l.predictor.Predict(l.row)
	return p.Value, err
}
