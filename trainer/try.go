package trainer

import (
	"context"
	"slices"
	"sort"

	"courier/schemas"
)

// try lets champions and their rivals predict what an event tells, and orders what
// follows from it.
func (t *Trainer) try(w *watcher, standings map[string]standing, n *news) {
	for target, s := range standings {
		if s.rival == nil {
			continue
		}
		t.mu.Lock()
		trial := t.trials[target]
		if trial == nil || trial.champion.predictor != s.champion.predictor ||
			trial.rival.predictor != s.rival.predictor {
			trial = t.begin(target, s, w.past) // with this event
			t.trials[target] = trial
		} else {
			trial.take(target, w.past, s.contest.since, n)
		}
		verdict, j, reason := trial.rule()
		t.mu.Unlock()
		if verdict == undecided {
			continue
		}
		t.metrics.rulings.WithLabelValues(target, verdict.String()).Inc()
		select {
		case t.orders <- order{do: func(ctx context.Context) (any, error) {
			err := t.decide(ctx, target, s.contest, verdict, j, reason)
			if err != nil && ctx.Err() == nil {
				t.log.Warn("verdict not carried out, it is looked at again", "target", target,
					"error", err)
				t.again(trial)
			}
			return nil, err
		}}:
		default:
			t.again(trial)
		}
	}
}

// again lets a trial be judged with the next job.
func (t *Trainer) again(trial *Trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	trial.ended, trial.look = false, len(trial.groups)+1
}

// begin starts a trial with the runs that began after both regressors were fitted. One that
// cannot be judged is over at once, so that the reason is logged once.
func (t *Trainer) begin(target string, s standing, past *Past) *Trial {
	trial, err := newTrial(target, s.champion.predictor, s.rival.predictor)
	if err != nil {
		t.log.Warn("regressors cannot be compared", "target", target, "error", err)
		return &Trial{
			champion: &entrant{predictor: s.champion.predictor},
			rival:    &entrant{predictor: s.rival.predictor},
			ended:    true,
		}
	}
	if target == schemas.TargetEpochTime {
		trial.drifts = slices.Clone(t.drifts)
	}
	for _, r := range past.since(s.contest.since) {
		if len(trial.groups) >= mostJobs {
			break // enough for a verdict
		}
		if !r.dropped {
			trial.replay(target, past, r, s.contest.since)
		}
	}
	return trial
}

// since returns the runs whose first event came after a sequence, in the order of the log; some
// may be dropped.
func (p *Past) since(sequence uint64) []*run {
	i := sort.Search(len(p.order), func(i int) bool { return p.order[i].first > sequence })
	return p.order[i:]
}

// replay takes the events of a run that were kept.
func (t *Trial) replay(target string, past *Past, r *run, since uint64) {
	if !t.fair(r, since) {
		return
	}
	for i := range r.epochs {
		t.epoch(target, past, r, &r.epochs[i], i == 0, i < r.frozen)
	}
	if r.outcome != "" {
		t.end(target, past, r)
	}
}

// take takes the next event of the log. A trial that is over takes none.
func (t *Trial) take(target string, past *Past, since uint64, n *news) {
	if t.ended || !t.fair(n.run, since) {
		return
	}
	switch n.Event.(type) {
	case *schemas.Epoch:
		t.epoch(target, past, n.run, n.epoch, n.run.told == 1, false)
	case *schemas.Ended:
		t.end(target, past, n.run)
	}
}

// fair reports whether a run tells which regressor is right now: neither has learnt
// from it, because it began after both were fitted, in the log and by its own time, nor
// did anything drift since.
func (t *Trial) fair(run *run, since uint64) bool {
	return !anyStale(t.drifts, run.span.From, run.level(), run.span.Nodes) && run.first > since &&
		!run.span.From.Before(t.champion.predictor.Manifest().Examples.Last) &&
		!run.span.From.Before(t.rival.predictor.Manifest().Examples.Last)
}

// epoch takes an epoch of a run. isFirst says that it is the first of the run, isFinal that its
// load is.
func (t *Trial) epoch(target string, past *Past, r *run, e *epoch, isFirst, isFinal bool) {
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

// end takes the end of a run.
func (t *Trial) end(target string, past *Past, r *run) {
	if r.told == 0 && target != schemas.TargetStartup {
		if x, ok := past.wholeJob(r, target); ok {
			t.add(r.key, &x)
		}
	}
	t.count(r.key)
}
