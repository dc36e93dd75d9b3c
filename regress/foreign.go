package regress

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FamilyLightGBM is the family of regressors that ReadLightGBM reads.
const FamilyLightGBM = "lightgbm"

// ReadLightGBM reads a regressor that LightGBM wrote (text of version 3 or 4,
// numerical features, one of the objectives regression, regression_l1, huber
// and quantile), with the checks of Decode. It predicts as LightGBM does. Ranges
// of the features are those of the file; there is no calibration, hence no
// bound. Target and unit are the caller's names for what is predicted. An error
// wraps ErrBadFile and names line and field.
func ReadLightGBM(model []byte, target, unit string) (*Regressor, error) {
	p := &parser{text: string(model), foreign: true, manifest: &Manifest{
		Format: manifestFormat, Target: target, Unit: unit, Transform: None, Smearing: 1, Family: FamilyLightGBM}}
	r, err := p.regressor()
	if err != nil {
		return nil, fmt.Errorf("read LightGBM regressor of %s: %w: line %d: %w", target, ErrBadFile, p.line, err)
	}
	return r, nil
}

// foreignHeader reads up to the blank line before the first tree, as header
// does, but learns from it what a manifest would say.
func (p *parser) foreignHeader(r *Regressor) ([]int, error) {
	if err := p.expect("tree"); err != nil {
		return nil, err
	}
	if version, err := p.field("version"); err != nil || version != "v3" && version != "v4" {
		return nil, fmt.Errorf("version %.30q, want v3 or v4", version)
	}
	if err := p.expect("num_class=1", "num_tree_per_iteration=1", "label_index=0"); err != nil {
		return nil, err
	}
	highest, err := p.field("max_feature_idx")
	if err != nil {
		return nil, err
	}
	if r.average, err = p.objective(); err != nil {
		return nil, err
	}
	if err := p.foreignFeatures(); err != nil {
		return nil, err
	}
	r.Manifest = *p.manifest
	if want := strconv.Itoa(len(p.manifest.Features) - 1); highest != want {
		return nil, fmt.Errorf("max_feature_idx is %.30q, want %s", highest, want)
	}
	return p.sizes()
}

// foreignFeatures reads names, signs and ranges of the features. A feature that
// never varied has no range in the file; it becomes 0 to 0.
func (p *parser) foreignFeatures() error {
	value, err := p.field("feature_names")
	if err != nil {
		return err
	}
	features := make([]FeatureRange, strings.Count(value, " ")+1)
	for i, name := range strings.Split(value, " ") {
		features[i].Name = name
	}
	if p.peek("monotone_constraints=") {
		if err := p.integers("monotone_constraints", len(features), -1, 1, func(i, x int) { features[i].Monotone = x }); err != nil {
			return err
		}
	}
	infos, err := p.list("feature_infos", len(features))
	if err != nil {
		return err
	}
	for i, info := range strings.Split(infos, " ") {
		if info == "none" {
			continue
		}
		low, high, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(info, "["), "]"), ":")
		f := &features[i]
		var first, second error
		f.Min, first = number64(low)
		f.Max, second = number64(high)
		if first != nil || second != nil || !strings.HasPrefix(info, "[") || !strings.HasSuffix(info, "]") || f.Min > f.Max {
			return fmt.Errorf("feature_infos, entry %d: %.60q is no range of a number", i, info)
		}
	}
	p.manifest.Features = features
	return checkFeatures(p.manifest.features())
}

// objective reads the objective and whether trees are averaged.
func (p *parser) objective() (average bool, err error) {
	objective, err := p.field("objective")
	if err != nil {
		return false, err
	}
	if !slices.Contains(objectives, objective) {
		return false, fmt.Errorf("objective %.60q, want one of %s", objective, strings.Join(objectives, ", "))
	}
	if average = p.peek("average_output\n"); average {
		err = p.expect("average_output")
	}
	return average, err
}
