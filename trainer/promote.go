package trainer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"courier/schemas"
)

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// champion returns the champion of a target and the revision of its key; both are zero if there is
// none.
func (t *Trainer) champion(ctx context.Context, target string) (schemas.Champion, uint64, error) {
	c, revision, err := t.bus.Champion(ctx, target)
	if errors.Is(err, schemas.ErrNotFound) {
		return schemas.Champion{}, 0, nil
	}
	return c, revision, err
}

// publishCandidate stores the files of a candidate and publishes that it was trained.
func (t *Trainer) publishCandidate(
	ctx context.Context, c *fittedCandidate, target, reason string, g *schemas.Grounds,
) error {
	for _, file := range [][]byte{c.files.Model, c.files.Manifest} {
		if _, err := t.bus.PutArtifact(ctx, file); err != nil {
			return err
		}
	}
	if err := t.o.step("stored"); err != nil {
		return err
	}
	e := schemas.Trained{
		Target:        target,
		Fitted:        c.fitted,
		Reason:        reason,
		Rival:         g.Rival,
		SinceSequence: g.SinceSequence,
	}
	e.At = time.Now().UTC()
	e.EventID = schemas.TrainedID(target, c.fitted.ManifestDigest, e.At)
	if err := t.publish(ctx, &e); err != nil {
		return err
	}
	t.log.Info("regressor trained",
		"target", target,
		"reason", reason,
		"digest", e.ModelDigest,
		"family", e.Family,
		"examples", e.Examples,
		"settings", e.Settings,
		"median_absolute_ratio", e.MedianAbsoluteRatio,
		"fit_seconds", e.FitSeconds,
	)
	return t.o.step("trained")
}

// promote changes the champion's key, publishes the promotion, and drops files that are no longer
// needed. revision is the key's revision when the promotion was decided.
func (t *Trainer) promote(
	ctx context.Context, target string, f schemas.Fitted, g schemas.Grounds, revision uint64,
) (schemas.Promoted, error) {
	c := schemas.Champion{
		Target:         target,
		ModelDigest:    f.ModelDigest,
		ManifestDigest: f.ManifestDigest,
		FitSeconds:     f.FitSeconds,
		Grounds:        g,
	}
	next, err := t.bus.SetChampion(ctx, c, revision)
	if err != nil {
		return schemas.Promoted{}, err
	}
	if err := t.o.step("promoted"); err != nil {
		return schemas.Promoted{}, err
	}
	e := promoted(c, next, f)
	if err := t.publish(ctx, &e); err != nil {
		return e, err
	}
	t.metrics.promotions.WithLabelValues(target, g.DecidedBy).Inc()
	t.log.Info("regressor promoted", "target", target, "decided_by", e.DecidedBy, "reason",
		e.Reason, "digest", e.ModelDigest, "examples", e.Examples)
	if err := t.o.step("published"); err != nil {
		return e, err
	}
	t.publishCorrections(ctx, c.Target)
	t.prune(ctx, target)
	return e, nil
}

// promoted returns the event of a promotion.
func promoted(c schemas.Champion, revision uint64, f schemas.Fitted) schemas.Promoted {
	e := schemas.Promoted{
		Target:              c.Target,
		Revision:            revision,
		ModelDigest:         c.ModelDigest,
		ManifestDigest:      c.ManifestDigest,
		Family:              f.Family,
		Examples:            f.Examples,
		Settings:            f.Settings,
		MeanSquaredError:    f.MeanSquaredError,
		MedianAbsoluteRatio: f.MedianAbsoluteRatio,
		R2:                  f.R2,
		FitSeconds:          c.FitSeconds,
		Reason:              c.Reason,
		DecidedBy:           c.DecidedBy,
		Rival:               c.Rival,
		SinceSequence:       c.SinceSequence,
		Judgement:           c.Judgement,
	}
	e.EventID, e.At = schemas.PromotedID(c.Target, revision), time.Now().UTC()
	return e
}

// handlePromote promotes a regressor on request.
func (t *Trainer) handlePromote(ctx context.Context, q *schemas.PromoteRequest) (any, error) {
	t.mu.Lock()
	v, err := t.registry.find(q.Target, q.ModelDigest)
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return t.promoteOnRequest(ctx, v, "requested", q.Reason)
}

// handleRollback promotes the previous champion on request.
func (t *Trainer) handleRollback(ctx context.Context, q *schemas.RollbackRequest) (any, error) {
	t.mu.Lock()
	r := t.registry.target(q.Target)
	v := r.versions[r.former()]
	t.mu.Unlock()
	if v == nil {
		return nil, &schemas.Error{
			Code:    schemas.CodeNotFound,
			Field:   "target",
			Message: "no previous champion of " + q.Target + " to roll back to",
		}
	}
	return t.promoteOnRequest(ctx, v, "rolled back", q.Reason)
}

// promoteOnRequest promotes a regressor that loads, unless it is the champion.
func (t *Trainer) promoteOnRequest(
	ctx context.Context, v *schemas.RegressorVersion, reason, why string,
) (any, error) {
	champion, revision, err := t.champion(ctx, v.Target)
	if err != nil {
		return nil, err
	}
	if champion.ModelDigest == v.ModelDigest {
		return nil, &schemas.Error{
			Code:    schemas.CodeConflict,
			Message: fmt.Sprintf("%.12s is in use already", v.ModelDigest),
		}
	}
	if _, err := t.load(ctx, v.ModelDigest, v.ManifestDigest); err != nil {
		return nil, fmt.Errorf("load %.12s for promotion: %w", v.ModelDigest, err)
	}
	if why != "" {
		reason += ": " + why
	}
	g := schemas.Grounds{
		Reason:    reason,
		DecidedBy: schemas.DecidedRequest,
		Rival:     champion.ModelDigest,
	}
	if g.SinceSequence, err = t.bus.LastSequence(ctx, schemas.StreamJob); err != nil {
		return nil, err
	}
	e, err := t.promote(ctx, v.Target, v.Fitted, g, revision)
	return &e, err
}

// prune drops the files of regressors that can no longer be promoted.
func (t *Trainer) prune(ctx context.Context, target string) {
	t.mu.Lock()
	needed, former := t.files(target)
	t.mu.Unlock()
	for _, files := range former {
		dropped := true
		for _, digest := range files {
			if needed[digest] {
				continue
			}
			if err := t.bus.DropArtifact(ctx, digest); err != nil {
				dropped = false
				if ctx.Err() == nil {
					t.log.Warn("files of a former regressor not dropped",
						"target", target, "digest", digest, "error", err)
				}
			}
		}
		if dropped {
			t.mu.Lock()
			t.registry.target(target).pruned[files[0]] = true
			t.mu.Unlock()
		}
	}
}

// files returns the digests of all files that regressors of any target need, and the digests of
// model and manifest of each version of one target whose files may be dropped.
func (t *Trainer) files(target string) (needed map[string]bool, former [][2]string) {
	needed = map[string]bool{}
	for _, all := range t.registry.targets {
		for digest := range all.keptFiles() {
			needed[digest] = true
			if v := all.versions[digest]; v != nil {
				needed[v.ManifestDigest] = true
			}
		}
	}
	r := t.registry.target(target)
	for digest, v := range r.versions {
		if !needed[digest] && !r.pruned[digest] {
			former = append(former, [2]string{digest, v.ManifestDigest})
		}
	}
	return needed, former
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
		if e.Reason == "" {
			e.Reason = "event repeated"
		}
		if err := t.publish(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}
