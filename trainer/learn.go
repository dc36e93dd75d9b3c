package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"courier/regress"
	"courier/schemas"
)

// train fits each target of a request on the current past.
func (t *Trainer) train(ctx context.Context, request fitRequest) (schemas.TrainReply, error) {
	reply := schemas.TrainReply{Promoted: []schemas.Promoted{}}
	last, err := t.bus.LastSequence(ctx, schemas.StreamJob)
	if err != nil {
		return reply, err
	}
	for _, target := range request.targets {
		outcome, err := t.learn(ctx, last, target, &request, &reply)
		switch {
		case errors.Is(err, regress.ErrTooFewExamples):
			t.metrics.fits.WithLabelValues(target, "too_few").Inc()
			reply.Waiting = append(reply.Waiting, err.Error())
		case err != nil:
			t.metrics.fits.WithLabelValues(target, "error").Inc()
			return reply, err
		default:
			t.metrics.fits.WithLabelValues(target, outcome).Inc()
		}
	}
	return reply, nil
}

// learn fits a target on the log at least up to a sequence, unless the request is outdated, and
// places the candidate: it is promoted, becomes a challenger, or is rejected. outcome is a metric
// label.
func (t *Trainer) learn(
	ctx context.Context, last uint64, target string, request *fitRequest, reply *schemas.TrainReply,
) (outcome string, err error) {
	_, revision, err := t.champion(ctx, target)
	if err != nil {
		return "", err
	}
	if revision > 0 && request.reason == firstReason { // an earlier request has fitted it
		if t.newEpochs.Load() < int64(t.o.NewEpochs) {
			return "late", nil
		}
		request.reason = enoughReason
	}
	var l exampleSet
	var c *fittedCandidate
	err = t.computeWhileServing(ctx, func() (err error) {
		if l, err = t.recall(ctx, target, last); err != nil {
			return err
		}
		for reason, n := range l.skipped {
			t.metrics.skipped.WithLabelValues(reason).Set(float64(n))
		}
		c, err = t.fit(ctx, l.examples, target, request.reason)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := t.o.step("fitted"); err != nil {
		return "", err
	}
	return t.placeCandidate(ctx, c, l.last, target, request, reply)
}

// placeCandidate decides what happens to a candidate that was fitted on the log up to a sequence:
// promotion, a trial as challenger, or rejection.
func (t *Trainer) placeCandidate(
	ctx context.Context, c *fittedCandidate, last uint64, target string, request *fitRequest,
	reply *schemas.TrainReply,
) (outcome string, err error) {
	// The champion may have changed during the fit.
	champion, revision, err := t.champion(ctx, target)
	if err != nil {
		return "", err
	}
	if champion.ModelDigest == c.fitted.ModelDigest &&
		champion.ManifestDigest == c.fitted.ManifestDigest {
		reply.Waiting = append(reply.Waiting,
			target+": the fit equals the champion, which stays in use")
		if request.promoteImmediately {
			reply.Promoted = append(reply.Promoted, promoted(champion, revision, c.fitted))
		}
		return "same", nil
	}
	g := schemas.Grounds{Rival: champion.ModelDigest, SinceSequence: last, Reason: request.reason}
	rejected := ""
	switch {
	case revision == 0:
		g.DecidedBy = schemas.DecidedFirst
		if c.predictor.Manifest().Family != regress.FamilyHierarchy {
			rejected = worseThanMean(c.fitted.MeanSquaredError, c.examples)
		}
	case request.promoteImmediately:
		g.DecidedBy = schemas.DecidedRequest
	case c.predictor.Manifest().Family == regress.FamilyHierarchy:
		// The candidate was fitted by the same method on more runs, and drift is corrected.
		g.DecidedBy = schemas.DecidedGrowth
	default:
		grown, err := t.hasGrown(target, c, &g)
		if err != nil {
			return "", err
		}
		if !grown && !request.isManual && t.isTrialPending(target, isDrift(request.reason)) {
			reply.Waiting = append(reply.Waiting,
				target+": another challenger is still compared with the champion")
			return "waiting", nil
		}
	}
	e, err := t.publishCandidate(ctx, c, target, request.reason, &g)
	if err != nil {
		return "", err
	}
	switch {
	case rejected != "":
		r, err := t.reject(ctx, target, c.fitted.ModelDigest, "", rejected, schemas.Judgement{})
		if err == nil {
			reply.Rejected = append(reply.Rejected, r)
		}
		return "rejected", err
	case g.DecidedBy != "":
		p, err := t.promote(ctx, target, c.fitted, g, revision)
		if err == nil {
			reply.Promoted = append(reply.Promoted, p)
		}
		return "promoted", err
	}
	reply.Trained = append(reply.Trained, e)
	return "challenger", nil
}

// firstReason is the reason of a fit while a target has no champion.
const firstReason = "the first regressor"

// enoughReason is the reason of a fit after Options.NewEpochs epochs.
const enoughReason = "enough new epochs"

// fittedCandidate is a regressor that is not placed yet.
type fittedCandidate struct {
	model, manifest []byte
	predictor       *regress.Predictor
	fitted          schemas.Fitted
	examples        []Example // examples that the candidate was fitted on
}

// fit fits one target. A regressor that an advisor would refuse is an error here.
func (t *Trainer) fit(
	ctx context.Context, examples []Example, target, reason string,
) (*fittedCandidate, error) {
	begin := time.Now()
	t.metrics.examples.WithLabelValues(target).Set(float64(len(examples)))
	if len(examples) == 0 {
		return nil, fmt.Errorf("fit %s: %w: no examples", target, regress.ErrTooFewExamples)
	}
	o := t.o
	o.Progress = t.progress(target, reason)
	r, err := t.fitTarget(ctx, target, examples, o)
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	t.metrics.seconds.WithLabelValues(target).Observe(took.Seconds())
	return newCandidate(r, examples, took)
}

// fitTarget fits a target. With MethodFamilies the examples are corrected for drift before; with
// MethodEvidence the state of the champion is updated, which detects drift itself.
func (t *Trainer) fitTarget(
	ctx context.Context, target string, examples []Example, o Options,
) (*regress.Regressor, error) {
	if o.Method == MethodEvidence {
		var before *regress.Manifest
		if s := (*t.active.Load())[target]; s.champion != nil {
			before = s.champion.predictor.Manifest()
		}
		return fitAfter(ctx, target, examples, before, o)
	}
	r, err := Fit(ctx, target, t.currentExamples(ctx, target, examples), o)
	if errors.Is(err, regress.ErrTooFewExamples) {
		return Fit(ctx, target, examples, o) // stale examples are better than none
	}
	return r, err
}

// progressEvery is the minimum time between two notifications of a fit's progress.
const progressEvery = 100 * time.Millisecond

// progress publishes the progress of a fit over core NATS.
func (t *Trainer) progress(target, reason string) func(string, int, int) {
	last := time.Time{}
	return func(_ string, done, planned int) {
		if t.o.Progress != nil {
			t.o.Progress(target, done, planned)
		}
		if now := time.Now(); done == planned || now.Sub(last) >= progressEvery {
			last = now
			e := &schemas.Fitting{
				Target:  target,
				Done:    uint32(done),
				Planned: uint32(planned),
				Reason:  reason,
			}
			e.EventID, e.At = fmt.Sprintf("%s/%d/fitting", target, now.UnixNano()), now.UTC()
			_ = t.bus.Notify(e) // a lost notification does no harm
		}
	}
}

// fitted returns the figures of a fit from its manifest.
func fitted(m *regress.Manifest) schemas.Fitted {
	f := schemas.Fitted{
		Family:   m.Family,
		Examples: uint64(m.Examples.Count),
		Settings: uint64(m.Examples.Settings),
	}
	if s := m.Scores; s != nil {
		f.R2 = finiteOrNil(s.R2.Value)
		if !math.IsNaN(s.MSE.Value) {
			f.MeanSquaredError = s.MSE.Value
		}
		for _, e := range []regress.Estimate{s.MedianAPE, s.MAPE, s.MAE} {
			if !math.IsNaN(e.Value) {
				f.MedianAbsoluteRatio = e.Value
				break
			}
		}
	}
	return f
}

// firstSlack is the share by which the error of the first regressor may exceed the error of the
// mean: a target that depends on nothing is predicted as well as by its mean, apart from noise.
const firstSlack = 0.1

// worseThanMean returns why a first regressor with a mean squared error is useless; "" if it is
// not.
func worseThanMean(squared float64, examples []Example) string {
	mean, rounding := meanError(examples), 0.0
	for i := range examples {
		rounding = max(rounding, 1e-12*examples[i].Value*examples[i].Value)
	}
	if squared <= mean*(1+firstSlack)+rounding {
		return ""
	}
	return fmt.Sprintf("no better than the mean of each model's other configurations: "+
		"mean squared error %.4g, error of the mean %.4g", squared, mean)
}

// meanError returns the mean squared error of predicting each example by the mean of its model's
// other configurations, or of all other configurations if its model has only one.
func meanError(examples []Example) float64 {
	type sum struct{ value, weight float64 }
	var all sum
	models, settings := map[string]sum{}, map[string]sum{}
	for i := range examples {
		x := &examples[i]
		v := sum{x.Value * x.Weight, x.Weight}
		add := func(s sum) sum { return sum{s.value + v.value, s.weight + v.weight} }
		level, setting := x.level(), settingText(x)
		all = add(all)
		models[level], settings[setting] = add(models[level]), add(settings[setting])
	}
	var squares, weight float64
	for i := range examples {
		x := &examples[i]
		own := settings[settingText(x)]
		for _, of := range []sum{models[x.level()], all} {
			if rest := of.weight - own.weight; rest > 1e-9 {
				e := x.Value - (of.value-own.value)/rest
				squares, weight = squares+x.Weight*e*e, weight+x.Weight
				break
			}
		}
	}
	if weight == 0 {
		return math.Inf(1) // there is only one configuration
	}
	return squares / weight
}

// hasGrown reports whether a candidate covers more configurations than the champion, or has learned from
// far more examples, and writes that into the grounds.
func (t *Trainer) hasGrown(target string, c *fittedCandidate, g *schemas.Grounds) (bool, error) {
	s := (*t.active.Load())[target]
	if s.champion == nil {
		return false, nil
	}
	trial, err := newTrial(target, s.champion.predictor, c.predictor)
	if err != nil {
		return false, err
	}
	j := compareCoverage(trial, c.examples)
	before, now := t.countCurrent(c.examples, s.champion.predictor.Manifest().Examples.Last)
	switch {
	case j.LostSettings > 0:
		return false, nil
	case j.GainedSettings > 0:
		g.Reason = fmt.Sprintf("%s: it covers %d configurations that the champion does not, "+
			"and all others", g.Reason, j.GainedSettings)
	case before < smallSampleLimit && now >= growthFactor*before &&
		!t.driftedSince(s.champion.predictor.Manifest().Examples.Last):
		g.Reason = fmt.Sprintf("%s: it has learned from %d current examples, the champion from %d",
			g.Reason, now, before)
	default:
		return false, nil
	}
	g.DecidedBy, g.Judgement = schemas.DecidedGrowth, j
	return true, nil
}

// growthFactor is the factor by which the number of examples must grow to promote a candidate
// before its trial. With few examples regressors improve quickly: twice the examples are worth more
// than the outcome of fifty jobs. The former champion is compared with it afterwards, and returns
// if it was better.
const growthFactor = 2

// smallSampleLimit is the number of current examples below which growthFactor applies.
const smallSampleLimit = 200

// countCurrent counts the examples that no drift has made stale: those up to last, which the
// champion was fitted on, and all.
func (t *Trainer) countCurrent(examples []Example, last time.Time) (before, now int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range examples {
		x := &examples[i]
		if anyStale(t.drifts, x.At, x.level(), x.Nodes) {
			continue
		}
		if now++; !x.At.After(last) {
			before++
		}
	}
	return before, now
}

// driftedSince reports whether anything drifted after an instant: a regressor fitted before that
// has not learned from current examples.
func (t *Trainer) driftedSince(since time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.drifts, func(d knownDrift) bool { return d.from.After(since) })
}

// dismissChallenger rejects a challenger that was compared on enough jobs and is not clearly
// better, because a newer one replaces it.
func (t *Trainer) dismissChallenger(ctx context.Context, target string) error {
	s, j := t.challengerStanding(target, minJobs)
	if j == nil {
		return nil
	}
	_, reason := judge(j)
	_, err := t.reject(ctx, target, s.pairing.challenger.ModelDigest, s.pairing.champion.ModelDigest,
		reason+"; replaced by a newer challenger", *j)
	return err
}

// challengerStanding returns the challenger of a target, and its judgement once it was compared on
// a number of jobs; nil before. A former champion in a trial is no challenger.
func (t *Trainer) challengerStanding(
	target string, jobs int,
) (activeRegressors, *schemas.Judgement) {
	s := (*t.active.Load())[target]
	if s.challenger == nil || s.pairing.isRollback {
		return activeRegressors{}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	trial := t.trials[target]
	if trial == nil || trial.challenger.predictor != s.challenger.predictor ||
		len(trial.groups) < jobs {
		return s, nil
	}
	j := trial.judgement()
	return s, &j
}

// earlyJobs is the number of jobs after which a trial shows which of two regressors leads.
const earlyJobs = 5

// coverageShortfall is the difference by which the coverage of a challenger's bound may fall below
// its level before a newer challenger replaces it. Such a challenger was fitted on too few jobs of
// a new kind.
const coverageShortfall = 0.15

// isTrialPending reports whether the challenger of a target stays until its trial ends. It does not
// stay if its bound fails, or if it was not clearly better after minJobs. If drift requires a new
// challenger, it also does not stay if it was fitted before the drift or is not leading. Otherwise,
// in a cluster that changes often, no trial would ever end.
func (t *Trainer) isTrialPending(target string, drift bool) bool {
	s, j := t.challengerStanding(target, earlyJobs)
	if s.challenger == nil || drift && t.driftedSince(
		s.challenger.predictor.Manifest().Examples.Last,
	) {
		return false
	}
	if j == nil {
		return !drift
	}
	if !drift && j.JudgedJobs >= minJobs {
		return false // a newer challenger was fitted on those jobs
	}
	if j.JudgedLevel != medianLevel && *j.CoverageRatio < j.JudgedLevel-coverageShortfall {
		return false
	}
	return !drift || *j.Loss < *j.RivalLoss
}
