package regress

import (
	"fmt"
	"math"
	"slices"
)

// Predictor predicts by a compiled regressor. It is immutable, safe for concurrent use, and
// allocates nothing per prediction.
type Predictor struct {
	form            form
	manifest        *Manifest
	features        []Feature
	known           []seenFeature
	shared          offsets
	levels          []offsets // of the levels that have their own
	hasBetweenSlope bool      // some level between others was left out
}

// offsets is a table of residuals ready for use.
type offsets struct {
	*CalibrationTable
	factors []float64 // factors (Log) or summands of a prediction
}

// seenFeature is the support of a feature.
type seenFeature struct {
	min, max float64
	levels   []bool       // seen, for a category
	measured []float64    // levels of a number that has such
	scarce   []float64    // values that too few of them had
	seen     *perfectHash // measured or scarce values; nil if there are none or too many
	widening
}

// Prediction is the prediction for one row.
type Prediction struct {
	// Value is the prediction in the unit of the target: under Log about the median, otherwise the
	// value of the criterion.
	Value float64
	// Mean is Value times the smearing factor; use it in sums.
	Mean float64
	// Extrapolated reports that the row lies outside the support: outside a feature's range, at an
	// unknown level, or at a scarce value. No guarantee holds there.
	Extrapolated bool
	// Distance from the support in ranges of the features; 0 inside.
	Distance float64
	// Between reports that a number lies between two of its measured levels. Its bound is widened
	// by the errors at levels that were left out.
	Between bool

	level    int     // number of the table of residuals: 0 for the shared table, n for that of level n-1
	widening float64 // in the unit of the fit, in addition to Distance times Spread
}

func newPredictor(m *Manifest) *Predictor {
	p := &Predictor{
		manifest: m,
		features: m.features(),
		shared:   newOffsets(&m.Calibration, m.Transform),
	}
	if m.Calibration.Levels != nil {
		for i := range m.Calibration.Levels.Tables {
			p.levels = append(p.levels, newOffsets(&m.Calibration.Levels.Tables[i], m.Transform))
		}
	}
	var widenings []widening
	widenings, p.hasBetweenSlope = m.widenings()
	for i, f := range m.Features {
		k := seenFeature{
			min:      f.Min,
			max:      f.Max,
			measured: f.Measured,
			scarce:   f.Scarce,
			widening: widenings[i],
		}
		seen := slices.DeleteFunc(slices.Clone(f.Measured), func(x float64) bool {
			return slices.Contains(f.Scarce, x)
		})
		if f.Levels != nil {
			k.levels = make([]bool, len(f.Levels))
			for _, level := range f.Seen {
				if k.levels[level] = !slices.Contains(f.Scarce, float64(level)); k.levels[level] {
					seen = append(seen, float64(level))
				}
			}
		}
		k.seen = newPerfectHash(seen)
		p.known = append(p.known, k)
	}
	return p
}

func newOffsets(c *CalibrationTable, t Transform) offsets {
	o := offsets{c, slices.Clone(c.Residuals)}
	if t == Log {
		for i, r := range o.factors {
			o.factors[i] = math.Exp(r)
		}
	}
	return o
}

// offsets returns the table for a prediction.
func (p *Predictor) offsets(point Prediction) *offsets {
	if point.level > 0 && point.level <= len(p.levels) {
		return &p.levels[point.level-1]
	}
	return &p.shared
}

// Features returns the features of a row in order. The slice must not be changed.
func (p *Predictor) Features() []Feature { return p.features }

// Manifest returns the manifest of the regressor, which must not be changed.
func (p *Predictor) Manifest() *Manifest { return p.manifest }

// Predict predicts a row of one finite number per feature. Unknown levels are predicted as well,
// and marked as extrapolated. An error wraps ErrBadRow.
func (p *Predictor) Predict(row []float64) (Prediction, error) {
	if len(row) != len(p.known) {
		return Prediction{}, fmt.Errorf("%w: %d values for %d features", ErrBadRow, len(row),
			len(p.known))
	}
	point := Prediction{}
	for f := range p.known {
		x, k := row[f], &p.known[f]
		if k.seen != nil && k.seen.holds(x) {
			continue
		}
		switch {
		case !finite(x):
			return Prediction{}, fmt.Errorf("%w: feature %s is %g", ErrBadRow, p.features[f].Name,
				x)
		case x < k.min || x > k.max || k.levels != nil || slices.Contains(k.scarce, x):
			beyond := k.distance(x)
			point.Distance += beyond
			point.widening += beyond * (k.beyond - p.manifest.Spread)
		case k.measured != nil:
			off := gap(x, k.measured, k.min, k.max)
			point.Between = point.Between || off > 0
			point.widening += k.between * off
		}
	}
	point.Value = p.form.predict(row)
	point.Mean = point.Value * p.manifest.Smearing
	point.Extrapolated = point.Distance > 0
	point.level = 1 + p.shared.level(row)
	return point, nil
}

// distance returns the distance of x from the support: for a number in ranges of the feature, or of
// its logarithm if that is larger (half the smallest batch is as far as twice the largest), at most
// 1e6; for a level, a scarce value or a constant feature 1.
func (k *seenFeature) distance(x float64) float64 {
	if k.levels != nil {
		if i := int(x); x == math.Trunc(x) && x >= 0 && x < float64(len(k.levels)) && k.levels[i] {
			return 0
		}
		return 1
	}
	beyond := max(k.min/2-x/2, x/2-k.max/2)
	if k.min == k.max || slices.Contains(k.scarce, x) {
		return 1
	}
	ranges := beyond / (k.max/2 - k.min/2)
	if k.min > 0 && x < k.min { // above the largest, plain ranges are farther
		ranges = max(ranges,
			math.Log(k.min/max(x, math.SmallestNonzeroFloat64))/math.Log(k.max/k.min))
	}
	return min(max(ranges, math.SmallestNonzeroFloat64), 1e6)
}

// UpperBound returns the value that the target does not exceed with the given confidence, in (0,
// 1), and whether that is guaranteed. It is infinite and not guaranteed if the calibration has too
// few residuals. For an extrapolated row it is widened by the distance and not guaranteed. Between
// levels it is widened, and guaranteed if some level could be left out to measure by how much.
func (p *Predictor) UpperBound(point Prediction, confidence float64) (float64, bool) {
	o := p.offsets(point)
	k, enough := o.entry(confidence)
	if !enough || !finite(point.Value) {
		return math.Inf(1), false
	}
	bound := p.moveBound(point, o.factors[k])
	return bound, p.isGuaranteed(point) && finite(bound)
}

// isGuaranteed reports whether a guarantee holds for a prediction: inside the support, and between
// levels only if the error there was measured.
func (p *Predictor) isGuaranteed(point Prediction) bool {
	return !point.Extrapolated && (!point.Between || p.hasBetweenSlope)
}

// Widening returns how much the bounds of a prediction are widened, in the unit of the fit (under
// Log: a logarithm), and whether a guarantee holds.
func (p *Predictor) Widening(point Prediction) (float64, bool) {
	return point.Distance*p.manifest.Spread + point.widening, p.isGuaranteed(point)
}

// Probability returns the probability that the target is at most limit, from the table of
// UpperBound: at the bound for some confidence it is that confidence or slightly more. The second
// result is false without a guarantee: without calibration (the probability is 0), for an
// extrapolated row, or between levels if none could be left out.
func (p *Predictor) Probability(point Prediction, limit float64) (float64, bool) {
	o := p.offsets(point)
	if o.Count == 0 || math.IsNaN(limit) || !finite(point.Value) {
		return 0, false
	}
	low, high := 0, len(o.factors)
	for low < high {
		middle := (low + high) / 2
		if p.moveBound(point, o.factors[middle]) <= limit {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return 0, p.isGuaranteed(point)
	}
	return float64(o.rank(low-1)) / float64(o.Count+1), p.isGuaranteed(point)
}

// moveBound returns the prediction shifted by an offset of its table and widened by its distance
// from the support. Bound and probability both use it, so that rounding cannot make them
// contradict.
func (p *Predictor) moveBound(point Prediction, factor float64) float64 {
	wider, _ := p.Widening(point)
	if p.manifest.Transform == Log {
		return point.Value * factor * math.Exp(wider)
	}
	return point.Value + factor + wider
}

// perfectHash is a set of numbers. Each has its own place: the top byte of its bits times a
// multiplier without collisions (perfect hash: Fredman, Komlós, Szemerédi 1984).
type perfectHash struct {
	multiplier uint64
	at         [256]float64
}

// maxHashed is the size of a set that one multiplier in eight hashes without collision.
const maxHashed = maxMeasured

// newPerfectHash returns nil for no numbers, for more than maxHashed, and if no multiplier is
// found. No finite numbers are known to cause the latter.
func newPerfectHash(numbers []float64) *perfectHash {
	if len(numbers) == 0 || len(numbers) > maxHashed {
		return nil
	}
	random := stream(5)
	for range 10_000 {
		s := &perfectHash{multiplier: random.next() | 1}
		for i := range s.at {
			s.at[i] = math.NaN() // differs from every number
		}
		free := true
		for _, x := range numbers {
			slot := &s.at[s.slot(x)]
			free = free && (math.IsNaN(*slot) || *slot == x)
			*slot = x
		}
		if free {
			return s
		}
	}
	return nil
}

// slot returns the slot of x; 0 and -0 are equal.
func (s *perfectHash) slot(x float64) uint8 {
	return uint8(math.Float64bits(x+0) * s.multiplier >> 56)
}

func (s *perfectHash) holds(x float64) bool { return s.at[s.slot(x)] == x }
