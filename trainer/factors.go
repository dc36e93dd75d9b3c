package trainer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"courier/regress/evidence"
	"courier/schemas"
)

// announce publishes which corrections of a target began, changed or ended with its champion. What
// was published before is known from the log, so that nothing is said twice or lost.
func (t *Trainer) announce(ctx context.Context, target string) {
	champion := (*t.standings.Load())[target].champion
	if champion == nil {
		return
	}
	t.mu.Lock()
	r := t.life.of(target)
	told := maps.Clone(r.corrections)
	version := *r.versions[r.champion()]
	t.mu.Unlock()
	for _, e := range changedCorrections(champion.evidence(), told, &version, time.Now().UTC()) {
		e.KnownChanges = t.changes.between(e.SinceAt, e.At)
		if err := t.tell(ctx, e); err != nil {
			if ctx.Err() == nil {
				t.log.Warn("drift not published yet", "target", target, "error", err)
			}
			return
		}
		if e.State == schemas.DriftActive {
			t.metrics.drifts.Inc()
		}
		t.log.Info("drift", "target", target, "state", e.State, "scope", e.Scope, "model", e.Model,
			"node_type", e.NodeType, "batch_size_from", e.BatchSizeFrom, "batch_size_to", e.BatchSizeTo,
			"ratio", e.Ratio, "since", e.SinceAt, "jobs", e.Jobs)
	}
}

// mostCorrections is the number of corrections that a life remembers; a state has four at most.
const mostCorrections = 64

// corrected takes what is said of a correction.
func (r *reign) corrected(e *schemas.Drift) {
	key := correctionKey(e)
	switch {
	case e.State == schemas.DriftActive && len(r.corrections) < mostCorrections:
		r.corrections[key] = e
	case e.State != "":
		delete(r.corrections, key)
	}
}

// activeCorrections returns the corrections that are active, by their begin.
func (r *reign) activeCorrections() []*schemas.Drift {
	return slices.SortedFunc(maps.Values(r.corrections), func(a, b *schemas.Drift) int {
		return cmp.Or(a.SinceAt.Compare(b.SinceAt), cmp.Compare(a.EventID, b.EventID))
	})
}

// correctionKey names the scope of a correction; it is short, and a part of identities.
func correctionKey(e *schemas.Drift) string {
	scope := fmt.Sprintf("%q", []any{e.Scope, e.Model, e.Dataset, e.NodeType, e.BatchSizeFrom, e.BatchSizeTo})
	return fmt.Sprintf("%x", sha256.Sum256([]byte(scope)))[:12]
}

// changedCorrections returns the events that lead from the corrections that were told, by key, to
// those of a state, in a fixed order. A correction has changed if its ratio leaves the interval that
// was told.
func changedCorrections(
	s *evidence.State, told map[string]*schemas.Drift, v *schemas.RegressorVersion, now time.Time,
) (events []*schemas.Drift) {
	served := map[string]bool{}
	for _, f := range s.Factors() {
		e := correctionEvent(&f, s, v, now)
		key := correctionKey(e)
		served[key] = true
		if before := told[key]; before != nil {
			if low, high := before.RatioLow, before.RatioHigh; low != nil && high != nil &&
				*low <= e.Ratio && e.Ratio <= *high {
				continue
			}
			e.BeforeRatio = before.Ratio
			e.Message += fmt.Sprintf("; before: %.2f times", before.Ratio)
		}
		events = append(events, e)
	}
	for _, key := range slices.Sorted(maps.Keys(told)) {
		if !served[key] {
			events = append(events, endOfCorrection(told[key], s, v, now))
		}
	}
	return events
}

// correctionEvent makes the event of an active factor.
func correctionEvent(
	f *evidence.Factor, s *evidence.State, v *schemas.RegressorVersion, now time.Time,
) *schemas.Drift {
	e := scopeOf(f)
	e.Target, e.ModelDigest, e.CauseSequence = v.Target, v.ModelDigest, v.SinceSequence
	e.EventID, e.At = schemas.CorrectionID(v.Target, v.Revision, correctionKey(e)), now
	e.State, e.SinceAt, e.Detector = schemas.DriftActive, f.StartedAt, "factor"
	e.Ratio, e.RatioLow, e.RatioHigh, e.BeforeRatio = f.Ratio, &f.Low, &f.High, 1
	e.Jobs, e.RestJobs, e.ExplainedRatio = uint32(f.Runs), uint32(f.RestRuns), f.Explained
	if f.RestRuns > 0 {
		e.RestRatio = &f.RestRatio
	}
	e.Statistic, e.Threshold = f.Evidence, f.Threshold
	e.WindowJobs, e.WindowSinceAt, e.Deviation = windowOf(s)
	e.Message = factorWords(f)
	return e
}

// windowOf returns how many runs a state has compared, when the first of them began, and the
// standard deviation that the predictor gave them.
func windowOf(s *evidence.State) (jobs uint32, since time.Time, deviation float64) {
	all := s.Drift.Residuals
	if len(all) == 0 {
		return 0, since, 0
	}
	for i := range all {
		deviation += all[i].Variance / float64(len(all))
	}
	return uint32(len(all)), all[0].StartedAt, math.Sqrt(deviation)
}

// endOfCorrection makes the event that ends one that was told.
func endOfCorrection(
	told *schemas.Drift, s *evidence.State, v *schemas.RegressorVersion, now time.Time,
) *schemas.Drift {
	e := *told
	e.ModelDigest, e.CauseSequence = v.ModelDigest, v.SinceSequence
	e.EventID, e.At = schemas.CorrectionID(v.Target, v.Revision, correctionKey(told)), now
	e.State, e.Ratio, e.BeforeRatio = schemas.DriftWithdrawn, 1, told.Ratio
	e.RatioLow, e.RatioHigh = nil, nil
	e.Message = fmt.Sprintf("%s: later jobs do not show that they take %.2f times as long; "+
		"they are no longer corrected", scopeWords(told), told.Ratio)
	if s == nil {
		return &e
	}
	for i := range s.Drift.Past {
		f := &s.Drift.Past[i]
		if correctionKey(scopeOf(f)) != correctionKey(told) || f.Since.Before(told.SinceAt) {
			continue
		}
		e.State, e.Jobs, e.BeforeRatio = schemas.DriftReplaced, uint32(f.Runs), f.Ratio
		e.Message = fmt.Sprintf("%s: a fit has learned from the %d jobs since %s, which take %.2f times "+
			"as long; no correction is needed", scopeWords(told), f.Runs, when(f.StartedAt), f.Ratio)
	}
	return &e
}

// scopeOf returns an event with the scope of a factor.
func scopeOf(f *evidence.Factor) *schemas.Drift {
	e := &schemas.Drift{Scope: schemas.DriftModel, Model: f.Model, Dataset: f.Dataset, NodeType: f.NodeType}
	switch f.Kind {
	case evidence.ScopeAll:
		e.Scope = schemas.DriftAll
	case evidence.ScopeNode:
		e.Scope = schemas.DriftNodeType
	case evidence.ScopeFrom:
		e.BatchSizeFrom = uint32(f.BatchSize)
	case evidence.ScopeTo:
		e.BatchSizeTo = uint32(f.BatchSize)
	}
	return e
}

// scopeWords says which jobs a scope holds for.
func scopeWords(e *schemas.Drift) string {
	words := "jobs"
	if e.Model != "" {
		words += " of model " + e.Model
	}
	if e.Dataset != "" {
		words += " on dataset " + e.Dataset
	}
	switch {
	case e.BatchSizeFrom > 0:
		words += fmt.Sprintf(" with batch size %d or more", e.BatchSizeFrom)
	case e.BatchSizeTo > 0:
		words += fmt.Sprintf(" with batch size %d or less", e.BatchSizeTo)
	case e.Scope == schemas.DriftNodeType:
		words += " on nodes of type " + cmp.Or(e.NodeType, "unknown")
	case e.NodeType != "":
		words += " on nodes of type " + e.NodeType
	}
	return words
}

// factorWords says what a factor corrects, and what it rests on.
func factorWords(f *evidence.Factor) string {
	words := fmt.Sprintf("%s take %.2f times (%.2f to %.2f) as long as predicted since %s (%d jobs",
		scopeWords(scopeOf(f)), f.Ratio, f.Low, f.High, when(f.StartedAt), f.Runs)
	if f.RestRuns > 0 {
		words += fmt.Sprintf("; all others: %.2f times, %d jobs", f.RestRatio, f.RestRuns)
	}
	return words + "); predictions are corrected"
}

func when(at time.Time) string { return at.UTC().Format(time.RFC3339) }
