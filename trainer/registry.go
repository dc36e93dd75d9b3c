package trainer

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"courier/regress/treefile"
	"courier/schemas"
)

// filesOfChampions is the number of champions whose files are kept, including the current one.
const filesOfChampions = 8

// Registry holds the state of every regressor, replayed from the REGRESSOR stream.
type Registry struct {
	seen    []string // IDs of the last events, to ignore duplicates
	targets map[string]*targetRegistry
}

// targetRegistry holds the regressors of one target.
type targetRegistry struct {
	versions    map[string]*schemas.RegressorVersion // by the digest of the model
	pruned      map[string]bool                      // digests whose files this process has dropped
	champions   []string                             // digests in the order of their promotions
	corrections map[string]*schemas.Drift            // active ones, as published
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{targets: map[string]*targetRegistry{}}
}

const (
	// maxSeenEvents is the number of events in which duplicates are detected. A trainer repeats an
	// event only right after a failed publish, or at its start.
	maxSeenEvents = 1024
	// maxVersions is the number of versions of a target in memory, in addition to versions whose
	// files are kept.
	maxVersions = 2 * maxListed
	// maxChampions is the number of promotions of a target in memory.
	maxChampions = 64
)

func (l *Registry) target(target string) *targetRegistry {
	r := l.targets[target]
	if r == nil {
		r = &targetRegistry{
			versions:    map[string]*schemas.RegressorVersion{},
			pruned:      map[string]bool{},
			corrections: map[string]*schemas.Drift{},
		}
		l.targets[target] = r
	}
	return r
}

// Apply applies the next event. It ignores events that are not about regressors.
func (l *Registry) Apply(e schemas.Event) {
	if slices.Contains(l.seen, e.ID()) {
		return
	}
	l.seen = append(l.seen[max(0, len(l.seen)+1-maxSeenEvents):], e.ID())
	switch e := e.(type) {
	case *schemas.Trained:
		l.target(e.Target).trained(e)
		l.target(e.Target).forget()
	case *schemas.Promoted:
		l.target(e.Target).promoted(e)
		l.target(e.Target).forget()
	case *schemas.Rejected:
		l.target(e.Target).rejected(e)
	case *schemas.Drift:
		l.target(e.Target).corrected(e)
	}
}

func (r *targetRegistry) trained(e *schemas.Trained) {
	r.versions[e.ModelDigest] = &schemas.RegressorVersion{
		Target:     e.Target,
		Fitted:     e.Fitted,
		State:      schemas.RegressorTrained,
		TrainedAt:  e.At,
		TrainedFor: e.Reason,
	}
	delete(r.pruned, e.ModelDigest) // a repeated fit has stored its files again
}

func (r *targetRegistry) promoted(e *schemas.Promoted) {
	v := r.versions[e.ModelDigest]
	if v == nil { // its trained event is missing
		v = &schemas.RegressorVersion{Target: e.Target, TrainedAt: e.At, TrainedFor: e.Reason}
		r.versions[e.ModelDigest] = v
	}
	v.Fitted, v.FitSeconds = e.Fitted, max(e.FitSeconds, v.FitSeconds)
	if before := r.versions[r.champion()]; before != nil && before != v {
		before.State, before.ReplacedAt = schemas.RegressorFormer, e.At
	}
	v.State = schemas.RegressorChampion
	v.PromotedAt, v.ReplacedAt = e.At, time.Time{}
	v.Revision = e.Revision
	v.Grounds = e.Grounds
	r.champions = append(r.champions[max(0, len(r.champions)+1-maxChampions):], e.ModelDigest)
}

// forget drops the oldest version beyond maxVersions. Versions whose files are kept stay.
func (r *targetRegistry) forget() {
	if len(r.versions) <= maxVersions {
		return
	}
	keep := r.keptFiles()
	var oldest *schemas.RegressorVersion
	for digest, v := range r.versions {
		if !keep[digest] && (oldest == nil || trainedBefore(v, oldest)) {
			oldest = v
		}
	}
	if oldest != nil {
		delete(r.versions, oldest.ModelDigest)
		delete(r.pruned, oldest.ModelDigest)
	}
}

func trainedBefore(v, other *schemas.RegressorVersion) bool {
	if !v.TrainedAt.Equal(other.TrainedAt) {
		return v.TrainedAt.Before(other.TrainedAt)
	}
	return v.ModelDigest < other.ModelDigest
}

// rejected applies the event of an advisor that refuses to use a regressor.
func (r *targetRegistry) rejected(e *schemas.Rejected) {
	v := r.versions[e.ModelDigest]
	if v == nil {
		return
	}
	if v.RejectedAt = e.At; v.State == schemas.RegressorTrained {
		v.State, v.Reason = schemas.RegressorRejected, e.Reason
	}
}

// champion returns the digest of the champion's model; "" if there is none.
func (r *targetRegistry) champion() string {
	if len(r.champions) == 0 {
		return ""
	}
	return r.champions[len(r.champions)-1]
}

// former returns the digest of the previous champion; "" if there is none.
func (r *targetRegistry) former() string {
	for _, digest := range slices.Backward(r.champions) {
		if digest != r.champion() {
			return digest
		}
	}
	return ""
}

// keptFiles returns the digests of the last champions, whose files are kept.
func (r *targetRegistry) keptFiles() map[string]bool {
	keep := map[string]bool{}
	for _, digest := range slices.Backward(r.champions) {
		if len(keep) < filesOfChampions {
			keep[digest] = true
		}
	}
	return keep
}

// maxListed is the number of listed regressors of a target in addition to regressors with files.
const maxListed = 100

// List returns the regressors of a target, or of all targets (""), by target and newest first: the
// last maxListed and all regressors whose files are kept.
func (l *Registry) List(target string) []schemas.RegressorVersion {
	all := []schemas.RegressorVersion{}
	for _, name := range slices.Sorted(maps.Keys(l.targets)) {
		if target != "" && name != target {
			continue
		}
		r := l.targets[name]
		keep, first := r.keptFiles(), len(all)
		for _, digest := range slices.Sorted(maps.Keys(r.versions)) {
			v := *r.versions[digest]
			v.Kept = keep[digest]
			if digest == r.champion() {
				v.Corrections = r.activeCorrections()
			}
			all = append(all, v)
		}
		own := all[first:]
		slices.SortStableFunc(own, func(a, b schemas.RegressorVersion) int {
			return b.TrainedAt.Compare(a.TrainedAt)
		})
		for i, v := range own {
			if i < maxListed || v.Kept {
				all[first] = v
				first++
			}
		}
		all = all[:first]
	}
	return all
}

// find returns the regressor of a target whose digest has a prefix.
func (l *Registry) find(target, digits string) (*schemas.RegressorVersion, error) {
	var found *schemas.RegressorVersion
	for digest, v := range l.target(target).versions {
		if !strings.HasPrefix(digest, digits) {
			continue
		}
		if found != nil {
			return nil, schemas.Invalid("model_digest",
				"%q matches several regressors of %s: give more digits", digits, target)
		}
		found = v
	}
	if found == nil {
		return nil, schemas.Errorf(schemas.CodeNotFound, "model_digest",
			"no regressor of %s begins with %s; regressor.list shows them", target, digits)
	}
	if !l.target(target).keptFiles()[found.ModelDigest] {
		return nil, schemas.Errorf(schemas.CodeNotFound, "model_digest",
			"the files of that regressor were dropped: only those of the last champions are kept")
	}
	return found, nil
}

// maxCorrections is the number of corrections in a registry; a state has at most four.
const maxCorrections = 64

// corrected applies an event about a correction.
func (r *targetRegistry) corrected(e *schemas.Drift) {
	key := correctionKey(e)
	switch {
	case e.State == schemas.DriftActive && len(r.corrections) < maxCorrections:
		r.corrections[key] = e
	case e.State != "":
		delete(r.corrections, key)
	}
}

// activeCorrections returns the active corrections by their begin.
func (r *targetRegistry) activeCorrections() []*schemas.Drift {
	return slices.SortedFunc(maps.Values(r.corrections), func(a, b *schemas.Drift) int {
		return cmp.Or(a.SinceAt.Compare(b.SinceAt), cmp.Compare(a.EventID, b.EventID))
	})
}

// loadedChampion is a champion loaded from its files.
type loadedChampion struct {
	manifest       *treefile.Manifest
	manifestDigest string
}
