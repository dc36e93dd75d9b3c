package trainer

import (
	"context"
	"sync"

	"courier/bus"
	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// standing is who predicts a target, and who would like to.
type standing struct {
	champion *loaded // nil if there is none
	rival    *loaded // nil if there is none
	contest  contest // if there is a rival
}

// loaded is a regressor that was read from its files.
type loaded struct {
	predictor *regress.Predictor
	digest    string // of its model

	read  sync.Once
	state *evidence.State
}

// evidence returns the state of a regressor of that family, ready to be followed; nil for others.
func (l *loaded) evidence() *evidence.State {
	if l == nil {
		return nil
	}
	l.read.Do(func() {
		if s := evidenceOf(l.predictor.Manifest()); s != nil {
			l.state, _ = s.Follow(nil) // an advisor refuses what cannot be compiled
		}
	})
	return l.state
}

func (l *loaded) of() *regress.Predictor {
	if l == nil {
		return nil
	}
	return l.predictor
}

// followLife folds what becomes of the regressors, and closes known when it is up
// to date and no promotion lacks its event.
func (t *Trainer) followLife(ctx context.Context, known chan struct{}) error {
	live := false
	o := bus.FollowOptions{Stream: schemas.StreamRegressor, CaughtUp: func() {
		live = true
		if err := t.repeatPromotions(ctx); err != nil && ctx.Err() == nil {
			t.log.Warn("promotions not compared with their events", "error", err)
		}
		t.renew(ctx)
		for _, target := range schemas.Targets() {
			t.announce(ctx, target) // a trainer died before it did
		}
		close(known)
	}}
	return t.bus.Follow(ctx, o, func(r bus.Record) error {
		t.mu.Lock()
		t.life.Apply(r.Event)
		t.mu.Unlock()
		if live {
			t.renew(ctx)
		}
		return nil
	})
}

// tell publishes an event of a regressor, and takes it as seen before it comes back.
func (t *Trainer) tell(ctx context.Context, e schemas.Event) error {
	if _, err := t.bus.Publish(ctx, e); err != nil {
		return err
	}
	t.mu.Lock()
	t.life.Apply(e)
	t.mu.Unlock()
	t.renew(ctx)
	return nil
}

// renew loads who predicts and who would like to.
func (t *Trainer) renew(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, used := map[string]standing{}, map[string]*loaded{}
	load := func(v *schemas.RegressorVersion) *loaded {
		l := t.loaded[v.ManifestDigest]
		if l == nil {
			p, err := t.load(ctx, schemas.Champion{ModelDigest: v.ModelDigest, ManifestDigest: v.ManifestDigest})
			if err != nil {
				if ctx.Err() == nil {
					t.log.Warn("regressor cannot be watched", "target", v.Target, "digest", v.ModelDigest, "error", err)
				}
				return nil
			}
			l = &loaded{predictor: p, digest: v.ModelDigest}
		}
		used[v.ManifestDigest] = l
		return l
	}
	for target, r := range t.life.targets {
		var s standing
		if v := r.versions[r.champion()]; v != nil {
			s.champion = load(v)
		}
		if c, found := r.contest(); found && s.champion != nil {
			s.rival, s.contest = load(c.rival), c
		}
		all[target] = s
	}
	t.loaded = used
	t.standings.Store(&all)
}

// load reads a regressor from its files.
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
