package trainer

import (
	"context"
	"sync"

	"courier/bus"
	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// activeRegressors are the loaded champion of a target and the regressor compared with it.
type activeRegressors struct {
	champion   *loadedRegressor // nil if there is none
	challenger *loadedRegressor // nil if there is none
	pairing    pairing          // valid if there is a challenger
}

// loadedRegressor is a regressor loaded from its files.
type loadedRegressor struct {
	predictor *regress.Predictor
	digest    string // of its model

	readState sync.Once
	state     *evidence.ServedHierarchy
}

// evidence returns the state of a regressor of family hierarchy, ready for Correct; nil for other
// families.
func (l *loadedRegressor) evidence() *evidence.ServedHierarchy {
	if l == nil {
		return nil
	}
	l.readState.Do(func() {
		if s := evidenceOf(l.predictor.Manifest()); s != nil {
			l.state, _ = s.Follow(nil) // an advisor refuses what cannot be compiled
		}
	})
	return l.state
}

func (l *loadedRegressor) predictorOrNil() *regress.Predictor {
	if l == nil {
		return nil
	}
	return l.predictor
}

// followRegistry applies the events of regressors. It closes replayed when the registry is up to
// date and every promotion has its event.
func (t *Trainer) followRegistry(ctx context.Context, replayed chan struct{}) error {
	live := false
	o := bus.FollowOptions{Stream: schemas.StreamRegressor, CaughtUp: func() {
		live = true
		if err := t.repeatPromotions(ctx); err != nil && ctx.Err() == nil {
			t.log.Warn("missing promotion events not published", "error", err)
		}
		t.loadActive(ctx)
		for _, target := range schemas.Targets() {
			t.publishCorrections(ctx, target) // the previous trainer may have stopped before
		}
		close(replayed)
	}}
	return t.bus.Follow(ctx, o, func(r bus.Record) error {
		t.mu.Lock()
		t.registry.Apply(r.Event)
		t.mu.Unlock()
		if live {
			t.loadActive(ctx)
		}
		return nil
	})
}

// publish publishes an event of a regressor and applies it immediately; the copy from the stream is
// then a duplicate.
func (t *Trainer) publish(ctx context.Context, e schemas.Event) error {
	if _, err := t.bus.Publish(ctx, e); err != nil {
		return err
	}
	t.mu.Lock()
	t.registry.Apply(e)
	t.mu.Unlock()
	t.loadActive(ctx)
	return nil
}

// loadActive loads the champions and challengers of the registry.
func (t *Trainer) loadActive(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, used := map[string]activeRegressors{}, map[string]*loadedRegressor{}
	load := func(v *schemas.RegressorVersion) *loadedRegressor {
		l := t.loadedRegressors[v.ManifestDigest]
		if l == nil {
			p, err := t.load(ctx, schemas.Champion{
				ModelDigest:    v.ModelDigest,
				ManifestDigest: v.ManifestDigest,
			})
			if err != nil {
				if ctx.Err() == nil {
					t.log.Warn("regressor not loaded",
						"target", v.Target, "digest", v.ModelDigest, "error", err)
				}
				return nil
			}
			l = &loadedRegressor{predictor: p, digest: v.ModelDigest}
		}
		used[v.ManifestDigest] = l
		return l
	}
	for target, r := range t.registry.targets {
		var s activeRegressors
		if v := r.versions[r.champion()]; v != nil {
			s.champion = load(v)
		}
		if c, found := r.pairing(); found && s.champion != nil {
			s.challenger, s.pairing = load(c.challenger), c
		}
		all[target] = s
	}
	t.loadedRegressors = used
	t.active.Store(&all)
}

// load loads a regressor from its files.
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
