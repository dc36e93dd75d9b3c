package regress

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"slices"
)

// maxWeight keeps sums of weights and targets far from overflow.
const maxWeight = 1e50

// maxExamples is the maximum number of examples of a fit: sums count them in 24 bits.
const maxExamples = 1<<countBits - 1

// Feature describes one input of a regressor.
type Feature struct {
	// Name is written into the file: letters, digits and underscores only.
	Name string `json:"name"`
	// Unit of the values; "" without a unit.
	Unit string `json:"unit,omitempty"`
	// Levels are the names of a category; a row contains the index. Nil for a number.
	Levels []string `json:"levels,omitempty"`
	// Monotone constrains the target as the feature grows: -1 never up, +1 never down, 0 no
	// constraint. Always 0 for a category.
	Monotone int `json:"monotone,omitempty"`
	// Continuous marks a number whose values were observed, not chosen: it has no levels, so
	// bounds do not widen between its values.
	Continuous bool `json:"continuous,omitempty"`
	// Alone excludes the feature from products in the automatic terms of a law, so that few
	// examples of a level suffice. It does not constrain trees.
	Alone bool `json:"alone,omitempty"`
	// Scarce are values with too few examples for a guarantee. A row with one of them counts as
	// one range outside the support.
	Scarce []float64 `json:"scarce,omitempty"`
	// Typical is the value for callers that do not know the feature; 0 by default.
	Typical float64 `json:"typical,omitempty"`
}

// chosen reports whether a feature may have measured levels.
func (f Feature) chosen() bool { return f.Levels == nil && !f.Continuous }

// Level returns the index of a level of a category, and whether it has that level.
func (f Feature) Level(name string) (float64, bool) {
	i := slices.Index(f.Levels, name)
	return float64(i), i >= 0
}

// Dataset holds examples by column. All columns, Target, Group and a non-nil Weight have the same
// length.
type Dataset struct {
	Features []Feature
	// Columns holds one slice per feature, one number per example.
	Columns [][]float64
	// Target is what to predict, in TargetUnit.
	Target []float64
	// Weight of each example, from 0 (ignored) to 1e50. Nil means 1 for all.
	Weight []float64
	// Group is the configuration of each example. Replications of a configuration have the same
	// number, and no split separates them. Only equality matters. Nil means that examples with
	// equal features are one configuration.
	Group []int
	// TargetName and TargetUnit describe the target in the manifest.
	TargetName, TargetUnit string
}

// Len returns the number of examples.
func (d *Dataset) Len() int { return len(d.Target) }

// Row copies the features of example i into row, which grows if necessary, and returns it.
func (d *Dataset) Row(i int, row []float64) []float64 {
	row = row[:0]
	for _, column := range d.Columns {
		row = append(row, column[i])
	}
	return row
}

// Subset returns a copy of the examples with the given numbers, in that order.
func (d *Dataset) Subset(rows []int) *Dataset {
	s := *d
	s.Columns = make([][]float64, len(d.Columns))
	for f, column := range d.Columns {
		s.Columns[f] = pick(column, rows)
	}
	s.Target = pick(d.Target, rows)
	s.Weight = pick(d.Weight, rows)
	s.Group = pick(d.Group, rows)
	return &s
}

// Settings returns the number of distinct configurations.
func (d *Dataset) Settings() int {
	small, count := make([]bool, len(d.Group)), 0 // small numbers need no map
	seen := make(map[int]struct{})
	for _, g := range d.Group {
		if g < 0 || g >= len(small) {
			seen[g] = struct{}{}
		} else if !small[g] {
			small[g] = true
			count++
		}
	}
	return count + len(seen)
}

func pick[T any, R int | int32](from []T, rows []R) []T {
	if from == nil {
		return nil
	}
	to := make([]T, len(rows))
	for i, row := range rows {
		to[i] = from[row]
	}
	return to
}

// Validate returns an error that wraps ErrBadExamples and names the first invalid field: lengths,
// names, levels, numbers that are not finite, negative weights or weights without a positive sum.
func (d *Dataset) Validate() error {
	if err := d.checkShape(); err != nil {
		return fmt.Errorf("%w: %w", ErrBadExamples, err)
	}
	for f, column := range d.Columns {
		if err := checkColumn(d.Features[f], column); err != nil {
			return fmt.Errorf("%w: %w", ErrBadExamples, err)
		}
	}
	for i, y := range d.Target {
		if !finite(y) {
			return fmt.Errorf("%w: target of example %d is %g", ErrBadExamples, i, y)
		}
	}
	return d.checkWeights()
}

// checkShape checks features and lengths, not values.
func (d *Dataset) checkShape() error {
	if len(d.Features) == 0 || len(d.Target) == 0 {
		return fmt.Errorf("%d features and %d targets", len(d.Features), len(d.Target))
	}
	if len(d.Columns) != len(d.Features) {
		return fmt.Errorf("%d columns for %d features", len(d.Columns), len(d.Features))
	}
	for f, column := range d.Columns {
		if len(column) != len(d.Target) {
			return fmt.Errorf("feature %s: %d values for %d targets", d.Features[f].Name,
				len(column), len(d.Target))
		}
	}
	if d.Weight != nil && len(d.Weight) != len(d.Target) {
		return fmt.Errorf("weight has %d entries for %d targets", len(d.Weight), len(d.Target))
	}
	if d.Group != nil && len(d.Group) != len(d.Target) {
		return fmt.Errorf("group has %d entries for %d targets", len(d.Group), len(d.Target))
	}
	return checkFeatures(d.Features)
}

func (d *Dataset) checkWeights() error {
	if d.Weight == nil {
		return nil
	}
	sum := 0.0
	for i, w := range d.Weight {
		if !(w >= 0 && w <= maxWeight) {
			return fmt.Errorf("%w: weight of example %d is %g", ErrBadExamples, i, w)
		}
		sum += w
	}
	if sum == 0 {
		return fmt.Errorf("%w: weights sum to 0", ErrBadExamples)
	}
	return nil
}

// checkFeatures checks the features of a dataset or manifest.
func checkFeatures(features []Feature) error {
	names := make(map[string]struct{}, len(features))
	for i, f := range features {
		if !validName(f.Name) {
			return fmt.Errorf("feature %d: name %q is not made of letters, digits and underscores",
				i, f.Name)
		}
		if _, twice := names[f.Name]; twice {
			return fmt.Errorf("feature %s: name is used twice", f.Name)
		}
		names[f.Name] = struct{}{}
		if f.Monotone < -1 || f.Monotone > 1 {
			return fmt.Errorf("feature %s: monotone is %d, want -1, 0 or 1", f.Name, f.Monotone)
		}
		if f.Monotone != 0 && f.Levels != nil {
			return fmt.Errorf("feature %s: a category cannot be monotone", f.Name)
		}
		for _, x := range f.Scarce {
			if !finite(x) || f.Levels != nil && (x != math.Trunc(x) || x < 0 ||
				x >= float64(len(f.Levels))) {
				return fmt.Errorf("feature %s: scarce value %g", f.Name, x)
			}
		}
	}
	return nil
}

func checkColumn(f Feature, column []float64) error {
	for i, x := range column {
		if !finite(x) {
			return fmt.Errorf("feature %s: value of example %d is %g", f.Name, i, x)
		}
		if f.Levels != nil && (x != math.Trunc(x) || x < 0 || x >= float64(len(f.Levels))) {
			return fmt.Errorf(
				"feature %s: value of example %d is %g, want the index of one of %d levels",
				f.Name, i, x, len(f.Levels))
		}
	}
	return nil
}

func validName(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// canonical returns a sorted copy without examples of weight 0, with groups numbered by first
// appearance. It does not depend on the order of the examples.
func (d *Dataset) canonical() *Dataset {
	rows := make([]int, 0, d.Len())
	for i := range d.Target {
		if d.Weight == nil || d.Weight[i] > 0 {
			rows = append(rows, i)
		}
	}
	c := d.Subset(d.sorted(rows))
	for _, numbers := range append(slices.Clone(c.Columns), c.Target) {
		for i := range numbers {
			numbers[i] += 0 // turns -0 into 0, because their bytes differ
		}
	}
	c.numberGroups()
	return c
}

// sorted sorts rows by compare, stably: first by the first feature, then the groups of equal
// values.
func (d *Dataset) sorted(rows []int) []int {
	first := pick(d.Columns[0], rows)
	rows = pick(rows, sortedOrder(first))
	for from, to := 0, 0; from < len(rows); from = to {
		x := d.Columns[0][rows[from]]
		for to = from + 1; to < len(rows) && d.Columns[0][rows[to]] == x; to++ {
		}
		slices.SortStableFunc(rows[from:to], d.compare)
	}
	return rows
}

// prepare checks the examples and returns them sorted, if there are enough. A default number of
// folds is reduced to the number of configurations; an explicit one that is too large is an error.
func (d *Dataset) prepare(t Transform, examples, settings, folds int) (*Dataset, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	if d.Len() > maxExamples {
		return nil, fmt.Errorf("%w: %d examples, want at most %d", ErrBadExamples, d.Len(),
			maxExamples)
	}
	sorted := d.canonical()
	if n, s := sorted.Len(), sorted.Settings(); n < examples || s < settings {
		return nil, fmt.Errorf("%w: %d examples of %d configurations, want at least %d of %d", ErrTooFewExamples,
			n, s, examples, settings)
	}
	if s := sorted.Settings(); folds > s && folds > defaultFolds {
		return nil, fmt.Errorf("%w: folds is %d for %d configurations", ErrBadOptions, folds, s)
	}
	return sorted, t.check(sorted.Target)
}

// compare orders examples by features, target, weight, then group.
func (d *Dataset) compare(a, b int) int {
	for _, column := range d.Columns {
		if c := cmp.Compare(column[a], column[b]); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(d.Target[a], d.Target[b]); c != 0 {
		return c
	}
	if d.Weight != nil {
		if c := cmp.Compare(d.Weight[a], d.Weight[b]); c != 0 {
			return c
		}
	}
	if d.Group != nil {
		return cmp.Compare(d.Group[a], d.Group[b])
	}
	return 0
}

// numberGroups renumbers the groups of a sorted dataset from 0. Without groups, neighbours with
// equal features form one.
func (d *Dataset) numberGroups() {
	if d.Group == nil {
		d.Group = make([]int, d.Len())
		for i := 1; i < d.Len(); i++ {
			d.Group[i] = d.Group[i-1]
			if !d.sameFeatures(i-1, i) {
				d.Group[i]++
			}
		}
		return
	}
	number := make(map[int]int)
	for i, g := range d.Group {
		n, known := number[g]
		if !known {
			n = len(number)
			number[g] = n
		}
		d.Group[i] = n
	}
}

func (d *Dataset) sameFeatures(a, b int) bool {
	for _, column := range d.Columns {
		if column[a] != column[b] {
			return false
		}
	}
	return true
}

// digest returns the hexadecimal SHA-256 of names, values, targets, weights and groups of a
// canonical dataset.
func (d *Dataset) digest() string {
	h := sha256.New()
	for f, feature := range d.Features {
		fmt.Fprintf(h, "%s %q %q %d\n", feature.Name, feature.Unit, feature.Levels,
			feature.Monotone)
		writeFloats(h, d.Columns[f])
	}
	fmt.Fprintf(h, "%q %q\n", d.TargetName, d.TargetUnit)
	writeFloats(h, d.Target)
	groups := make([]float64, 0, 2*len(d.Group))
	for i, g := range d.Group {
		w := 1.0
		if d.Weight != nil {
			w = d.Weight[i]
		}
		groups = append(groups, w, float64(g))
	}
	writeFloats(h, groups)
	return hex.EncodeToString(h.Sum(nil))
}

func writeFloats(h hash.Hash, numbers []float64) {
	var block [1024]byte
	for len(numbers) > 0 {
		few := numbers[:min(len(numbers), len(block)/8)]
		for i, x := range few {
			binary.LittleEndian.PutUint64(block[8*i:], math.Float64bits(x))
		}
		h.Write(block[:8*len(few)]) // a hash never returns an error
		numbers = numbers[len(few):]
	}
}
