package trainer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// place promotes a candidate that was fitted on the log up to a sequence, unless it equals the
// champion.
func (t *Trainer) place(
	ctx context.Context, c *fittedCandidate, last uint64, target, by, reason string,
	reply *schemas.TrainReply,
) (outcome string, err error) {
	// The champion may have changed during the fit.
	champion, revision, err := t.champion(ctx, target)
	if err != nil {
		return "", err
	}
	if champion.ModelDigest == c.fitted.ModelDigest &&
		champion.ManifestDigest == c.fitted.ManifestDigest {
		if err := t.storeFiles(ctx, c); err != nil { // they may be lost
			return "", err
		}
		reply.Waiting = append(reply.Waiting,
			target+": the fit equals the champion, which stays in use")
		reply.Promoted = append(reply.Promoted, promoted(champion, revision, c.fitted))
		return "same", nil
	}
	g := schemas.Grounds{
		Reason:        reason + keptModels(c.files.Scores),
		DecidedBy:     by,
		Replaced:      champion.ModelDigest,
		SinceSequence: last,
	}
	if revision == 0 {
		g.DecidedBy = schemas.DecidedFirst
	}
	if err := t.publishCandidate(ctx, c, target, &g); err != nil {
		return "", err
	}
	p, err := t.promote(ctx, target, c.fitted, g, revision)
	if err == nil {
		reply.Promoted = append(reply.Promoted, p)
	}
	return "promoted", err
}

// fittedCandidate is a regressor that is not placed yet.
type fittedCandidate struct {
	files  Files
	fitted schemas.Fitted
}

// storeFiles stores the files of a candidate; files that are stored already stay.
func (t *Trainer) storeFiles(ctx context.Context, c *fittedCandidate) error {
	for _, file := range [][]byte{c.files.Model, c.files.Manifest} {
		if _, err := t.bus.PutArtifact(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// newCandidate loads a regressor as an advisor does, so that a regressor which an advisor would
// refuse is an error here.
func newCandidate(files Files, took time.Duration) (*fittedCandidate, error) {
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		return nil, fmt.Errorf("load the fitted regressor: %w", err)
	}
	c := &fittedCandidate{files: files, fitted: fitted(file.Manifest())}
	c.fitted.ModelDigest, c.fitted.ManifestDigest = digestOf(files.Model), digestOf(files.Manifest)
	c.fitted.FitSeconds = took.Seconds()
	for _, x := range files.Scores {
		runs := c.fitted.ScoredRuns + uint64(x.Runs)
		share := float64(x.Runs) / float64(runs)
		c.fitted.ScoredRuns = runs
		c.fitted.ServedScore += share * (x.Served - c.fitted.ServedScore)
		c.fitted.RefitScore += share * (x.Refit - c.fitted.RefitScore)
	}
	return c, nil
}

// keptModels names the models that stay as they were served, as the end of a reason; "" if there are none.
func keptModels(scores []evidence.RefitScore) string {
	const maxNamed = 3
	kept := slices.DeleteFunc(slices.Clone(scores), func(x evidence.RefitScore) bool { return !x.Kept })
	var text strings.Builder
	for _, x := range kept[:min(len(kept), maxNamed)] {
		fmt.Fprintf(&text,
			"; %s stays as it was: its refit predicts its last %d runs worse, log score %.2f instead of %.2f",
			schemas.ModelLevel(x.Model, x.Dataset), x.Runs, x.Refit, x.Served)
	}
	if more := len(kept) - maxNamed; more > 0 {
		fmt.Fprintf(&text, "; and %d more models", more)
	}
	return text.String()
}

// fitted returns the figures of a fit from its manifest.
func fitted(m *treefile.Manifest) schemas.Fitted {
	f := schemas.Fitted{
		Examples:       uint64(m.Examples.Count),
		Configurations: uint64(m.Examples.Configurations),
	}
	if m.HeldOutError != nil {
		f.HeldOutError = *m.HeldOutError
	}
	return f
}

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
func (t *Trainer) publishCandidate(ctx context.Context, c *fittedCandidate, target string, g *schemas.Grounds) error {
	if err := t.storeFiles(ctx, c); err != nil {
		return err
	}
	if err := t.o.step("stored"); err != nil {
		return err
	}
	e := schemas.Trained{
		Target:        target,
		Fitted:        c.fitted,
		Reason:        g.Reason,
		SinceSequence: g.SinceSequence,
	}
	e.At = time.Now().UTC()
	e.EventID = schemas.TrainedID(target, c.fitted.ManifestDigest, e.At)
	if err := t.publish(ctx, &e); err != nil {
		return err
	}
	t.log.Info("regressor trained",
		"target", target,
		"reason", e.Reason,
		"digest", e.ModelDigest,
		"examples", e.Examples,
		"configurations", e.Configurations,
		"held_out_error", e.HeldOutError,
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
	e := schemas.Promoted{Target: c.Target, Revision: revision, Fitted: f, Grounds: c.Grounds}
	e.ModelDigest, e.ManifestDigest = c.ModelDigest, c.ManifestDigest
	e.FitSeconds = c.FitSeconds
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
		return nil, schemas.Errorf(schemas.CodeNotFound, "target",
			"no previous champion of %s to roll back to", q.Target)
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
		return nil, schemas.Errorf(schemas.CodeConflict, "", "%.12s is in use already", v.ModelDigest)
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
		Replaced:  champion.ModelDigest,
	}
	if g.SinceSequence, err = t.bus.LastSequence(ctx, schemas.StreamJob); err != nil {
		return nil, err
	}
	e, err := t.promote(ctx, v.Target, v.Fitted, g, revision)
	return &e, err
}
