package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

// regressorSet holds the regressors of a moment by target.
type regressorSet map[string]*decide.Regressor

// with returns the set with another regressor for a target.
func (s regressorSet) with(target string, r *decide.Regressor) regressorSet {
	next := maps.Clone(s)
	next[target] = r
	return next
}

// advisor returns the set for decide.Decide.
func (s regressorSet) advisor() decide.Regressors {
	return decide.Regressors{
		EpochTime: s[schemas.TargetEpochTime],
		Startup:   s[schemas.TargetStartup],
		Accuracy:  s[schemas.TargetAccuracy],
	}
}

// versions are the regressors that a log names.
type versions struct {
	log        *Log
	promotions []*schemas.Promoted          // oldest first
	loaded     map[string]*decide.Regressor // by digest of the manifest
}

func (l *Log) versions() *versions {
	return &versions{log: l, promotions: l.Promotions(), loaded: map[string]*decide.Regressor{}}
}

// load loads a promoted regressor from the artifacts of the log.
func (v *versions) load(p *schemas.Promoted) (*decide.Regressor, error) {
	if r := v.loaded[p.ManifestDigest]; r != nil {
		return r, nil
	}
	model, manifest := v.log.Artifacts[p.ModelDigest], v.log.Artifacts[p.ManifestDigest]
	if model == nil || manifest == nil {
		return nil, fmt.Errorf("the files of the %s regressor %.12s are not in the log",
			p.Target, p.ModelDigest)
	}
	r, err := decide.LoadRegressor(model, manifest)
	if err != nil {
		return nil, fmt.Errorf("load the %s regressor %.12s: %w", p.Target, p.ModelDigest, err)
	}
	v.loaded[p.ManifestDigest] = r
	return r, nil
}

// maxVersions bounds how many regressors of one digest are tried. Versions with equal medians have
// the same digest, and the advisor starts to use a version slightly before or after the log records
// it.
const maxVersions = 3

// named returns the sets of regressors with the given digests, ordered by how close to a time they
// were promoted.
func (v *versions) named(digests map[string]string, at time.Time) ([]regressorSet, error) {
	all := []regressorSet{{}}
	for _, target := range schemas.Targets() {
		digest, named := digests[target]
		if !named {
			continue
		}
		candidates := v.nearest(target, digest, at)
		if len(candidates) == 0 {
			return nil, fmt.Errorf("the log has no promotion of the %s regressor %.12s",
				target, digest)
		}
		var next []regressorSet
		for _, p := range candidates {
			r, err := v.load(p)
			if err != nil {
				return nil, err
			}
			for _, before := range all {
				next = append(next, before.with(target, r))
			}
		}
		all = next
	}
	return all, nil
}

// nearest returns the promotions of a regressor, each version once: those until a time, the newest
// first, then the later ones. An empty digest means any.
func (v *versions) nearest(target, digest string, at time.Time) []*schemas.Promoted {
	var all []*schemas.Promoted
	for _, p := range v.promotions {
		if p.Target == target && (digest == "" || p.ModelDigest == digest) {
			all = append(all, p)
		}
	}
	distance := func(p *schemas.Promoted) time.Duration {
		if p.At.After(at) {
			return 1<<62 + p.At.Sub(at)
		}
		return at.Sub(p.At)
	}
	slices.SortStableFunc(all, func(a, b *schemas.Promoted) int {
		return cmp.Compare(distance(a), distance(b))
	})

	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(p *schemas.Promoted) bool {
		isDuplicate := seen[p.ManifestDigest]
		seen[p.ManifestDigest] = true
		return isDuplicate
	})
	return all[:min(len(all), maxVersions)]
}

// champions returns the regressors that were in use at a time. Where the files of one are not in
// the log, its predecessor is returned, and an error that names the missing one.
func (v *versions) champions(at time.Time) (regressorSet, error) {
	all := regressorSet{}
	var missing error
	for _, target := range schemas.Targets() {
		for _, p := range v.nearest(target, "", at) {
			if p.At.After(at) {
				break
			}
			r, err := v.load(p)
			if err == nil {
				all[target] = r
				break
			}
			if missing == nil {
				missing = err
			}
		}
	}
	return all, missing
}
