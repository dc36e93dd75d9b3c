package advisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/regress"
	"courier/schemas"
)

// followRegressors takes every champion into use that passes all checks.
func (a *Advisor) followRegressors(ctx context.Context) error {
	return a.bus.WatchChampions(ctx, func(c schemas.Champion, revision uint64) {
		r, err := a.load(ctx, c)
		if err != nil {
			a.metrics.regressors.WithLabelValues(c.Target, "refused").Inc()
			a.log.Error("regressor refused, the one before stays", "target", c.Target, "digest",
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

// A champion is named once its files are stored, but in a cluster of NATS the server
// that is asked may not have them yet: for so long it is asked again.
const (
	fetchPatience = 10 * time.Second
	fetchPause    = 200 * time.Millisecond
)

// fetch reads a file of a champion. It asks again while NATS is away, until ctx ends.
func (a *Advisor) fetch(ctx context.Context, digest string) ([]byte, error) {
	begin, tick := time.Now(), time.NewTicker(fetchPause)
	defer tick.Stop()
	for {
		data, err := a.bus.Artifact(ctx, digest)
		late := errors.Is(err, schemas.ErrNotFound) && time.Since(begin) < fetchPatience
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

// load fetches a champion's files and checks all that can be checked. Bytes that
// cannot be fetched because NATS is away are tried again until ctx ends.
func (a *Advisor) load(ctx context.Context, c schemas.Champion) (*Regressor, error) {
	manifest, err := a.fetch(ctx, c.ManifestDigest)
	if err != nil {
		return nil, err
	}
	model, err := a.fetch(ctx, c.ModelDigest)
	if err != nil {
		return nil, err
	}
	p, err := regress.Load(model, manifest)
	if err != nil {
		return nil, err
	}
	if got := p.Manifest().Target; got != c.Target {
		return nil, fmt.Errorf("it predicts %q, not %q", got, c.Target)
	}
	return NewRegressor(p, c.ModelDigest)
}
