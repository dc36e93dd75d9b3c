package trainer

import (
	"context"
	"slices"

	"courier/bus"
	"courier/schemas"
)

// try lets champions and their rivals predict what an event tells, and orders what
// follows from it.
func (t *Trainer) try(w *watcher, standings map[string]standing, r bus.Record) {
	for target, s := range standings {
		if s.rival == nil {
			continue
		}
		t.mu.Lock()
		trial := t.trials[target]
		if trial == nil || trial.champion.predictor != s.champion.predictor || trial.rival.predictor != s.rival.predictor {
			trial = t.begin(target, s, w.past) // with this event
			t.trials[target] = trial
		} else {
			trial.take(target, w.past, s.contest.since, r)
		}
		verdict, j, reason := undecided, schemas.Judgement{}, ""
		if trial != nil {
			verdict, j, reason = trial.rule()
		}
		t.mu.Unlock()
		if verdict == undecided {
			continue
		}
		t.metrics.rulings.WithLabelValues(target, verdict.String()).Inc()
		select {
		case t.orders <- order{do: func(ctx context.Context) (any, error) {
			err := t.decide(ctx, target, s.contest, verdict, j, reason)
			if err != nil && ctx.Err() == nil {
				t.log.Warn("verdict not carried out, it is looked at again", "target", target, "error", err)
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
	trial.ended, trial.look = false, 0
}

// begin begins a trial with what the log has of it already; nil if this version
// cannot judge one of the two.
func (t *Trainer) begin(target string, s standing, past *Past) *Trial {
	trial, err := newTrial(target, s.champion.predictor, s.rival.predictor)
	if err != nil {
		t.log.Warn("regressors cannot be compared", "target", target, "error", err)
		return nil
	}
	if target == schemas.TargetEpochTime {
		trial.drifts = slices.Clone(t.drifts)
	}
	for _, run := range past.order {
		for _, e := range run.epochs {
			trial.epoch(target, past, run, s.contest.since, e)
		}
		if run.ended != nil {
			trial.end(target, past, run, s.contest.since)
		}
	}
	return trial
}

// take takes the next event of the log.
func (t *Trial) take(target string, past *Past, since uint64, r bus.Record) {
	switch e := r.Event.(type) {
	case *schemas.Epoch:
		if run := past.runs[runKey{e.JobID, e.Run}]; run != nil && len(run.epochs) > 0 && run.epochs[len(run.epochs)-1] == e {
			t.epoch(target, past, run, since, e)
		}
	case *schemas.Ended:
		if run := past.runs[runKey{e.JobID, e.Run}]; run != nil && run.ended == e {
			t.end(target, past, run, since)
		}
	}
}

// fair reports whether a run tells which regressor is right now: neither has learnt
// from it, because it began after both were fitted, in the log and by its own time, nor
// did anything drift since.
func (t *Trial) fair(run *run, since uint64) bool {
	return !anyStale(t.drifts, run.span.From, run.model, run.span.Nodes) && run.first > since && !run.span.From.Before(t.champion.predictor.Manifest().Examples.Last) && !run.span.From.Before(t.rival.predictor.Manifest().Examples.Last)
}

func (t *Trial) epoch(target string, past *Past, run *run, since uint64, e *schemas.Epoch) {
	if !t.fair(run, since) {
		return
	}
	k := runKey{e.JobID, e.Run}
	if target == schemas.TargetStartup {
		if x, ok := past.startup(run, past.beside(run)); ok && run.epochs[0] == e {
			t.add(k, &x)
		}
		return
	}
	if x, ok := past.example(run, past.beside(run), e, target); ok {
		t.add(k, &x)
	}
}

func (t *Trial) end(target string, past *Past, run *run, since uint64) {
	if !t.fair(run, since) {
		return
	}
	k := runKey{run.ended.JobID, run.ended.Run}
	if len(run.epochs) == 0 {
		for _, x := range past.wholeJob(run, past.beside(run), target) {
			t.add(k, &x)
		}
	}
	t.count(k)
}
