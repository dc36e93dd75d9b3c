package regress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Folds divides configurations into k folds of about equal size and returns the fold, 0 to k-1, of
// each example. Examples of one group are in the same fold. The result depends on the seed and the
// order in which groups first appear. With fewer than k groups each gets its own fold. It is nil
// for fewer than two groups or folds.
func Folds(group []int, k int, seed uint64) []int {
	number := make(map[int]int)
	for _, g := range group {
		if _, known := number[g]; !known {
			number[g] = len(number)
		}
	}
	k = min(k, len(number))
	if k < 2 {
		return nil
	}
	deal := make([]int, len(number))
	for i := range deal {
		deal[i] = i % k
	}
	s := stream(seed).split(foldBranch)
	s.shuffle(deal)
	folds := make([]int, len(group))
	for i, g := range group {
		folds[i] = deal[number[g]]
	}
	return folds
}

// foldBranch separates the random numbers of folds from the trees', which are numbered from 0.
const foldBranch = 1 << 40

func (d *Dataset) folds(k int, seed uint64) []int { return Folds(d.Group, k, seed) }

// foldCount returns the number of folds.
func foldCount(folds []int) int {
	count := 0
	for _, fold := range folds {
		count = max(count, fold+1)
	}
	return count
}

// OutOfFold predicts every example by a function that was fitted without its configuration. For
// each fold, fit gets the examples of the other folds and returns a prediction function, in any
// unit. The result has one prediction per example of d.
func OutOfFold(
	d *Dataset, folds []int, fit func(train *Dataset) (func(row []float64) float64, error),
) ([]float64, error) {
	if len(folds) != d.Len() {
		return nil, fmt.Errorf("%w: %d folds for %d examples", ErrBadOptions, len(folds), d.Len())
	}
	predicted := make([]float64, d.Len())
	var row []float64
	for fold := range foldCount(folds) {
		var train, test []int
		for i, f := range folds {
			if f == fold {
				test = append(test, i)
			} else {
				train = append(train, i)
			}
		}
		if len(train) == 0 || len(test) == 0 {
			return nil, fmt.Errorf("%w: fold %d holds %d of %d examples", ErrBadOptions, fold,
				len(test), d.Len())
		}
		predict, err := fit(d.Subset(train))
		if err != nil {
			return nil, fmt.Errorf("fold %d: %w", fold, err)
		}
		for _, i := range test {
			row = d.Row(i, row)
			predicted[i] = predict(row)
		}
	}
	return predicted, nil
}

// maxDroppedShare is the maximum share of examples that Clean drops; more indicate wrong input.
const maxDroppedShare = 0.05

// Dropped is the number of examples that were dropped for one reason.
type Dropped struct {
	Reason string
	Count  int
}

// Clean returns a copy without invalid examples: a feature or target that is not finite, a target
// outside [low, high], a weight that is negative or not finite. It also returns the number of
// dropped examples by reason, most frequent first. If they are more than 5 %, it returns the
// reasons and an error that wraps ErrBadExamples. For durations low is math.SmallestNonzeroFloat64;
// for ratios the limits are 0 and 1.
func (d *Dataset) Clean(low, high float64) (*Dataset, []Dropped, error) {
	if err := d.checkShape(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrBadExamples, err)
	}
	var rows []int
	counts := make(map[string]int)
	for i := range d.Target {
		if reason := d.flaw(i, low, high); reason != "" {
			counts[reason]++
		} else {
			rows = append(rows, i)
		}
	}
	var dropped []Dropped
	for reason, count := range counts {
		dropped = append(dropped, Dropped{reason, count})
	}
	slices.SortFunc(dropped, func(a, b Dropped) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		if a.Reason < b.Reason {
			return -1
		}
		return 1
	})
	if bad := d.Len() - len(rows); float64(bad) > maxDroppedShare*float64(d.Len()) {
		return nil, dropped, fmt.Errorf("%w: %d of %d are unusable, most often: %s",
			ErrBadExamples, bad, d.Len(), dropped[0].Reason)
	}
	return d.Subset(rows), dropped, nil
}

// flaw returns the reason why an example is invalid; "" if it is valid.
func (d *Dataset) flaw(i int, low, high float64) string {
	for f, column := range d.Columns {
		if !finite(column[i]) {
			return fmt.Sprintf("feature %s is %g", d.Features[f].Name, column[i])
		}
	}
	switch y := d.Target[i]; {
	case math.IsNaN(y):
		return "target is NaN"
	case y <= 0 && low == math.SmallestNonzeroFloat64:
		return "target is 0 or below"
	case y < low:
		return fmt.Sprintf("target is below %g", low)
	case y > high || math.IsInf(y, 1):
		return fmt.Sprintf("target is above %g", high)
	}
	if d.Weight != nil && !(d.Weight[i] >= 0 && d.Weight[i] <= maxWeight) {
		return "weight is negative or not finite"
	}
	return ""
}

// Transform is applied to a target before anything is fitted.
type Transform string

// The transforms. With Log, targets must be above 0, errors are ratios, and predictions are about
// the median.
const (
	None Transform = "none"
	Log  Transform = "log"
)

func (t Transform) check(target []float64) error {
	for _, y := range target {
		if t == Log && !(y > 0) {
			return fmt.Errorf("%w: target %g has no logarithm", ErrBadExamples, y)
		}
	}
	return nil
}

// apply returns the transformed targets.
func (t Transform) apply(target []float64) []float64 {
	if t != Log {
		return target
	}
	logs := make([]float64, len(target))
	for i, y := range target {
		logs[i] = math.Log(y)
	}
	return logs
}

// invert returns a transformed target in the original unit.
func (t Transform) invert(y float64) float64 {
	if t == Log {
		return math.Exp(y)
	}
	return y
}

// centred holds targets as y = (target - center) * scale: differences from the center keep sums
// exact, the scale keeps squares of huge targets finite.
type centred struct {
	y             []float64
	center, scale float64
	perScale      float64 // 1/scale, exact because it is a power of two
}

// center centres targets on their median.
func center(target []float64, byY []int32) centred {
	c := centred{y: make([]float64, len(target)), center: target[byY[len(byY)/2]], scale: 1}
	least, most := target[byY[0]], target[byY[len(byY)-1]]
	if size := max(-least, most); size > 1e50 || size > 0 && size < 1e-50 {
		_, exponent := math.Frexp(size)
		c.scale = math.Ldexp(1, -max(exponent, -1000))
	}
	c.perScale = 1 / c.scale
	for i, y := range target {
		c.y[i] = y*c.scale - c.center*c.scale
	}
	return c
}

// restore returns a centered and scaled target in its original unit.
func (c *centred) restore(y float64) float64 { return y*c.perScale + c.center }

// fewOrdered is the length up to which comparing is faster than radix sort.
const fewOrdered = 2000

// sortedOrder returns the stable sorting permutation of numbers. Long slices are sorted by radix
// sort.
func sortedOrder(numbers []float64) []int32 {
	places := make([]int32, len(numbers))
	for i := range places {
		places[i] = int32(i)
	}
	if len(numbers) < fewOrdered {
		slices.SortFunc(places, func(a, b int32) int {
			return cmp.Or(cmp.Compare(numbers[a], numbers[b]), cmp.Compare(a, b))
		})
		return places
	}
	keys := make([]placed, len(numbers))
	for i, x := range numbers {
		keys[i] = placed{orderedKey(x), int32(i)}
	}
	for i, k := range byDigits(keys) {
		places[i] = k.place
	}
	return places
}

// placed is a key and its index.
type placed struct {
	key   uint64
	place int32
}

// orderedKey returns an unsigned integer with the order of the number; -0 equals 0.
func orderedKey(x float64) uint64 {
	b := math.Float64bits(x + 0)
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

const (
	digitBits = 11
	digits    = 6 // of a key
)

// byDigits sorts keys stably by radix sort. A digit that all keys share is only counted.
func byDigits(keys []placed) []placed {
	var place [digits][1 << digitBits]int32
	for _, k := range keys {
		for d := range place {
			place[d][k.key>>(d*digitBits)%(1<<digitBits)]++
		}
	}
	spare := make([]placed, len(keys))
	for d := range place {
		place, shift := &place[d], d*digitBits
		if int(place[keys[0].key>>shift%(1<<digitBits)]) == len(keys) {
			continue
		}
		next := int32(0)
		for digit, count := range place {
			place[digit] = next
			next += count
		}
		for _, k := range keys {
			at := &place[k.key>>shift%(1<<digitBits)]
			spare[*at] = k
			*at++
		}
		keys, spare = spare, keys
	}
	return keys
}
