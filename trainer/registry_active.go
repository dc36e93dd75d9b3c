package trainer

import (
	"context"
	"sync"

	"courier/bus"
	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// loadedChampion is a champion loaded from its files.
type loadedChampion struct {
	manifest       *treefile.Manifest
	modelDigest    string
	manifestDigest string

	readState sync.Once
	state     *evidence.ServedHierarchy
}

// evidence returns the state of the champion, ready for Correct; nil without a champion.
func (l *loadedChampion) evidence() *evidence.ServedHierarchy {
	if l == nil {
		return nil
	}
	l.readState.Do(func() {
		if s := stateOf(l.manifest); s != nil {
			l.state, _ = s.Follow(nil) // an advisor refuses what cannot be compiled
		}
	})
	return l.state
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
		t.loadChampions(ctx)
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
			t.loadChampions(ctx)
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
	t.loadChampions(ctx)
	return nil
}

// loadChampions loads the champions of the registry that are not loaded yet.
func (t *Trainer) loadChampions(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, all := *t.champions.Load(), map[string]*loadedChampion{}
	for target, r := range t.registry.targets {
		v := r.versions[r.champion()]
		if v == nil {
			continue
		}
		if l := before[target]; l != nil && l.manifestDigest == v.ManifestDigest {
			all[target] = l
			continue
		}
		m, err := t.load(ctx, v.ModelDigest, v.ManifestDigest)
		if err != nil {
			if ctx.Err() == nil {
				t.log.Warn("regressor not loaded",
					"target", v.Target, "digest", v.ModelDigest, "error", err)
			}
			continue
		}
		all[target] = &loadedChampion{
			manifest: m, modelDigest: v.ModelDigest, manifestDigest: v.ManifestDigest,
		}
	}
	t.champions.Store(&all)
}

// load loads a regressor from its files and returns its manifest.
func (t *Trainer) load(ctx context.Context, model, manifest string) (*treefile.Manifest, error) {
	var files Files
	var err error
	if files.Manifest, err = t.bus.Artifact(ctx, manifest); err != nil {
		return nil, err
	}
	if files.Model, err = t.bus.Artifact(ctx, model); err != nil {
		return nil, err
	}
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		return nil, err
	}
	return file.Manifest(), nil
}
