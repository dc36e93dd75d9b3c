package replay

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

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
func (v *versions) named(digests map[string]string, at time.Time) ([]decide.Regressors, error) {
	all := []decide.Regressors{{}}
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
		var next []decide.Regressors
		for _, p := range candidates {
			r, err := v.load(p)
			if err != nil {
				return nil, err
			}
			for _, before := range all {
				set, _ := before.With(target, r)
				next = append(next, set)
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

	var manifests []string
	all = slices.DeleteFunc(all, func(p *schemas.Promoted) bool {
		manifests = append(manifests, p.ManifestDigest)
		return slices.Contains(manifests[:len(manifests)-1], p.ManifestDigest)
	})
	return all[:min(len(all), maxVersions)]
}

// champions returns the regressors that were in use at a time.
func (v *versions) champions(at time.Time) (all decide.Regressors, err error) {
	for _, target := range schemas.Targets() {
		nearest := v.nearest(target, "", at)
		if len(nearest) == 0 || nearest[0].At.After(at) {
			continue
		}
		r, err := v.load(nearest[0])
		if err != nil {
			return all, err
		}
		all, _ = all.With(target, r)
	}
	return all, nil
}
