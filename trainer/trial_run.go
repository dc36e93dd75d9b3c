package trainer

import (
	"context"
	"slices"
	"sort"

	"courier/schemas"
)

// runTrials applies an event to the trial of each target, and submits the resulting decisions.
func (t *Trainer) runTrials(fw *follower, active map[string]activeRegressors, n *appliedEvent) {
	for target, s := range active {
		if s.challenger == nil {
			continue
		}
		t.mu.Lock()
		trial := t.trials[target]
		if trial == nil || trial.champion.predictor != s.champion.predictor ||
			trial.challenger.predictor != s.challenger.predictor {
			trial = t.startTrial(target, s, fw.past) // with this event
			t.trials[target] = trial
		} else {
			trial.apply(target, fw.past, s.pairing.sinceSequence, n)
		}
		verdict, j, reason := trial.verdict()
		t.mu.Unlock()
		if verdict == undecided {
			continue
		}
		t.metrics.decisions.WithLabelValues(target, verdict.String()).Inc()
		select {
		case t.commands <- command{run: func(ctx context.Context) (any, error) {
			err := t.decide(ctx, target, s.pairing, verdict, j, reason)
			if err != nil && ctx.Err() == nil {
				t.log.Warn("verdict not carried out, will retry",
					"target", target, "error", err)
				t.retryVerdict(trial)
			}
			return nil, err
		}}:
		default:
			t.retryVerdict(trial)
		}
	}
}

// retryVerdict lets a trial be tested again with the next job.
func (t *Trainer) retryVerdict(trial *Trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	trial.ended, trial.nextLookAt = false, len(trial.groups)+1
}

// startTrial returns a trial of the runs that began after both regressors were fitted. If they
// cannot be compared, it returns a trial that has ended, so that the reason is logged once.
func (t *Trainer) startTrial(target string, s activeRegressors, past *Past) *Trial {
	trial, err := newTrial(target, s.champion.predictor, s.challenger.predictor)
	if err != nil {
		t.log.Warn("regressors cannot be compared", "target", target, "error", err)
		return &Trial{
			champion:   &trialPredictor{predictor: s.champion.predictor},
			challenger: &trialPredictor{predictor: s.challenger.predictor},
			ended:      true,
		}
	}
	if target == schemas.TargetEpochTime {
		trial.drifts = slices.Clone(t.drifts)
	}
	for _, r := range past.since(s.pairing.sinceSequence) {
		if len(trial.groups) >= maxJobs {
			break // there are enough jobs for a verdict
		}
		if !r.dropped {
			trial.replay(target, past, r, s.pairing.sinceSequence)
		}
	}
	return trial
}

// since returns the runs whose first event is after a sequence, in the order of the log; some may
// be dropped.
func (p *Past) since(sequence uint64) []*run {
	i := sort.Search(len(p.order), func(i int) bool { return p.order[i].first > sequence })
	return p.order[i:]
}

// replay applies the kept events of a run.
func (t *Trial) replay(target string, past *Past, r *run, since uint64) {
	if !t.isFair(r, since) {
		return
	}
	for i := range r.epochs {
		t.epoch(target, past, r, &r.epochs[i], i == 0, i < r.frozen)
	}
	if r.outcome != "" {
		t.end(target, past, r)
	}
}

// apply applies the next event of the log. A trial that has ended ignores it.
func (t *Trial) apply(target string, past *Past, since uint64, n *appliedEvent) {
	if t.ended || !t.isFair(n.run, since) {
		return
	}
	switch n.Event.(type) {
	case *schemas.Epoch:
		t.epoch(target, past, n.run, n.epoch, n.run.epochCount == 1, false)
	case *schemas.Ended:
		t.end(target, past, n.run)
	}
}

// isFair reports whether a run may be compared: it began after both regressors were fitted, in the
// log and by its own time, and nothing drifted since.
func (t *Trial) isFair(run *run, since uint64) bool {
	return !anyStale(t.drifts, run.span.From, run.level(), run.span.Nodes) && run.first > since &&
		!run.span.From.Before(t.champion.predictor.Manifest().Examples.Last) &&
		!run.span.From.Before(t.challenger.predictor.Manifest().Examples.Last)
}

// epoch applies an epoch of a run. isFirst reports whether it is the first of the run, isFinal
// whether its load is final.
func (t *Trial) epoch(target string, past *Past, r *run, e *keptEpoch, isFirst, isFinal bool) {
	if target == schemas.TargetStartup {
		if x, ok := past.startup(r); ok && isFirst {
			t.add(r.key, &x)
		}
		return
	}
	if x, ok := past.example(r, e, isFinal, target); ok {
		t.add(r.key, &x)
	}
}

// end applies the end of a run.
func (t *Trial) end(target string, past *Past, r *run) {
	if r.epochCount == 0 && target != schemas.TargetStartup {
		if x, ok := past.wholeJob(r, target); ok {
			t.add(r.key, &x)
		}
	}
	t.count(r.key)
}
