package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"courier/advisor"
	"courier/regress"
	"courier/schemas"
	"courier/simulate"
)

// servedVersion is a regressor of the past, as the advisor takes it and as a point rule.
type servedVersion struct {
	served *advisor.Regressor
	point  *simulate.PointRegressor
}

func newVersion(p *regress.Predictor, digest string) (*servedVersion, error) {
	served, err := advisor.NewRegressor(p, digest)
	if err != nil {
		return nil, err
	}
	point, err := simulate.NewPointRegressor(p, digest)
	return &servedVersion{served, point}, err
}

// regressorSet are the regressors of a moment, by target.
type regressorSet map[string]*servedVersion

// with returns the set with the regressor of a target replaced.
func (s regressorSet) with(target string, v *servedVersion) regressorSet {
	next := maps.Clone(s)
	next[target] = v
	return next
}

// advisor returns the set as the advisor takes it.
func (s regressorSet) advisor() advisor.Regressors {
	var all advisor.Regressors
	for target, field := range map[string]**advisor.Regressor{schemas.TargetEpochTime: &all.EpochTime, schemas.TargetStartup: &all.Startup, schemas.TargetAccuracy: &all.Accuracy} {
		if v := s[target]; v != nil {
			*field = v.served
		}
	}
	return all
}

// versions are the regressors that a log names.
type versions struct {
	log        *replayLog
	promotions []*schemas.Promoted       // oldest first
	loaded     map[string]*servedVersion // by manifest
}

func (l *replayLog) versions() *versions {
	v := &versions{log: l, loaded: map[string]*servedVersion{}}
	for i := range l.records {
		if p, ok := l.records[i].Event.(*schemas.Promoted); ok {
			v.promotions = append(v.promotions, p)
		}
	}
	return v
}

// load makes a promoted regressor ready to answer.
func (v *versions) load(p *schemas.Promoted) (*servedVersion, error) {
	if r := v.loaded[p.ManifestDigest]; r != nil {
		return r, nil
	}
	model, manifest := v.log.artifacts[p.ModelDigest], v.log.artifacts[p.ManifestDigest]
	if model == nil || manifest == nil {
		return nil, fmt.Errorf("the files of the %s regressor %.12s are not in the log", p.Target, p.ModelDigest)
	}
	loaded, err := regress.Load(model, manifest)
	if err != nil {
		return nil, fmt.Errorf("load the %s regressor %.12s: %w", p.Target, p.ModelDigest, err)
	}
	r, err := newVersion(loaded, p.ModelDigest)
	if err != nil {
		return nil, fmt.Errorf("load the %s regressor %.12s: %w", p.Target, p.ModelDigest, err)
	}
	v.loaded[p.ManifestDigest] = r
	return r, nil
}

// mostVersions bounds how many regressors of one name are tried: a law's trees
// are a single leaf, so that versions share their name, and an advisor takes one
// into use a moment before or after the log tells of it.
const mostVersions = 3

// named returns the regressors of the given digests, the one that was in use at
// a time first, then its neighbours.
func (v *versions) named(digests map[string]string, at time.Time) ([]regressorSet, error) {
	all := []regressorSet{{}}
	for _, target := range schemas.Targets() {
		digest, named := digests[target]
		if !named {
			continue
		}
		candidates := v.nearest(target, digest, at)
		if len(candidates) == 0 {
			return nil, fmt.Errorf("the log does not tell of the %s regressor %.12s", target, digest)
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

// nearest returns the promotions of a regressor: those until a time, newest
// first, then those after it; each version once.
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
	slices.SortStableFunc(all, func(a, b *schemas.Promoted) int { return cmp.Compare(distance(a), distance(b)) })
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(p *schemas.Promoted) bool {
		again := seen[p.ManifestDigest]
		seen[p.ManifestDigest] = true
		return again
	})
	return all[:min(len(all), mostVersions)]
}

// inUse returns the regressors that were in use at a time, as far as the log
// tells and holds them. The error is about the first that it does not hold; the
// one before it stands in then.
func (v *versions) inUse(at time.Time) (regressorSet, error) {
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

// of returns the regressors that answered a submission, some replaced.
func (v *versions) of(e *schemas.Submitted, replaced regressorSet) regressorSet {
	set, _ := v.inUse(e.Advice.At) // the verification says what is missing
	if named, err := v.named(e.Advice.Regressors, e.Advice.At); err == nil {
		set = named[0]
	}
	for target, r := range replaced {
		set = set.with(target, r)
	}
	return set
}

// given loads a regressor that a person names: a directory that courier regressor
// fit wrote, or the beginning of the digest of one in the log.
func (v *versions) given(name string) (target string, r *servedVersion, err error) {
	var found *schemas.Promoted
	for _, p := range v.promotions {
		if len(name) >= 6 && (strings.HasPrefix(p.ModelDigest, name) || strings.HasPrefix(p.ManifestDigest, name)) {
			found = p
		}
	}
	if found != nil {
		r, err = v.load(found)
		return found.Target, r, err
	}
	p, err := loadRegressor(name)
	if err != nil {
		return "", nil, err
	}
	target = p.Manifest().Target
	if !slices.Contains(schemas.Targets(), target) {
		return "", nil, fmt.Errorf("%s predicts %s, want one of %s", name, target, strings.Join(schemas.Targets(), ", "))
	}
	if r, err = newVersion(p, p.Manifest().SHA256); err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return target, r, nil
}
