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

// train fits each target on the past as it is now.
func (t *Trainer) train(ctx context.Context, w wish) (schemas.TrainReply, error) {
	reply := schemas.TrainReply{Promoted: []schemas.Promoted{}}
	last, err := t.bus.LastSequence(ctx, schemas.StreamJob)
	if err != nil {
		return reply, err
	}
	for _, target := range w.targets {
		outcome, err := t.learn(ctx, last, target, &w, &reply)
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

// learn fits a target on the log up to a sequence at least, if that is still wanted, and places
// the regressor: it is promoted, becomes a challenger, or is rejected. outcome is a word for the
// metrics.
func (t *Trainer) learn(
	ctx context.Context, last uint64, target string, w *wish, reply *schemas.TrainReply,
) (outcome string, err error) {
	_, revision, err := t.champion(ctx, target)
	if err != nil {
		return "", err
	}
	if revision > 0 && w.reason == firstReason { // another wish has brought it meanwhile
		if t.fresh.Load() < int64(t.o.NewEpochs) {
			return "late", nil
		}
		w.reason = enoughReason
	}
	var l lesson
	var c *candidate
	err = t.aside(ctx, func() (err error) {
		if l, err = t.recall(ctx, target, last); err != nil {
			return err
		}
		for reason, n := range l.refused {
			t.metrics.refused.WithLabelValues(reason).Set(float64(n))
		}
		c, err = t.fit(ctx, l.examples, target, w.reason)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := t.o.step("fitted"); err != nil {
		return "", err
	}
	return t.place(ctx, c, l.last, target, w, reply)
}

// place decides what becomes of a candidate that was fitted on the log up to a sequence.
func (t *Trainer) place(
	ctx context.Context, c *candidate, last uint64, target string, w *wish, reply *schemas.TrainReply,
) (outcome string, err error) {
	champion, revision, err := t.champion(ctx, target) // that in use now: somebody may have asked for another
	if err != nil {
		return "", err
	}
	if champion.ModelDigest == c.fitted.ModelDigest &&
		champion.ManifestDigest == c.fitted.ManifestDigest {
		reply.Waiting = append(reply.Waiting,
			target+": nothing new was learnt, the regressor in use stays")
		if w.promote {
			reply.Promoted = append(reply.Promoted, promoted(champion, revision, c.fitted))
		}
		return "same", nil
	}
	g := schemas.Grounds{Rival: champion.ModelDigest, SinceSequence: last, Reason: w.reason}
	rejected := ""
	switch {
	case revision == 0:
		g.DecidedBy = schemas.DecidedFirst
		if c.predictor.Manifest().Family != regress.FamilyHierarchy {
			rejected = worthless(c.fitted.MeanSquaredError, c.examples)
		}
	case w.promote:
		g.DecidedBy = schemas.DecidedRequest
	case c.predictor.Manifest().Family == regress.FamilyHierarchy:
		// It is the same method with more runs, and corrects itself where these drift.
		g.DecidedBy = schemas.DecidedGrowth
	default:
		grown, err := t.grown(target, c, &g)
		if err != nil {
			return "", err
		}
		if !grown && !w.asked && t.busy(target, drifting(w.reason)) {
			reply.Waiting = append(reply.Waiting, target+": another challenger is being judged")
			return "waiting", nil
		}
	}
	e, err := t.present(ctx, c, target, w.reason, &g)
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

// firstReason is to fit because nothing is in use yet.
const firstReason = "the first regressor"

// enoughReason is to fit because enough is new.
const enoughReason = "enough new epochs"

// candidate is a regressor that was just fitted.
type candidate struct {
	model, manifest []byte
	predictor       *regress.Predictor
	fitted          schemas.Fitted
	examples        []Example // that it was fitted on
}

// fit fits one target. What an advisor would refuse is an error here.
func (t *Trainer) fit(
	ctx context.Context, examples []Example, target, reason string,
) (*candidate, error) {
	begin := time.Now()
	t.metrics.examples.WithLabelValues(target).Set(float64(len(examples)))
	if len(examples) == 0 {
		return nil, fmt.Errorf("fit %s: %w: none at all", target, regress.ErrTooFewExamples)
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

// fitTarget fits the examples that are true now, or goes on from the evidence of the champion, which
// finds by itself what drifted.
func (t *Trainer) fitTarget(
	ctx context.Context, target string, examples []Example, o Options,
) (*regress.Regressor, error) {
	if o.Method == MethodEvidence {
		var before *regress.Manifest
		if s := (*t.standings.Load())[target]; s.champion != nil {
			before = s.champion.predictor.Manifest()
		}
		return fitAfter(ctx, target, examples, before, o)
	}
	r, err := Fit(ctx, target, t.trueExamples(ctx, target, examples), o)
	if errors.Is(err, regress.ErrTooFewExamples) {
		return Fit(ctx, target, examples, o) // the past that is no longer true is better than none
	}
	return r, err
}

// progressEvery is the least time between two notices of a fit's progress.
const progressEvery = 100 * time.Millisecond

// progress tells over core NATS how far a fit has come.
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
			_ = t.bus.Notify(e) // nobody has to hear it
		}
	}
}

// fitted takes the figures of a fit from its manifest.
func fitted(m *regress.Manifest) schemas.Fitted {
	f := schemas.Fitted{
		Family:   m.Family,
		Examples: uint64(m.Examples.Count),
		Settings: uint64(m.Examples.Settings),
	}
	if s := m.Scores; s != nil {
		f.R2 = known(s.R2.Value)
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

// firstSlack is by how much the first regressor may be worse than the mean: a
// target that depends on nothing is predicted as well as that, give or take noise.
const firstSlack = 0.1

// worthless says why a first regressor with some mean squared error is not worth
// using; "" if it is.
func worthless(squared float64, examples []Example) string {
	mean, least := meanError(examples), 0.0
	for i := range examples {
		least = max(least, 1e-12*examples[i].Value*examples[i].Value) // rounding is no error
	}
	if squared <= mean*(1+firstSlack)+least {
		return ""
	}
	return fmt.Sprintf("no better than the mean of each model's other settings: mean squared error %.4g, that of the mean %.4g",
		squared, mean)
}

// meanError is the mean squared error of predicting each example by the mean of
// its model's other settings; of all others where its model has but one.
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
		return math.Inf(1) // one setting: there is no other mean
	}
	return squares / weight
}

// grown says in the grounds that a candidate promises for more than the champion,
// or has learnt from far more, if that is so.
func (t *Trainer) grown(target string, c *candidate, g *schemas.Grounds) (bool, error) {
	s := (*t.standings.Load())[target]
	if s.champion == nil {
		return false, nil
	}
	trial, err := newTrial(target, s.champion.predictor, c.predictor)
	if err != nil {
		return false, err
	}
	j := grows(trial, c.examples)
	before, now := t.countTrue(c.examples, s.champion.predictor.Manifest().Examples.Last)
	switch {
	case j.LostSettings > 0:
		return false, nil
	case j.GainedSettings > 0:
		g.Reason = fmt.Sprintf("%s: it promises for %d settings that the one in use cannot promise for, and for all others",
			g.Reason, j.GainedSettings)
	case before < young && now >= growth*before &&
		!t.drifted(s.champion.predictor.Manifest().Examples.Last):
		g.Reason = fmt.Sprintf("%s: it has learnt from %d examples that are true, the one in use from %d",
			g.Reason, now, before)
	default:
		return false, nil
	}
	g.DecidedBy, g.Judgement = schemas.DecidedGrowth, j
	return true, nil
}

// growth is by how much a candidate must have learnt from more than the champion
// to be used before it is judged: the young learn quickly, and half of what is
// known is worth more than what fifty jobs would show. What was in use before is
// compared with it afterwards all the same, and comes back if it was better.
const growth = 2

// young is a regressor that has learnt from fewer examples that are still true.
const young = 200

// countTrue counts the examples that no drift has made stale: those that a champion has
// learnt from, which was fitted with examples up to last, and all.
func (t *Trainer) countTrue(examples []Example, last time.Time) (before, now int) {
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

// drifted reports whether anything drifted since an instant: who has learnt up to then
// has learnt nothing of what is true now.
func (t *Trainer) drifted(since time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.drifts, func(d drifted) bool { return d.from.After(since) })
}

// dismiss rejects a challenger that was judged on enough jobs and is not clearly
// better, because a newer one takes its place.
func (t *Trainer) dismiss(ctx context.Context, target string) error {
	s, j := t.rivalry(target, leastJobs)
	if j == nil {
		return nil
	}
	_, reason := judge(j)
	_, err := t.reject(ctx, target, s.contest.rival.ModelDigest, s.contest.champion.ModelDigest,
		reason+"; a newer challenger takes its place", *j)
	return err
}

// rivalry is where a target's challenger stands, and how it did once it was judged
// on so many jobs, nil before. A former champion that could come back is none.
func (t *Trainer) rivalry(target string, jobs int) (standing, *schemas.Judgement) {
	s := (*t.standings.Load())[target]
	if s.rival == nil || s.contest.back {
		return standing{}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	trial := t.trials[target]
	if trial == nil || trial.rival.predictor != s.rival.predictor || len(trial.groups) < jobs {
		return s, nil
	}
	j := trial.judgement()
	return s, &j
}

// fewJobs are enough to see which of two regressors is ahead.
const fewJobs = 5

// hopeless is by how much a challenger's bound may hold too rarely before a newer
// one takes its place: it was fitted on the first few jobs of something new.
const hopeless = 0.15

// busy reports whether a challenger is being judged that stays. One whose bound
// fails does not, nor one that was not clearly better on as many jobs as it takes. If a
// drift calls for another, nor does one that has learnt nothing since it began, or is
// not ahead since: where things change often, none would ever be judged without that.
func (t *Trainer) busy(target string, drift bool) bool {
	s, j := t.rivalry(target, fewJobs)
	if s.rival == nil || drift && t.drifted(s.rival.predictor.Manifest().Examples.Last) {
		return false
	}
	if j == nil {
		return !drift
	}
	if !drift && j.JudgedJobs >= leastJobs {
		return false // it had its chance: a newer one knows those jobs
	}
	if j.JudgedLevel != middle && *j.CoverageRatio < j.JudgedLevel-hopeless {
		return false
	}
	return !drift || *j.Loss < *j.RivalLoss
}
