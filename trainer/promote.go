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

// champion is what is in use for a target, and the revision of its key; both are zero
// while nothing is.
func (t *Trainer) champion(ctx context.Context, target string) (schemas.Champion, uint64, error) {
	c, revision, err := t.bus.Champion(ctx, target)
	if errors.Is(err, schemas.ErrNotFound) {
		return schemas.Champion{}, 0, nil
	}
	return c, revision, err
}

// present stores a candidate's files and says that it was trained. A challenger that
// was before it is dismissed.
func (t *Trainer) present(
	ctx context.Context, c *candidate, target, reason string, g *schemas.Grounds,
) (schemas.Trained, error) {
	if err := t.dismiss(ctx, target); err != nil {
		return schemas.Trained{}, err
	}
	for _, file := range [][]byte{c.model, c.manifest} {
		if _, err := t.bus.PutArtifact(ctx, file); err != nil {
			return schemas.Trained{}, err
		}
	}
	if err := t.o.step("stored"); err != nil {
		return schemas.Trained{}, err
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
	if err := t.tell(ctx, &e); err != nil {
		return e, err
	}
	t.log.Info("regressor trained", "target", target, "reason", reason, "digest", e.ModelDigest, "family", e.Family, "examples", e.Examples, "settings", e.Settings,
		"median_absolute_ratio", e.MedianAbsoluteRatio, "fit_seconds", e.FitSeconds)
	if err := t.o.step("trained"); err != nil {
		return e, err
	}
	t.prune(ctx, target) // the challenger before it is not needed any more
	return e, nil
}

// promote changes the champion's key, then says so, then drops the files that
// nobody needs any more. The revision is that of the key when it was decided.
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
	if err := t.tell(ctx, &e); err != nil {
		return e, err
	}
	t.metrics.promotions.WithLabelValues(target, g.DecidedBy).Inc()
	t.log.Info("regressor promoted", "target", target, "decided_by", e.DecidedBy, "reason",
		e.Reason, "digest", e.ModelDigest, "examples", e.Examples)
	if err := t.o.step("told"); err != nil {
		return e, err
	}
	t.announce(ctx, c.Target)
	t.prune(ctx, target)
	return e, nil
}

// promoted makes the event of a promotion.
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

// reject says that a regressor is not taken into use.
func (t *Trainer) reject(
	ctx context.Context, target, digest, rival, reason string, j schemas.Judgement,
) (schemas.Rejected, error) {
	e := schemas.Rejected{
		Target:      target,
		ModelDigest: digest,
		Reason:      reason,
		Rival:       rival,
		Judgement:   j,
	}
	e.EventID, e.At = schemas.RejectedID(target, digest), time.Now().UTC()
	if err := t.tell(ctx, &e); err != nil {
		return e, err
	}
	t.log.Info("regressor rejected", "target", target, "digest", digest, "reason", reason)
	return e, t.o.step("rejected")
}

// decide carries out what a trial came to. A champion or rival that was changed
// meanwhile makes it void.
func (t *Trainer) decide(
	ctx context.Context, target string, c contest, r ruling, j schemas.Judgement, reason string,
) error {
	t.mu.Lock()
	now, found := t.life.of(target).contest()
	t.mu.Unlock()
	if !found || now.rival.ModelDigest != c.rival.ModelDigest ||
		now.champion.ModelDigest != c.champion.ModelDigest {
		return nil // others stand against each other by now
	}
	if r == noBetter {
		if c.back {
			return nil // the champion before is not needed
		}
		_, err := t.reject(ctx, target, c.rival.ModelDigest, c.champion.ModelDigest, reason, j)
		return err
	}
	champion, revision, err := t.bus.Champion(ctx, target)
	if err != nil {
		return err
	}
	if champion.ModelDigest != c.champion.ModelDigest {
		return &schemas.Error{
			Code:    schemas.CodeConflict,
			Message: "the champion of " + target + " was changed meanwhile",
		}
	}
	g := schemas.Grounds{
		Reason:    reason,
		DecidedBy: schemas.DecidedTest,
		Rival:     champion.ModelDigest,
		Judgement: j,
	}
	if c.back {
		g.DecidedBy = schemas.DecidedRollback
	}
	if g.SinceSequence, err = t.bus.LastSequence(ctx, schemas.StreamJob); err != nil {
		return err
	}
	_, err = t.promote(ctx, target, c.rival.Fitted, g, revision)
	return err
}

// promoteAsked puts a regressor in use that somebody names.
func (t *Trainer) promoteAsked(ctx context.Context, q *schemas.PromoteRequest) (any, error) {
	t.mu.Lock()
	v, err := t.life.find(q.Target, q.ModelDigest)
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return t.use(ctx, v, "asked for", q.Reason)
}

// rollbackAsked puts the champion before in use again.
func (t *Trainer) rollbackAsked(ctx context.Context, q *schemas.RollbackRequest) (any, error) {
	t.mu.Lock()
	r := t.life.of(q.Target)
	v := r.versions[r.former()]
	t.mu.Unlock()
	if v == nil {
		return nil, &schemas.Error{
			Code:    schemas.CodeNotFound,
			Field:   "target",
			Message: "nothing was in use for " + q.Target + " before the present regressor",
		}
	}
	return t.use(ctx, v, "rolled back", q.Reason)
}

// use puts a regressor in use because somebody asked for it.
func (t *Trainer) use(
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
	if _, err := t.load(ctx, schemas.Champion{
		ModelDigest:    v.ModelDigest,
		ManifestDigest: v.ManifestDigest,
	}); err != nil {
		return nil, fmt.Errorf("load %.12s before it is used: %w", v.ModelDigest, err)
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

// prune drops the files that no regressor needs that could be promoted.
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
					t.log.Warn("files of a former regressor not dropped", "target", target,
						"digest", digest, "error", err)
				}
			}
		}
		if dropped {
			t.mu.Lock()
			t.life.of(target).pruned[files[0]] = true
			t.mu.Unlock()
		}
	}
}

// files returns the digests of the files that regressors of any target need, and those of model
// and manifest of each version of one target whose files may be dropped.
func (t *Trainer) files(target string) (needed map[string]bool, former [][2]string) {
	needed = map[string]bool{}
	for _, all := range t.life.targets {
		for digest := range all.keeps() {
			needed[digest] = true
			if v := all.versions[digest]; v != nil {
				needed[v.ManifestDigest] = true
			}
		}
	}
	r := t.life.of(target)
	for digest, v := range r.versions {
		if !needed[digest] && !r.pruned[digest] {
			former = append(former, [2]string{digest, v.ManifestDigest})
		}
	}
	return needed, former
}

// repeatPromotions publishes the events of champions whose last event names
// another revision: a trainer died between key and event.
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
		r := t.life.of(target)
		told := r.champion() != "" && r.versions[r.champion()].Revision == revision
		t.mu.Unlock()
		if told {
			continue
		}
		p, err := t.load(ctx, c)
		if err != nil {
			return err
		}
		e := promoted(c, revision, fitted(p.Manifest()))
		if e.Reason == "" {
			e.Reason = "event repeated"
		}
		if err := t.tell(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}
