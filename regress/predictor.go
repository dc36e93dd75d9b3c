package regress

import (
	"fmt"
	"math"
	"slices"
)

// Predictor answers requests from a compiled regressor. It never changes, is
// safe for any number of goroutines, and allocates nothing per prediction.
type Predictor struct {
	form            form
	manifest        *Manifest
	features        []Feature
	known           []seenFeature
	shared          offsets
	levels          []offsets // of the levels that have their own
	hasBetweenSlope bool      // some level between others was left out
}

// offsets is a table of residuals ready to be used.
type offsets struct {
	*CalibrationTable
	factors []float64 // what a prediction is multiplied by (Log) or raised by
}

// seenFeature is what the examples showed of a feature.
type seenFeature struct {
	min, max float64
	levels   []bool       // seen, for a category
	measured []float64    // levels of a number that has such
	scarce   []float64    // values that too few of them had
	seen     *perfectHash // levels of either, nil where there are none or too many
	widening
}

// Prediction is the answer for one row.
type Prediction struct {
	// Value is the prediction in the unit of the target: under Log about the
	// median, else as the criterion has it.
	Value float64
	// Mean is Value corrected by the smearing factor: use it in sums.
	Mean float64
	// Extrapolated says that the row lies beyond the examples, in a feature's
	// range, by a level that none of them had, or by a value that too few had. No
	// guarantee holds there.
	Extrapolated bool
	// Distance is how far beyond, in ranges of the features; 0 within.
	Distance float64
	// Between says that a number lies between two of its measured levels. Its
	// bound is wider, by as much as the regressor missed levels that were left out.
	Between bool

	level    int     // whose table of residuals counts: that of level-1, 0 for the shared one
	widening float64 // in the unit of the fit, beside Distance times Spread
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

// offsets returns the table for a point.
func (p *Predictor) offsets(point Prediction) *offsets {
	if point.level > 0 && point.level <= len(p.levels) {
		return &p.levels[point.level-1]
	}
	return &p.shared
}

// Features returns what a row consists of, in order. It is not to be changed.
func (p *Predictor) Features() []Feature { return p.features }

// Manifest returns what is known about the regressor. It is not to be changed.
func (p *Predictor) Manifest() *Manifest { return p.manifest }

// Predict answers for a row that has one finite number per feature. Levels that
// the examples never had are answered, too, and marked as extrapolated. An error
// wraps ErrBadRow.
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

// distance says how far x is from what was seen: for a number in ranges of the
// feature, or of its logarithm if that is farther (half the smallest batch is as
// far as twice the largest), at most 1e6; for a level, a scarce value or a feature
// that never varied 1.
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

// UpperBound returns the value that the target stays under with the given
// confidence, in (0, 1), and whether that can be promised. It cannot, and the
// bound is infinite, where the calibration has too few residuals for the
// confidence. It cannot, either, for an extrapolated point: its bound is widened
// by the distance and is only a guide. The bound of a point between levels is
// widened, too, and promised where some level could be left out to see by how much.
func (p *Predictor) UpperBound(point Prediction, confidence float64) (float64, bool) {
	o := p.offsets(point)
	k, enough := o.entry(confidence)
	if !enough || !finite(point.Value) {
		return math.Inf(1), false
	}
	bound := p.moveBound(point, o.factors[k])
	return bound, p.promises(point) && finite(bound)
}

// promises reports whether a guarantee holds for a point: within the examples,
// and between levels where it is known what to expect there.
func (p *Predictor) promises(point Prediction) bool {
	return !point.Extrapolated && (!point.Between || p.hasBetweenSlope)
}

// Widening returns by how much the bounds of a point are moved off the levels
// that were measured, in the unit of the fit (of a log fit: a logarithm), and
// whether anything can be promised there.
func (p *Predictor) Widening(point Prediction) (float64, bool) {
	return point.Distance*p.manifest.Spread + point.widening, p.promises(point)
}

// Probability returns how likely the target is at most limit, by the table that
// UpperBound reads: at the bound for some confidence it is that confidence or a
// little more. The second result is false where nothing can be promised: without
// calibration (the probability is 0), for an extrapolated point, or between levels
// where none could be left out.
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
		return 0, p.promises(point)
	}
	return float64(o.rank(low-1)) / float64(o.Count+1), p.promises(point)
}

// moveBound is the point moved by an offset of its table and widened by how far
// it lies beyond the examples. Bound and probability both come from here, so
// that rounding cannot set them at odds.
func (p *Predictor) moveBound(point Prediction, factor float64) float64 {
	wider, _ := p.Widening(point)
	if p.manifest.Transform == Log {
		return point.Value * factor * math.Exp(wider)
	}
	return point.Value + factor + wider
}

// perfectHash finds a number among some at once: each has a place of its own, the top
// byte of its bits times a multiplier under which no two share one (a perfect
// hash: Fredman, Komlós, Szemerédi 1984).
type perfectHash struct {
	multiplier uint64
	at         [256]float64
}

// maxHashed is how many numbers still leave one multiplier in eight without two
// of them in one place.
const maxHashed = maxMeasured

// newPerfectHash returns nil for no numbers, for more than mostSlots, and where no
// multiplier is found, which no finite numbers are known to cause.
func newPerfectHash(numbers []float64) *perfectHash {
	if len(numbers) == 0 || len(numbers) > maxHashed {
		return nil
	}
	random := stream(5)
	for range 10_000 {
		s := &perfectHash{multiplier: random.next() | 1}
		for i := range s.at {
			s.at[i] = math.NaN() // equal to nothing
		}
		free := true
		for _, x := range numbers {
			place := &s.at[s.place(x)]
			free = free && (math.IsNaN(*place) || *place == x)
			*place = x
		}
		if free {
			return s
		}
	}
	return nil
}

// place of x; 0 and -0 are one number.
func (s *perfectHash) place(x float64) uint8 {
	return uint8(math.Float64bits(x+0) * s.multiplier >> 56)
}

func (s *perfectHash) holds(x float64) bool { return s.at[s.place(x)] == x }
