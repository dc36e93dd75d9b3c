package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

// Decide answers a question. It is pure: the same question and regressors give the same advice,
// except for its timestamp.
func Decide(q *Question, r Regressors, at time.Time) *schemas.Advice {
	p := newProblem(q, r)
	all, failing := p.withoutFailing(p.candidates(q.Request.CPUs))
	chosen := p.choose(all)

	a := newAdvice(q, r, at)
	best := all[chosen.index].Alternative
	best.Evidence = nil // the same alternative has it in the list
	p = p.of(best.Workers)
	a.Decision, a.Chosen, a.Load = chosen.decision, &best, p.loadNow(best.CPUs)
	if q.Self != nil {
		a.Action = q.action(&best)
		if len(q.Self.ObservedEpochs) > 0 {
			a.EpochRatio = p.ownRatio()
		}
	} else {
		before := p.withoutJob()
		a.Effects = p.effects(before, &best)
		if areTimed(all) {
			a.Menu = p.menu(before, all, a)
		}
	}
	a.Message = (&answer{p, a, all}).message()

	a.Alternatives = alternatives(all, failing, p.refusedCPUs(a.Chosen.CPUs))
	return a
}

// newAdvice returns the advice with the fields that follow from the question.
func newAdvice(q *Question, r Regressors, at time.Time) *schemas.Advice {
	return &schemas.Advice{
		JobStamp: schemas.JobStamp{
			Stamp: schemas.Stamp{At: at},
			JobID: q.JobID,
			Run:   q.Run,
		},
		Action:         schemas.ActionStart,
		Model:          q.Request.Model,
		Dataset:        q.Request.Dataset,
		Nodes:          q.Nodes,
		SLOSeconds:     q.Request.SLO.Seconds(),
		ElapsedSeconds: q.Elapsed.Seconds(),
		Confidence:     q.Request.Confidence,
		EpochsDone:     q.EpochsDone(),
		MayStopEarly:   q.Request.MayStopEarly || len(q.Stops) > 0,
		Regressors:     r.digests(),
	}
}

// action returns what a running job should do.
func (q *Question) action(chosen *schemas.Alternative) schemas.Action {
	if chosen.PredictedSeconds == nil || q.isCurrent(chosen) || q.Request.SLO == 0 {
		return schemas.ActionKeep
	}
	return schemas.ActionBatch
}

// withoutFailing separates the candidates whose last runs on the node type failed, for example because
// they ran out of memory. They are tried again if nothing else was asked for. A running job is not
// affected.
func (p *problem) withoutFailing(all []candidate) (usable, failing []candidate) {
	if len(p.Failures) == 0 || p.Self != nil {
		return all, nil
	}
	for i := range all {
		at := slices.IndexFunc(p.Failures, func(f cluster.Failure) bool {
			return f.BatchSize == all[i].BatchSize && f.CPUs == all[i].CPUs &&
				f.Workers == all[i].Workers && f.NodeType == p.hardwareType && f.Runs >= cluster.UsualFailure
		})
		if at < 0 {
			usable = append(usable, all[i])
			continue
		}
		f := &p.Failures[at]
		all[i].Reason = fmt.Sprintf("its last %d runs on such a node failed: %s", f.Runs,
			cmp.Or(f.Reason, "the reason is unknown"))
		failing = append(failing, all[i])
	}
	if len(usable) == 0 {
		return failing, nil
	}
	return usable, failing
}

// refusedCPUs returns the alternatives with CPUs that the job does not get. Nothing else of the
// answer depends on them.
func (p *problem) refusedCPUs(granted uint32) []candidate {
	all := p.candidates(p.Question.notGranted)
	for i := range all {
		if all[i].Reason = reasonTooManyCPUs; all[i].CPUs < granted {
			all[i].Reason = reasonMoreGranted
		}
	}
	return all
}

// alternatives returns the published part of candidates.
func alternatives(lists ...[]candidate) (published []schemas.Alternative) {
	for _, all := range lists {
		published = slices.Grow(published, len(all))
		for i := range all {
			published = append(published, all[i].Alternative)
		}
	}
	return published
}
