package trainer

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"courier/regress/evidence"
	"courier/schemas"
)

// correctionKey identifies the scope of a correction. It is short because event IDs contain it.
func correctionKey(e *schemas.Drift) string {
	scope := fmt.Sprintf("%q", []any{
		e.Scope, e.Model, e.Dataset, e.NodeType, e.BatchSizeFrom, e.BatchSizeTo,
	})
	return fmt.Sprintf("%x", sha256.Sum256([]byte(scope)))[:12]
}

// changedCorrections returns the events that lead from the published corrections, by key, to those
// of a state, in a fixed order. A correction has changed if its ratio is outside the published
// interval.
func changedCorrections(
	s *evidence.State, published map[string]*schemas.Drift, v *schemas.RegressorVersion, now time.Time,
) (events []*schemas.Drift) {
	isServed := map[string]bool{}
	for _, f := range s.Factors() {
		e := correctionEvent(&f, v, now)
		key := correctionKey(e)
		isServed[key] = true
		if before := published[key]; before != nil {
			if low, high := before.RatioLow, before.RatioHigh; low != nil && high != nil &&
				*low <= e.Ratio && e.Ratio <= *high {
				continue
			}
			e.BeforeRatio = before.Ratio
			e.Message += fmt.Sprintf("; before: %.2f times", before.Ratio)
		}
		events = append(events, e)
	}
	for _, key := range slices.Sorted(maps.Keys(published)) {
		if !isServed[key] {
			events = append(events, endOfCorrection(published[key], s, v, now))
		}
	}
	return events
}

// correctionEvent returns the event of an active factor.
func correctionEvent(f *evidence.Factor, v *schemas.RegressorVersion, now time.Time) *schemas.Drift {
	e := scopeOf(f)
	e.Target, e.ModelDigest, e.CauseSequence = v.Target, v.ModelDigest, v.SinceSequence
	e.EventID, e.At = schemas.DriftID(v.Target, v.Revision, correctionKey(e)), now
	e.State, e.SinceAt = schemas.DriftActive, f.StartedAt
	e.Ratio, e.RatioLow, e.RatioHigh, e.BeforeRatio = f.Ratio, &f.Low, &f.High, 1
	e.Jobs, e.Statistic = uint32(f.Runs), f.Evidence
	e.Message = describeFactor(f)
	return e
}

// endOfCorrection returns the event that ends a published correction.
func endOfCorrection(
	published *schemas.Drift, s *evidence.State, v *schemas.RegressorVersion, now time.Time,
) *schemas.Drift {
	e := *published
	e.ModelDigest, e.CauseSequence = v.ModelDigest, v.SinceSequence
	e.EventID, e.At = schemas.DriftID(v.Target, v.Revision, correctionKey(published)), now
	e.State, e.Ratio, e.BeforeRatio = schemas.DriftWithdrawn, 1, published.Ratio
	e.RatioLow, e.RatioHigh = nil, nil
	e.Message = fmt.Sprintf("%s: later jobs do not confirm %.2f times the predicted time; "+
		"their predictions are no longer corrected", describeScope(published), published.Ratio)
	if s == nil {
		return &e
	}
	for i := range s.Drift.Past {
		f := &s.Drift.Past[i]
		if correctionKey(scopeOf(f)) != correctionKey(published) ||
			f.Since.Before(published.SinceAt) {
			continue
		}
		e.State, e.Jobs, e.BeforeRatio = schemas.DriftReplaced, uint32(f.Runs), f.Ratio
		e.Message = fmt.Sprintf(
			"%s: a fit has learned from the %d jobs since %s, which take %.2f times as long; "+
				"no correction is needed",
			describeScope(published), f.Runs, formatTime(f.StartedAt), f.Ratio)
	}
	return &e
}

// scopeOf returns an event with the scope of a factor.
func scopeOf(f *evidence.Factor) *schemas.Drift {
	e := &schemas.Drift{
		Scope:    schemas.DriftModel,
		Model:    f.Model,
		Dataset:  f.Dataset,
		NodeType: f.NodeType,
	}
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

// describeScope describes the jobs that an event is about.
func describeScope(e *schemas.Drift) string {
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

// describeFactor describes the jobs that a factor corrects, its interval and its evidence.
func describeFactor(f *evidence.Factor) string {
	return fmt.Sprintf("%s take %.2f times (%.2f to %.2f) as long as predicted since %s (%d jobs); "+
		"predictions are corrected",
		describeScope(scopeOf(f)), f.Ratio, f.Low, f.High, formatTime(f.StartedAt), f.Runs)
}

func formatTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }
