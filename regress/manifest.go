package regress

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// manifestFormat is incremented when an older program could misread a manifest.
const manifestFormat = 1

// The families of regressors, fitted by FitForest, FitBoosting, FitLaw (with or without trees) and
// FitGaussian.
const (
	FamilyForest   = "forest"
	FamilyBoosting = "boosting"
	FamilyLaw      = "law"
	FamilyLawTrees = "law+trees"
	FamilyGaussian = "gaussian"
	// FamilyHierarchy is the family of regressors whose file contains the medians of the
	// predictions by Manifest.Hierarchy.
	FamilyHierarchy = "hierarchy"
)

// Regressor is a fitted function of a row of features, with its manifest. It is immutable.
type Regressor struct {
	ensemble
	// Manifest describes the regressor. Callers may set the times of the examples and the version
	// of their program before they encode it.
	Manifest Manifest
}

// Manifest is the JSON document that accompanies a regressor's file.
type Manifest struct {
	// Format of this document; 1.
	Format int `json:"format"`
	// SHA256 (hexadecimal) and Length (bytes) of the file; set by EncodeManifest.
	SHA256 string `json:"sha256"`
	Length int    `json:"length"`
	// Target is the name of the predicted quantity, in Unit.
	Target string `json:"target"`
	Unit   string `json:"unit,omitempty"`
	// Transform of the target before the fit.
	Transform Transform `json:"transform"`
	// Smearing converts a prediction of the median to one of the mean (Duan 1983): the mean of
	// exp(residual) under Log, otherwise 1.
	Smearing float64 `json:"smearing"`
	// Spread is the standard deviation of the transformed targets. Outside the support, bounds
	// widen by at least Spread per range of a feature.
	Spread float64 `json:"spread"`
	// Features in the order of a row, with their support.
	Features []FeatureRange `json:"features"`
	// Family and options of the fit.
	Family      string           `json:"family"`
	Forest      *ForestOptions   `json:"forest,omitempty"`
	Boosting    *BoostingOptions `json:"boosting,omitempty"`
	LawFit      *LawOptions      `json:"law_fit,omitempty"`
	GaussianFit *GaussianOptions `json:"gaussian_fit,omitempty"`
	// Law or Gaussian is the function that the trees of the file correct; nil for trees alone.
	Law      *Law      `json:"law,omitempty"`
	Gaussian *Gaussian `json:"gaussian,omitempty"`
	// Constant reports that all targets were equal; the regressor is one leaf.
	Constant bool `json:"constant,omitempty"`
	// Hierarchy is the state of package evidence from which the predictions of FamilyHierarchy and
	// their distributions are computed.
	Hierarchy json.RawMessage `json:"hierarchy,omitempty"`
	// Evaluations of the hierarchy on held-out runs and configurations, by model.
	Evaluations json.RawMessage `json:"evaluations,omitempty"`
	// Examples of the fit.
	Examples Examples `json:"examples"`
	// Scores and Coverage of the out-of-fold predictions; absent if nothing could be held out.
	Scores   *Scores    `json:"scores,omitempty"`
	Coverage []Coverage `json:"coverage,omitempty"`
	// Calibration for bounds and probabilities.
	Calibration CalibrationTable `json:"calibration"`
	// LeftOut are the errors at left-out levels, by which bounds widen between and outside the
	// measured levels.
	LeftOut []LeftOutLevel `json:"left_out,omitempty"`
	// Version of the program that fitted the regressor, by the caller.
	Version string `json:"version,omitempty"`
}

// FeatureRange is a feature with its support.
type FeatureRange struct {
	Feature
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// Seen are the sorted indices of the levels of a category in the examples.
	Seen []int `json:"seen,omitempty"`
	// Measured are the values of a number with levels, such as a batch size: at most 32, each in
	// two configurations or more. It is empty for a number without levels.
	Measured []float64 `json:"measured,omitempty"`
}

// Examples describes the examples of a fit.
type Examples struct {
	// Count of examples, and of distinct Settings.
	Count    int `json:"count"`
	Settings int `json:"settings"`
	// Digest identifies the examples independently of their order.
	Digest string `json:"digest"`
	// First and Last are the times of the oldest and the newest example, set by the caller.
	First time.Time `json:"first_at,omitzero"`
	Last  time.Time `json:"last_at,omitzero"`
}

// describe returns a manifest of sorted examples; the caller sets the family.
func describe(d *Dataset, transform Transform) Manifest {
	m := Manifest{
		Format:    manifestFormat,
		Target:    d.TargetName,
		Unit:      d.TargetUnit,
		Transform: transform,
		Smearing:  1,
		Spread:    deviation(transform.apply(d.Target)),
		Constant:  slices.Min(d.Target) == slices.Max(d.Target),
		Examples:  Examples{Count: d.Len(), Settings: d.Settings(), Digest: d.digest()},
	}
	for f, feature := range d.Features {
		column := d.Columns[f]
		r := FeatureRange{Feature: feature, Min: slices.Min(column), Max: slices.Max(column)}
		if feature.Levels != nil {
			for _, x := range slices.Compact(slices.Sorted(slices.Values(column))) {
				r.Seen = append(r.Seen, int(x))
			}
		} else if feature.chosen() {
			r.Measured = measured(d.settingsOf(f))
		}
		m.Features = append(m.Features, r)
	}
	return m
}

// deviation returns the standard deviation. Numbers are scaled before they are squared, to avoid
// overflow.
func deviation(numbers []float64) float64 {
	size := 0.0
	for _, x := range numbers {
		size = max(size, math.Abs(x))
	}
	if size == 0 {
		return 0
	}
	n, mean, squares := float64(len(numbers)), 0.0, 0.0
	for _, x := range numbers {
		mean += x / size / n
	}
	for _, x := range numbers {
		squares += (x/size - mean) * (x/size - mean) / n
	}
	return min(math.Sqrt(squares)*size, math.MaxFloat64)
}

// calibrate sets smearing, calibration, scores and coverage from out-of-fold predictions in the
// unit of the fit. seed initializes the bootstrap of the scores.
func (m *Manifest) calibrate(d *Dataset, predicted []float64, folds []int, seed uint64) {
	fitted := m.Transform.apply(d.Target)
	residuals, smear := make([]float64, d.Len()), 0.0
	points := make([]float64, d.Len())
	for i, p := range predicted {
		residuals[i] = fitted[i] - p
		points[i] = m.Transform.invert(p)
		smear += math.Exp(residuals[i]) / float64(d.Len())
	}
	if m.Transform == Log {
		m.Smearing = min(smear, math.MaxFloat64)
	}
	m.Calibration = calibrateRows(d, residuals, all(d.Len()))
	scores := Score(d.Target, points, d.Group, seed)
	m.Scores = &scores
	for _, level := range []float64{0.5, 0.9, 0.95} {
		bounds := m.heldOutBounds(d, residuals, points, folds, level)
		m.Coverage = append(m.Coverage, Cover(d.Target, points, bounds, level))
	}
}

// all returns the numbers of n examples.
func all(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// heldOutBounds returns for each example the bound from the residuals of the other folds, like the
// bound of a later example.
func (m *Manifest) heldOutBounds(
	d *Dataset, residuals, points []float64, folds []int, level float64,
) []float64 {
	bounds := make([]float64, len(points))
	var row []float64
	for fold := range foldCount(folds) {
		others, own := deal(folds, fold)
		c := calibrateRows(d, residuals, others)
		for _, i := range own {
			row = d.Row(i, row)
			table := c.tableFor(row)
			bounds[i] = math.Inf(1)
			if k, known := table.entry(level); known {
				bounds[i] = m.Transform.move(points[i], table.Residuals[k])
			}
		}
	}
	return bounds
}

// EncodeManifest returns the manifest as JSON, with digest and length of the result of EncodeModel.
func (r *Regressor) EncodeManifest() ([]byte, error) {
	model := r.EncodeModel()
	digest := sha256.Sum256(model)
	m := r.Manifest
	m.SHA256, m.Length = hex.EncodeToString(digest[:]), len(model)
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest of %s: %w", m.Target, err)
	}
	return append(b, '\n'), nil
}

// readManifest reads and checks a manifest and compares it with its file. Unknown fields are
// ignored: a newer program may write more.
func readManifest(manifest, model []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(manifest, m); err != nil {
		return nil, fmt.Errorf("%w: manifest: %w", ErrBadFile, err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: manifest: %w", ErrBadFile, err)
	}
	if m.Length != len(model) {
		return nil, fmt.Errorf("%w: file has %d bytes, manifest says %d", ErrBadFile, len(model),
			m.Length)
	}
	if digest := sha256.Sum256(model); m.SHA256 != hex.EncodeToString(digest[:]) {
		return nil, fmt.Errorf("%w: sha256 of the file is %x, manifest says %q", ErrBadFile,
			digest, m.SHA256)
	}
	return m, nil
}

func (m *Manifest) check() error {
	if m.Format != manifestFormat {
		return fmt.Errorf("format is %d, want %d", m.Format, manifestFormat)
	}
	if m.Transform != None && m.Transform != Log {
		return fmt.Errorf("transform is %q", m.Transform)
	}
	if !(m.Smearing > 0) || !finite(m.Smearing) {
		return fmt.Errorf("smearing is %g, want a number above 0", m.Smearing)
	}
	if !(m.Spread >= 0) || !finite(m.Spread) {
		return fmt.Errorf("spread is %g, want a finite number of 0 or more", m.Spread)
	}
	if len(m.Features) == 0 {
		return fmt.Errorf("features are missing")
	}
	if err := checkFeatures(m.features()); err != nil {
		return err
	}
	for _, f := range m.Features {
		if !finite(f.Min) || !finite(f.Max) || f.Min > f.Max {
			return fmt.Errorf("feature %s: range is %g to %g", f.Name, f.Min, f.Max)
		}
		for _, level := range f.Seen {
			if level < 0 || level >= len(f.Levels) {
				return fmt.Errorf("feature %s: level %d is out of range, there are %d",
					f.Name, level, len(f.Levels))
			}
		}
	}
	if err := m.checkMeasured(); err != nil {
		return err
	}
	if !slices.Contains(objectives, m.objective()) {
		return fmt.Errorf("criterion: unknown objective %q", m.objective())
	}
	if err := m.checkBase(); err != nil {
		return err
	}
	if err := m.Calibration.check(); err != nil {
		return err
	}
	return m.Calibration.checkLevels(m.Features)
}

// features returns the features without their ranges.
func (m *Manifest) features() []Feature {
	features := make([]Feature, len(m.Features))
	for i, f := range m.Features {
		features[i] = f.Feature
	}
	return features
}
