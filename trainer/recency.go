package trainer

import (
	"fmt"
	"slices"
	"time"

	"courier/schemas"
)

const (
	// staleShare is the most that all stale examples weigh together, beside those
	// that are true: they still tell how settings differ, not how long they take.
	staleShare = 0.25
	// keptDrifts are remembered for the weights; older ones are behind them.
	keptDrifts = 16
)

// drifted says that examples of a scope from before an instant are stale, and how
// many times as long the same takes since then.
type drifted struct {
	scope Scope
	from  time.Time
	ratio float64
}

// stale reports whether what happened at an instant with the level of a model on nodes is.
func (d drifted) stale(at time.Time, level string, nodes []string) bool {
	return at.Before(d.from) && d.scope.touches(&Outcome{Model: level, Nodes: nodes})
}

// anyStale is stale by any of some drifts.
func anyStale(drifts []drifted, at time.Time, level string, nodes []string) bool {
	return slices.ContainsFunc(drifts, func(d drifted) bool { return d.stale(at, level, nodes) })
}

// recent weighs examples of times that drifts made stale: one whose setting has a
// true one is left out, and all others together weigh a quarter of the true ones at
// most. They tell how settings differ, and how long they take only once they are
// stretched by as much as each drift was measured to change them. Where none is
// true, all stay as they are.
func recent(examples []Example, drifts []drifted) []Example {
	setting := func(x *Example) string {
		f := x.Features
		f.EpochsDone, f.ModelCode, f.Node = 0, 0, schemas.NodeCode{}
		return fmt.Sprint(x.level(), x.Hardware.Rounded(), f)
	}
	stale := make([]bool, len(examples))
	again := map[string]bool{}
	var fresh, old float64
	for i := range examples {
		x := &examples[i]
		if stale[i] = anyStale(drifts, x.At, x.level(), x.Nodes); !stale[i] {
			again[setting(x)] = true
			fresh += x.Weight
		}
	}
	if fresh == 0 {
		return examples
	}
	var kept []Example
	var weighed []int
	for i := range examples {
		x := examples[i]
		if stale[i] && again[setting(&x)] {
			continue
		}
		if stale[i] {
			weighed, old = append(weighed, len(kept)), old+x.Weight
			for _, d := range drifts {
				if d.stale(x.At, x.level(), x.Nodes) {
					x.Value *= d.ratio
				}
			}
		}
		kept = append(kept, x)
	}
	for _, i := range weighed {
		kept[i].Weight *= min(1, staleShare*fresh/old)
	}
	return kept
}

// drift makes the event of a finding.
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
		Detector: "page_hinkley/" +
			f.Detector.String(),
		Statistic:     f.Statistic,
		Threshold:     f.Threshold,
		Deviation:     f.Deviation,
		WindowJobs:    uint32(f.WindowJobs),
		WindowSinceAt: f.WindowSince,
		KnownChanges:  changes,
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
	e.Message = fmt.Sprintf("%s take %.2f times as long as predicted since %s (%d jobs; before: %.2f times",
		subject, f.Ratio, f.Since.UTC().Format(time.RFC3339), f.Jobs, f.BeforeRatio)
	if f.RestJobs > 0 {
		e.RestRatio = &f.RestRatio
		e.Message += fmt.Sprintf("; all others: %.2f times, %d jobs", f.RestRatio, f.RestJobs)
	}
	e.Message += ")"
	return e
}

// causeOf returns what an event says has drifted.
func causeOf(e *schemas.Drift) Scope {
	switch e.Scope {
	case ScopeNode:
		return Scope{e.Scope, e.Node}
	case ScopeModel:
		return Scope{e.Scope, schemas.ModelLevel(e.Model, e.Dataset)}
	}
	return Scope{Kind: e.Scope}
}

// String is "all", "node/<node>" or "model/<model>".
func (s Scope) String() string {
	if s.Kind == ScopeAll {
		return s.Kind
	}
	return s.Kind + "/" + s.Name
}
