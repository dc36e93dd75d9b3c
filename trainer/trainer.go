package trainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"courier/bus"
	"courier/regress"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a trainer. Zero fields mean the defaults that stand beside them.
type Options struct {
	Version   string        // of the program, for manifests; "0.0.0"
	NewEpochs int           // fit after that many new epochs; 40
	CoolDown  time.Duration // least time between two fits that nobody asked for; 5 s
	Trees     int           // of each forest; 200
	Depth     int           // of each tree; 8
	Seed      uint64        // of all that is random in a fit
	Progress  func(target string, done, planned int)
}

func (o Options) withDefaults() Options {
	o.Version, o.NewEpochs, o.CoolDown = cmp.Or(o.Version, "0.0.0"), cmp.Or(o.NewEpochs, 40), cmp.Or(o.CoolDown, 5*time.Second)
	o.Trees, o.Depth = cmp.Or(o.Trees, 200), cmp.Or(o.Depth, 8)
	return o
}

// Trainer fits regressors and puts them in use.
type Trainer struct {
	bus     *bus.Bus
	history func() History
	log     *slog.Logger
	metrics *metrics
	o       Options
	wishes  chan wish
	current atomic.Pointer[champion] // of epoch times, that was put in use last
	changes *changes
	mu      sync.Mutex
	drifts  []drifted // oldest first; under mu
}

// champion is a regressor in use.
type champion struct {
	predictor *regress.Predictor
	digest    string // sha256 of its file, in hex
}

// wish is a reason to fit; reply is nil if nobody waits.
type wish struct {
	targets []string
	reason  string
	reply   chan outcome
}

type outcome struct {
	reply schemas.TrainReply
	err   error
}

// New returns a trainer that does not run yet. history returns the database's
// past, or nil while there is none: then all comes from the log.
func New(b *bus.Bus, history func() History, o Options, log *slog.Logger, reg prometheus.Registerer) *Trainer {
	o = o.withDefaults()
	if history == nil {
		history = func() History { return nil }
	}
	return &Trainer{bus: b, history: history, log: log, metrics: newMetrics(reg), o: o, wishes: make(chan wish, 1), changes: newChanges()}
}

// Run works until ctx ends; a fit in hand is given up then.
//
//	NODE stream ──► followNodes: what changed by itself
//	JOB stream ──► follow: count, drift ──┐ wish
//	regressor.train ──► serve ────────────┤
//	                                      ▼
//	                     work: recall → fit → promote ──► fitted
func (t *Trainer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := []func(context.Context) error{t.work, t.follow, t.followNodes, t.serve}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(ctx) }()
	}
	var first error
	for range parts {
		if err := <-ended; err != nil && first == nil {
			first = err
		}
		cancel()
	}
	return first
}

func (t *Trainer) serve(ctx context.Context) error {
	return t.bus.Serve(ctx, bus.Service{Name: "courier-trainer", Version: t.o.Version, Description: "fits regressors and puts them in use", Endpoints: []bus.Endpoint{
		bus.Handle(schemas.SubjectRegressorTrain, func(handling context.Context, q *schemas.TrainRequest) (any, error) {
			targets := schemas.Targets()
			if q.Target != "" {
				targets = []string{q.Target}
			}
			w := wish{targets: targets, reason: "asked for", reply: make(chan outcome, 1)}
			select {
			case t.wishes <- w:
			case <-ctx.Done():
				return nil, &schemas.Error{Code: schemas.CodeUnavailable, Message: "the trainer stops"}
			}
			select {
			case o := <-w.reply:
				return o.reply, o.err
			case <-ctx.Done():
				return nil, &schemas.Error{Code: schemas.CodeUnavailable, Message: "the trainer stops"}
			}
		}),
	}})
}

// work fits whatever is wished for, one at a time.
func (t *Trainer) work(ctx context.Context) error {
	if err := t.repeatPromotions(ctx); err != nil && ctx.Err() == nil {
		t.log.Warn("promotions not compared with their events", "error", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case w := <-t.wishes:
			reply, err := t.train(ctx, w)
			if err != nil && ctx.Err() == nil {
				t.log.Warn("not trained", "reason", w.reason, "error", err)
			}
			if w.reply != nil {
				w.reply <- outcome{reply, err}
			}
		}
	}
}

// train recalls the past once and fits each target.
func (t *Trainer) train(ctx context.Context, w wish) (schemas.TrainReply, error) {
	reply := schemas.TrainReply{Promoted: []schemas.Promoted{}}
	past, err := t.recall(ctx)
	if err != nil {
		return reply, err
	}
	for _, target := range w.targets {
		promoted, err := t.fit(ctx, past, target, w.reason)
		switch {
		case errors.Is(err, regress.ErrTooFewExamples):
			t.metrics.fits.WithLabelValues(target, "too_few").Inc()
			reply.Waiting = append(reply.Waiting, err.Error())
		case err != nil:
			t.metrics.fits.WithLabelValues(target, "error").Inc()
			return reply, err
		default:
			t.metrics.fits.WithLabelValues(target, "promoted").Inc()
			reply.Promoted = append(reply.Promoted, promoted)
		}
	}
	for reason, n := range past.Refused {
		t.metrics.refused.WithLabelValues(reason).Set(float64(n))
	}
	return reply, nil
}

// fit fits one target and puts the regressor in use.
func (t *Trainer) fit(ctx context.Context, past *Past, target, reason string) (schemas.Promoted, error) {
	begin := time.Now()
	_, revision, err := t.bus.Champion(ctx, target)
	if err != nil && !errors.Is(err, schemas.ErrNotFound) {
		return schemas.Promoted{}, err
	}
	examples := past.Examples(target)
	t.metrics.examples.WithLabelValues(target).Set(float64(len(examples)))
	if len(examples) == 0 {
		return schemas.Promoted{}, fmt.Errorf("fit %s: %w: none at all", target, regress.ErrTooFewExamples)
	}
	r, err := Fit(ctx, target, t.recent(target, examples), t.o)
	if errors.Is(err, regress.ErrTooFewExamples) {
		r, err = Fit(ctx, target, examples, t.o) // the past that is no longer true is better than none
	}
	if err != nil {
		return schemas.Promoted{}, err
	}
	t.metrics.seconds.WithLabelValues(target).Observe(time.Since(begin).Seconds())
	return t.promote(ctx, r, target, reason, revision, time.Since(begin))
}

// promote stores the bytes, then changes the key, then says so. What an advisor
// would refuse is refused here first.
func (t *Trainer) promote(ctx context.Context, r *regress.Regressor, target, reason string, revision uint64, took time.Duration) (schemas.Promoted, error) {
	model := r.EncodeModel()
	manifest, err := r.EncodeManifest()
	if err != nil {
		return schemas.Promoted{}, err
	}
	predictor, err := regress.Load(model, manifest)
	if err != nil {
		return schemas.Promoted{}, err
	}
	c := schemas.Champion{Target: target}
	if c.ModelDigest, err = t.bus.PutArtifact(ctx, model); err != nil {
		return schemas.Promoted{}, err
	}
	if c.ManifestDigest, err = t.bus.PutArtifact(ctx, manifest); err != nil {
		return schemas.Promoted{}, err
	}
	next, err := t.bus.SetChampion(ctx, c, revision)
	if err != nil {
		return schemas.Promoted{}, err
	}
	e := promoted(c, next, predictor.Manifest(), reason)
	e.FitSeconds = took.Seconds()
	if _, err := t.bus.Publish(ctx, &e); err != nil {
		return schemas.Promoted{}, err
	}
	t.log.Info("regressor promoted", "target", target, "reason", reason, "examples", e.Examples, "settings", e.Settings,
		"median_absolute_ratio", e.MedianAbsoluteRatio, "fit_seconds", e.FitSeconds)
	if target == schemas.TargetEpochTime {
		t.current.Store(&champion{predictor, c.ModelDigest})
	}
	return e, nil
}

// promoted makes the event of a promotion from the manifest.
func promoted(c schemas.Champion, revision uint64, m *regress.Manifest, reason string) schemas.Promoted {
	e := schemas.Promoted{Target: c.Target, Revision: revision, ModelDigest: c.ModelDigest, ManifestDigest: c.ManifestDigest, Family: m.Family,
		Examples: uint64(m.Examples.Count), Settings: uint64(m.Examples.Settings), Reason: reason}
	if s := m.Scores; s != nil {
		e.MeanSquaredError, e.MedianAbsoluteRatio = known(s.MSE.Value), known(s.MedianAPE.Value)
		if r2 := s.R2.Value; r2 == r2 {
			e.R2 = &r2
		}
	}
	e.EventID, e.At = schemas.PromotedID(c.Target, revision), time.Now().UTC()
	return e
}

// known turns NaN, which JSON cannot hold, into 0.
func known(v float64) float64 {
	if v != v {
		return 0
	}
	return v
}

// repeatPromotions publishes the events of champions whose last event names
// another revision: a trainer died between key and event.
func (t *Trainer) repeatPromotions(ctx context.Context) error {
	last := map[string]uint64{}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	o := bus.FollowOptions{Stream: schemas.StreamRegressor, Subjects: []string{schemas.RegressorSubject("*", schemas.EventPromoted)}, LastPerSubject: true, CaughtUp: stop}
	err := t.bus.Follow(reading, o, func(r bus.Record) error {
		p := r.Event.(*schemas.Promoted)
		last[p.Target] = p.Revision
		return nil
	})
	if err != nil || ctx.Err() != nil {
		return err
	}
	for _, target := range schemas.Targets() {
		c, revision, err := t.bus.Champion(ctx, target)
		if errors.Is(err, schemas.ErrNotFound) || err == nil && last[target] == revision {
			continue
		}
		if err != nil {
			return err
		}
		p, err := t.load(ctx, c)
		if err != nil {
			return err
		}
		e := promoted(c, revision, p.Manifest(), "event repeated")
		if _, err := t.bus.Publish(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trainer) load(ctx context.Context, c schemas.Champion) (*regress.Predictor, error) {
	manifest, err := t.bus.Artifact(ctx, c.ManifestDigest)
	if err != nil {
		return nil, err
	}
	model, err := t.bus.Artifact(ctx, c.ModelDigest)
	if err != nil {
		return nil, err
	}
	return regress.Load(model, manifest)
}
