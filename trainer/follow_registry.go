package trainer

import (
	"cmp"
	"context"

	"courier/bus"
	"courier/schemas"
)

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

// repeatPromotions publishes the missing promotions of champions whose last event has another
// revision: the trainer stopped between setting the key and publishing.
func (t *Trainer) repeatPromotions(ctx context.Context) error {
	for _, target := range schemas.Targets() {
		c, revision, err := t.champion(ctx, target)
		if err != nil {
			return err
		}
		if revision == 0 {
			continue
		}
		t.mu.Lock()
		r := t.registry.target(target)
		isPublished := r.champion() != "" && r.versions[r.champion()].Revision == revision
		t.mu.Unlock()
		if isPublished {
			continue
		}
		m, err := t.load(ctx, c.ModelDigest, c.ManifestDigest)
		if err != nil {
			return err
		}
		e := promoted(c, revision, fitted(m))
		e.Reason = cmp.Or(e.Reason, "event repeated")
		if err := t.publish(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}
