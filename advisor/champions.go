package advisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/advisor/decide"
	"courier/bus"
	"courier/schemas"
)

// followRegressors loads every new champion and uses it if it passes all checks.
func (a *Advisor) followRegressors(ctx context.Context) error {
	return a.bus.WatchChampions(ctx, func(c schemas.Champion, revision uint64) {
		r, err := a.load(ctx, c)
		if ctx.Err() != nil {
			return // the advisor stops: the files were not read, which says nothing about them
		}
		if err != nil {
			a.metrics.regressors.WithLabelValues(c.Target, "refused").Inc()
			a.log.Error("champion rejected, keeping the previous one", "target", c.Target, "digest",
				c.ModelDigest, "error", err)
			e := &schemas.Rejected{
				Target:      c.Target,
				ModelDigest: c.ModelDigest,
				Reason:      err.Error(),
			}
			e.EventID, e.At = schemas.RejectedID(c.Target, c.ModelDigest), a.now()
			a.publish(ctx, e)
			return
		}
		next, known := a.regressors.Load().With(c.Target, r)
		if !known {
			return
		}
		a.regressors.Store(&next)
		a.metrics.regressors.WithLabelValues(c.Target, "loaded").Inc()
		a.metrics.loaded.WithLabelValues(c.Target).Set(float64(r.Examples))
		a.log.Info("regressor in use", "target", c.Target, "revision", revision, "digest",
			c.ModelDigest, "examples", r.Examples)
	})
}

// A champion is announced after its files are stored, but another server of a NATS cluster may not
// have them yet. Fetching is retried for fetchTimeout.
const (
	fetchTimeout = 10 * time.Second
	fetchRetry   = 200 * time.Millisecond
)

// fetch reads a file of a champion. While NATS is unavailable it retries until ctx ends.
func (a *Advisor) fetch(ctx context.Context, digest string) ([]byte, error) {
	for begin := time.Now(); ; {
		data, err := a.bus.Artifact(ctx, digest)
		late := errors.Is(err, schemas.ErrNotFound) && time.Since(begin) < fetchTimeout
		if !late && !errors.Is(err, schemas.ErrUnavailable) {
			return data, err
		}
		if bus.Sleep(ctx, fetchRetry) != nil {
			return nil, err
		}
	}
}

// load fetches and checks the files of a champion.
func (a *Advisor) load(ctx context.Context, c schemas.Champion) (*decide.Regressor, error) {
	manifest, err := a.fetch(ctx, c.ManifestDigest)
	if err != nil {
		return nil, err
	}
	model, err := a.fetch(ctx, c.ModelDigest)
	if err != nil {
		return nil, err
	}
	r, err := decide.LoadRegressor(model, manifest)
	if err != nil {
		return nil, err
	}
	if r.Target != c.Target {
		return nil, fmt.Errorf("regressor has target %q, want %q", r.Target, c.Target)
	}
	return r, nil
}
