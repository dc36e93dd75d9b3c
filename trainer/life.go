package trainer

import (
	"maps"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// keptChampions are the last regressors in use whose files stay, the present one
// included.
const keptChampions = 3

// Life is a fold over the REGRESSOR stream: every regressor, and what became of it.
type Life struct {
	seen    *lru[string, struct{}] // IDs of the last events: a copy changes nothing
	targets map[string]*reign
}

// reign is the life of a target's regressors.
type reign struct {
	versions   map[string]*schemas.RegressorVersion // by the digest of the model
	since      map[string]uint64                    // of the JOB stream: what a challenger is judged on begins after it
	pruned     map[string]bool                      // whose files this process has dropped
	champions  []string                             // digests in the order in which they were put in use
	challenger string                               // "" if there is none

	corrections map[string]*schemas.Drift // that are active, as far as was told
}

// NewLife returns the fold before the first event.
func NewLife() *Life {
	return &Life{seen: newLRU[string, struct{}](mostSeen), targets: map[string]*reign{}}
}

const (
	// mostSeen is the number of events among which a copy is noticed. A trainer publishes an
	// event again only right after it failed to, or at its start.
	mostSeen = 1024
	// mostVersions of a target are remembered beside those whose files are kept.
	mostVersions = 2 * mostListed
	// mostChampions is the number of past promotions of a target that are remembered.
	mostChampions = 64
)

func (l *Life) of(target string) *reign {
	r := l.targets[target]
	if r == nil {
		r = &reign{
			versions: map[string]*schemas.RegressorVersion{},
			since:    map[string]uint64{},
			pruned:   map[string]bool{},

			corrections: map[string]*schemas.Drift{},
		}
		l.targets[target] = r
	}
	return r
}

// Apply takes the next event; others than those of regressors change nothing.
func (l *Life) Apply(e schemas.Event) {
	if _, seen := l.seen.get(e.ID()); seen {
		return
	}
	l.seen.put(e.ID(), struct{}{})
	switch e := e.(type) {
	case *schemas.Trained:
		l.of(e.Target).trained(e)
		l.of(e.Target).forget()
	case *schemas.Promoted:
		l.of(e.Target).promoted(e)
		l.of(e.Target).forget()
	case *schemas.Rejected:
		l.of(e.Target).rejected(e)
	case *schemas.Drift:
		l.of(e.Target).corrected(e)
	}
}

func (r *reign) trained(e *schemas.Trained) {
	r.passOver()
	v := &schemas.RegressorVersion{
		Target:     e.Target,
		Fitted:     e.Fitted,
		State:      schemas.RegressorChallenger,
		TrainedAt:  e.At,
		TrainedFor: e.Reason,
	}
	v.Rival, v.Reason = e.Rival, "not judged yet"
	r.versions[e.ModelDigest], r.since[e.ModelDigest], r.challenger = v, e.SinceSequence, e.ModelDigest
	delete(r.pruned, e.ModelDigest) // fitted again: its files are there again
}

// passOver ends the trial of a challenger before it was judged.
func (r *reign) passOver() {
	if c := r.versions[r.challenger]; c != nil {
		c.State, c.Reason = schemas.RegressorUntried, "another took its place before it was judged"
	}
	r.challenger = ""
}

func (r *reign) promoted(e *schemas.Promoted) {
	v := r.versions[e.ModelDigest]
	if v == nil { // put in use at once
		v = &schemas.RegressorVersion{Target: e.Target, TrainedAt: e.At, TrainedFor: e.Reason}
		r.versions[e.ModelDigest] = v
	}
	v.Fitted = schemas.Fitted{
		ModelDigest:         e.ModelDigest,
		ManifestDigest:      e.ManifestDigest,
		Family:              e.Family,
		Examples:            e.Examples,
		Settings:            e.Settings,
		MeanSquaredError:    e.MeanSquaredError,
		MedianAbsoluteRatio: e.MedianAbsoluteRatio,
		R2:                  e.R2,
		FitSeconds: max(
			e.FitSeconds, v.FitSeconds,
		),
	}
	if before := r.versions[r.champion()]; before != nil && before != v {
		before.State, before.ReplacedAt = schemas.RegressorFormer, e.At
	}
	if r.challenger == e.ModelDigest {
		r.challenger = ""
	}
	r.passOver()
	v.State, v.PromotedAt, v.ReplacedAt, v.Revision = schemas.RegressorChampion, e.At, time.Time{}, e.Revision
	v.Grounds = schemas.Grounds{
		Reason:        e.Reason,
		DecidedBy:     e.DecidedBy,
		Rival:         e.Rival,
		SinceSequence: e.SinceSequence,
		Judgement:     e.Judgement,
	}
	r.champions = append(r.champions[max(0, len(r.champions)+1-mostChampions):], e.ModelDigest)
}

// forget drops the versions that were trained first, beyond mostVersions. Versions whose files
// are kept stay.
func (r *reign) forget() {
	if len(r.versions) <= mostVersions {
		return
	}
	keep := r.keeps()
	var oldest *schemas.RegressorVersion
	for digest, v := range r.versions {
		if !keep[digest] && (oldest == nil || trainedBefore(v, oldest)) {
			oldest = v
		}
	}
	if oldest != nil {
		delete(r.versions, oldest.ModelDigest)
		delete(r.since, oldest.ModelDigest)
		delete(r.pruned, oldest.ModelDigest)
	}
}

func trainedBefore(v, other *schemas.RegressorVersion) bool {
	if !v.TrainedAt.Equal(other.TrainedAt) {
		return v.TrainedAt.Before(other.TrainedAt)
	}
	return v.ModelDigest < other.ModelDigest
}

func (r *reign) rejected(e *schemas.Rejected) {
	v := r.versions[e.ModelDigest]
	if v == nil {
		return // never said to be trained: it cannot be promoted either
	}
	if v.RejectedAt = e.At; r.challenger == e.ModelDigest {
		r.challenger, v.State = "", schemas.RegressorRejected
		v.Grounds = schemas.Grounds{Reason: e.Reason, Rival: e.Rival, Judgement: e.Judgement}
	}
}

// champion is the digest of the model in use; "" if there is none.
func (r *reign) champion() string {
	if len(r.champions) == 0 {
		return ""
	}
	return r.champions[len(r.champions)-1]
}

// former is the digest of what was in use before the champion; "" if nothing was.
func (r *reign) former() string {
	for _, digest := range slices.Backward(r.champions) {
		if digest != r.champion() {
			return digest
		}
	}
	return ""
}

// contest is who may follow the champion, and from when on both are compared.
type contest struct {
	champion, rival *schemas.RegressorVersion
	since           uint64 // of the JOB stream
	back            bool   // the rival is the champion before
}

// contest returns who is compared with the champion: a challenger; else the
// champion before, if it was replaced without anybody asking for it.
func (r *reign) contest() (c contest, found bool) {
	if r.champion() == "" {
		return c, false
	}
	c.champion = r.versions[r.champion()]
	if c.rival = r.versions[r.challenger]; c.rival != nil {
		c.since = r.since[r.challenger]
		return c, true
	}
	by := c.champion.DecidedBy
	if c.rival = r.versions[r.former()]; c.rival == nil || by != schemas.DecidedTest &&
		by != schemas.DecidedGrowth {
		return c, false
	}
	c.since, c.back = c.champion.SinceSequence, true
	return c, true
}

// keeps tells which files stay: those of the last champions and of the challenger.
func (r *reign) keeps() map[string]bool {
	keep := map[string]bool{}
	for _, digest := range slices.Backward(r.champions) {
		if len(keep) < keptChampions {
			keep[digest] = true
		}
	}
	if r.challenger != "" {
		keep[r.challenger] = true
	}
	return keep
}

// mostListed of a target are listed, and those whose files are kept.
const mostListed = 100

// List returns the regressors of a target, or of all ("") by name of the target,
// the newest first: the last mostListed, and those that are kept.
func (l *Life) List(target string) []schemas.RegressorVersion {
	all := []schemas.RegressorVersion{}
	for _, name := range slices.Sorted(maps.Keys(l.targets)) {
		if target != "" && name != target {
			continue
		}
		r := l.targets[name]
		keep, first := r.keeps(), len(all)
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
			if i < mostListed || v.Kept {
				all[first] = v
				first++
			}
		}
		all = all[:first]
	}
	return all
}

// find returns the one regressor of a target whose digest begins so.
func (l *Life) find(target, digits string) (*schemas.RegressorVersion, error) {
	var found *schemas.RegressorVersion
	for digest, v := range l.of(target).versions {
		if !strings.HasPrefix(digest, digits) {
			continue
		}
		if found != nil {
			return nil, schemas.Invalid("model_digest",
				"more than one regressor of %s begins with %s: name more digits", target, digits)
		}
		found = v
	}
	if found == nil {
		return nil, &schemas.Error{
			Code:  schemas.CodeNotFound,
			Field: "model_digest",
			Message: "no regressor of " + target + " begins with " + digits +
				"; regressor.list shows them",
		}
	}
	if !l.of(target).keeps()[found.ModelDigest] {
		return nil, &schemas.Error{
			Code:    schemas.CodeNotFound,
			Field:   "model_digest",
			Message: "the files of that regressor are no longer kept: only those of the last champions and of the challenger are",
		}
	}
	return found, nil
}
