package report

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Kinds of moments.
const (
	momentTrained  = "trained"
	momentPromoted = "promoted"
	momentReplaced = "replaced"
	momentRejected = "rejected"
	momentDrift    = "drift"
	momentDriftEnd = "drift_end" // a correction of drift ended
)

// Moment is an event in the history of a regressor.
type Moment struct {
	At          time.Time `json:"at"`
	Kind        string    `json:"kind"` // one of the constants above
	Target      string    `json:"target"`
	ModelDigest string    `json:"model_digest"`         // SHA-256 of the regressor in hex
	Other       string    `json:"other,omitempty"`      // SHA-256 of the regressor that it replaced or was replaced by
	DecidedBy   string    `json:"decided_by,omitempty"` // of a promotion
	Reason      string    `json:"reason"`               // in words
}

// ReadLife reads the moments of a regressor from the REGRESSOR stream, in the order of the log.
// Regressors of two targets may have the same digest.
func ReadLife(ctx context.Context, b *bus.Bus, target, digest string) ([]Moment, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	moments, seen := []Moment{}, map[string]bool{}
	err := b.Read(ctx, bus.FollowOptions{
		Stream: schemas.StreamRegressor,
	}, func(r bus.Record) error {
		if !seen[r.Event.ID()] {
			seen[r.Event.ID()] = true
			moments = append(moments, slices.DeleteFunc(momentsOf(r.Event), func(m Moment) bool {
				return m.Target != target || m.ModelDigest != digest
			})...)
		}
		return nil
	})
	return moments, err
}

// momentsOf converts an event to the moments of the regressors that it changes.
func momentsOf(e schemas.Event) []Moment {
	switch e := e.(type) {
	case *schemas.Trained:
		return []Moment{{e.At, momentTrained, e.Target, e.ModelDigest, "", "", e.Reason}}
	case *schemas.Promoted:
		all := []Moment{{e.At, momentPromoted, e.Target, e.ModelDigest, e.Replaced, e.DecidedBy, e.Reason}}
		if e.Replaced != "" && e.Replaced != e.ModelDigest {
			all = append(all,
				Moment{e.At, momentReplaced, e.Target, e.Replaced, e.ModelDigest, "", e.Reason})
		}
		return all
	case *schemas.Rejected:
		return []Moment{{e.At, momentRejected, e.Target, e.ModelDigest, "", "", e.Reason}}
	case *schemas.Drift:
		kind := momentDrift
		if e.State == schemas.DriftReplaced || e.State == schemas.DriftWithdrawn {
			kind = momentDriftEnd
		}
		return []Moment{{e.At, kind, e.Target, e.ModelDigest, "", "", e.Message}}
	}
	return nil
}

// FindRegressor returns the champion of a target, or the only regressor whose digest begins with
// name.
func FindRegressor(all []schemas.RegressorVersion, name string) (*schemas.RegressorVersion, error) {
	if slices.Contains(schemas.Targets(), name) {
		k := slices.IndexFunc(all, func(v schemas.RegressorVersion) bool {
			return v.Target == name && v.State == schemas.RegressorChampion
		})
		if k < 0 {
			return nil, schemas.Errorf(schemas.CodeNotFound, "regressor", "there is no champion of %s yet", name)
		}
		return &all[k], nil
	}
	var found []*schemas.RegressorVersion
	for i := range all {
		if strings.HasPrefix(all[i].ModelDigest, name) {
			found = append(found, &all[i])
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, schemas.Errorf(schemas.CodeNotFound, "regressor",
			"no digest begins with %s; courier regressor list shows all", name)
	}
	slices.SortFunc(found, func(a, b *schemas.RegressorVersion) int {
		return cmp.Compare(a.ModelDigest, b.ModelDigest)
	})
	return nil, schemas.Invalid("regressor",
		"%d digests begin with %s, such as %.16s of %s and %.16s of %s: give more digits",
		len(found), name, found[0].ModelDigest, found[0].Target, found[1].ModelDigest,
		found[1].Target)
}
