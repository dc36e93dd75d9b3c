package trainer

import (
	"fmt"
	"slices"
	"time"

	"courier/schemas"
)

const (
	// staleShare is the maximum weight of all stale examples, relative to the current ones. They
	// still show how configurations differ, but not how long they take now.
	staleShare = 0.25
	// maxDrifts is the number of drifts in memory.
	maxDrifts = 16
)

// knownDrift makes examples of a scope from before an instant stale. ratio is the time since then
// relative to the time before.
type knownDrift struct {
	scope DriftScope
	from  time.Time
	ratio float64
}

// isStale reports whether the drift changed jobs of a model level on nodes since an instant.
func (d knownDrift) isStale(at time.Time, level string, nodes []string) bool {
	return at.Before(d.from) && d.scope.covers(&JobResidual{Model: level, Nodes: nodes})
}

// anyStale reports whether any of the drifts makes an example stale.
func anyStale(drifts []knownDrift, at time.Time, level string, nodes []string) bool {
	return slices.ContainsFunc(drifts, func(d knownDrift) bool {
		return d.isStale(at, level, nodes)
	})
}

// correctStale corrects the examples of times that drifts made stale. A stale example is left out
// if its configuration has a current one. The others are scaled by the measured ratio of each
// drift, and together get at most staleShare of the weight of the current examples. Without current
// examples nothing changes.
func correctStale(examples []Example, drifts []knownDrift) []Example {
	setting := func(x *Example) string {
		f := x.Features
		f.EpochsDone, f.ModelCode, f.Node = 0, 0, schemas.NodeCode{}
		return fmt.Sprint(x.level(), x.Hardware.Rounded(), f)
	}
	stale := make([]bool, len(examples))
	isCurrent := map[string]bool{}
	var current, old float64
	for i := range examples {
		x := &examples[i]
		if stale[i] = anyStale(drifts, x.At, x.level(), x.Nodes); !stale[i] {
			isCurrent[setting(x)] = true
			current += x.Weight
		}
	}
	if current == 0 {
		return examples
	}
	var kept []Example
	var scaled []int
	for i := range examples {
		x := examples[i]
		if stale[i] && isCurrent[setting(&x)] {
			continue
		}
		if stale[i] {
			scaled, old = append(scaled, len(kept)), old+x.Weight
			for _, d := range drifts {
				if d.isStale(x.At, x.level(), x.Nodes) {
					x.Value *= d.ratio
				}
			}
		}
		kept = append(kept, x)
	}
	for _, i := range scaled {
		kept[i].Weight *= min(1, staleShare*current/old)
	}
	return kept
}

// drift returns the event of a finding.
func (f *Finding) drift(
	target, digest string, cause uint64, at time.Time, changes []string,
) *schemas.Drift {
	e := &schemas.Drift{
		Target:         target,
		CauseSequence:  cause,
		ModelDigest:    digest,
		Scope:          f.Cause.Kind,
		SinceAt:        f.Since,
		Ratio:          f.Ratio,
		BeforeRatio:    f.BeforeRatio,
		Jobs:           uint32(f.Jobs),
		RestJobs:       uint32(f.RestJobs),
		ExplainedRatio: f.Explained,
		Detector:       "page_hinkley/" + f.Detector.String(),
		Statistic:      f.Statistic,
		Threshold:      f.Threshold,
		Deviation:      f.Deviation,
		WindowJobs:     uint32(f.WindowJobs),
		WindowSinceAt:  f.WindowSince,
		KnownChanges:   changes,
	}
	e.EventID, e.At = schemas.DriftID(target, cause), at
	e.CoverageRatio = f.Coverage
	subject := "jobs"
	switch f.Cause.Kind {
	case ScopeNode:
		e.Node, subject = f.Cause.Name, "jobs on node "+f.Cause.Name
	case ScopeModel:
		e.Model, e.Dataset = schemas.ParseModelLevel(f.Cause.Name)
		if subject = "jobs of model " + e.Model; e.Dataset != "" {
			subject += " on dataset " + e.Dataset
		}
	}
	e.Message = fmt.Sprintf(
		"%s take %.2f times as long as predicted since %s (%d jobs; before: %.2f times", subject,
		f.Ratio, formatTime(f.Since), f.Jobs, f.BeforeRatio)
	if f.RestJobs > 0 {
		e.RestRatio = &f.RestRatio
		e.Message += fmt.Sprintf("; all others: %.2f times, %d jobs", f.RestRatio, f.RestJobs)
	}
	e.Message += ")"
	return e
}

// causeOf returns the scope of a drift event.
func causeOf(e *schemas.Drift) DriftScope {
	switch e.Scope {
	case ScopeNode:
		return DriftScope{e.Scope, e.Node}
	case ScopeModel:
		return DriftScope{e.Scope, schemas.ModelLevel(e.Model, e.Dataset)}
	}
	return DriftScope{Kind: e.Scope}
}

// String is "all", "node/<node>" or "model/<model>".
func (s DriftScope) String() string {
	if s.Kind == ScopeAll {
		return s.Kind
	}
	return s.Kind + "/" + s.Name
}
