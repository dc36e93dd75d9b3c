package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/trainer"
)

// What happens in the life of a regressor.
const (
	momentTrained  = "trained"
	momentPromoted = "promoted"
	momentReplaced = "replaced"
	momentRejected = "rejected"
	momentDrift    = "drift"
	momentDriftEnd = "drift_end" // of what was corrected
)

// moment is something that happened to a regressor.
type Moment struct {
	At          time.Time `json:"at"`
	Kind        string    `json:"kind"` // "trained", "promoted", "replaced", "rejected", "drift" or "drift_end"
	Target      string    `json:"target"`
	ModelDigest string    `json:"model_digest"`         // sha256, in hex: whose moment it is
	Other       string    `json:"other,omitempty"`      // sha256 of the model that it was compared with, or that came instead
	DecidedBy   string    `json:"decided_by,omitempty"` // of a promotion
	Reason      string    `json:"reason"`               // in words
	schemas.Judgement
}

// Life is all that the log tells of regressors.
type Life struct {
	versions []schemas.RegressorVersion // by target; the newest first
	moments  []Moment                   // in the order of the log
}

// ReadLife reads the REGRESSOR stream to its end.
func ReadLife(ctx context.Context, b *bus.Bus) (*Life, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fold, l := trainer.NewRegistry(), &Life{}
	seen := map[string]bool{}
	err := b.Read(ctx, bus.FollowOptions{
		Stream: schemas.StreamRegressor,
	}, func(r bus.Record) error {
		fold.Apply(r.Event)
		if !seen[r.Event.ID()] {
			seen[r.Event.ID()] = true
			l.moments = append(l.moments, momentsOf(r.Event)...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.versions = fold.List("")
	return l, nil
}

// momentsOf says whose life an event changes, and how.
func momentsOf(e schemas.Event) []Moment {
	switch e := e.(type) {
	case *schemas.Trained:
		return []Moment{{
			At:          e.At,
			Kind:        momentTrained,
			Target:      e.Target,
			ModelDigest: e.ModelDigest,
			Other:       e.Rival,
			Reason:      e.Reason,
		}}
	case *schemas.Promoted:
		all := []Moment{{
			At:          e.At,
			Kind:        momentPromoted,
			Target:      e.Target,
			ModelDigest: e.ModelDigest,
			Other:       e.Rival,
			DecidedBy:   e.DecidedBy,
			Reason:      e.Reason,
			Judgement:   e.Judgement,
		}}
		if e.Rival != "" && e.Rival != e.ModelDigest {
			all = append(all, Moment{
				At:          e.At,
				Kind:        momentReplaced,
				Target:      e.Target,
				ModelDigest: e.Rival,
				Other:       e.ModelDigest,
				Reason:      e.Reason,
			})
		}
		return all
	case *schemas.Rejected:
		return []Moment{{
			At:          e.At,
			Kind:        momentRejected,
			Target:      e.Target,
			ModelDigest: e.ModelDigest,
			Other:       e.Rival,
			Reason:      e.Reason,
			Judgement:   e.Judgement,
		}}
	case *schemas.Drift:
		kind := momentDrift
		if e.State == schemas.DriftReplaced || e.State == schemas.DriftWithdrawn {
			kind = momentDriftEnd
		}
		return []Moment{{
			At:          e.At,
			Kind:        kind,
			Target:      e.Target,
			ModelDigest: e.ModelDigest,
			Reason:      e.Message,
		}}
	}
	return nil
}

// of returns the life of one regressor. The same bytes may be fitted for two
// targets, so both are named.
func (l *Life) Of(target, digest string) []Moment {
	return slices.DeleteFunc(slices.Clone(l.moments), func(m Moment) bool {
		return m.Target != target || m.ModelDigest != digest
	})
}

// targets are those that have a life.
func (l *Life) targets() []string {
	var all []string
	for _, target := range schemas.Targets() {
		if slices.ContainsFunc(l.moments, func(m Moment) bool { return m.Target == target }) {
			all = append(all, target)
		}
	}
	return all
}

// judgementWords tells the figures of a comparison; "" if nothing was compared.
func judgementWords(j *schemas.Judgement) string {
	if j.JudgedJobs == 0 || j.Loss == nil || j.RivalLoss == nil {
		return ""
	}
	words := fmt.Sprintf("%d jobs of %d settings at level %g: loss %.4g against %.4g",
		j.JudgedJobs, j.JudgedSettings, j.JudgedLevel, *j.Loss, *j.RivalLoss)
	if j.LossDifferenceLow != nil && j.LossDifferenceHigh != nil {
		words += fmt.Sprintf(" (difference %.3g to %.3g)", *j.LossDifferenceLow,
			*j.LossDifferenceHigh)
	}
	if j.CoverageRatio != nil && j.RivalCoverageRatio != nil {
		words += fmt.Sprintf(", bound kept %.3f against %.3f", *j.CoverageRatio,
			*j.RivalCoverageRatio)
	}
	if j.GainedSettings+j.LostSettings > 0 {
		words += fmt.Sprintf(", %d settings gained, %d lost", j.GainedSettings, j.LostSettings)
	}
	return words
}

// find returns the one regressor that a target or the first digits of a digest name.
func FindRegressor(all []schemas.RegressorVersion, name string) (*schemas.RegressorVersion, error) {
	if slices.Contains(schemas.Targets(), name) {
		k := slices.IndexFunc(all, func(v schemas.RegressorVersion) bool {
			return v.Target == name && v.State == schemas.RegressorChampion
		})
		if k < 0 {
			return nil, &schemas.Error{
				Code:    schemas.CodeNotFound,
				Field:   "regressor",
				Message: "nothing is in use for " + name + " yet",
			}
		}
		return &all[k], nil
	}
	var found []*schemas.RegressorVersion
	for i := range all {
		if len(name) <= len(all[i].ModelDigest) && all[i].ModelDigest[:len(name)] == name {
			found = append(found, &all[i])
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, &schemas.Error{
			Code:    schemas.CodeNotFound,
			Field:   "regressor",
			Message: "none begins with " + name + "; courier regressor list shows them",
		}
	}
	slices.SortFunc(found, func(a, b *schemas.RegressorVersion) int {
		return cmp.Compare(a.ModelDigest, b.ModelDigest)
	})
	return nil, schemas.Invalid("regressor",
		"%d begin with %s, such as %.16s of %s and %.16s of %s: name more digits",
		len(found), name, found[0].ModelDigest, found[0].Target, found[1].ModelDigest,
		found[1].Target)
}
