package regress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// summary is what a stream's bins follow from: up to maxBins different values of
// each feature, and where there are more, a sample of the examples.
type summary struct {
	features  []Feature
	count     int
	low, high []float64   // by feature, the target last
	values    [][]float64 // by feature: different values in order; nil if too many
	sample    []sampled
	limit     uint64 // no hash above it is among the smallest
	paused    int
}

// sampled is an example and the hash of its numbers. Those with the smallest
// hashes are the sample, so that it does not depend on the order of the examples
// (bottom-k sampling: Cohen, Kaplan, PODC 2007).
type sampled struct {
	hash uint64
	row  []float64
}

func newSummary(features []Feature) *summary {
	s := &summary{features: features, values: make([][]float64, len(features)), limit: math.MaxUint64}
	for range len(features) + 1 {
		s.low, s.high = append(s.low, math.Inf(1)), append(s.high, math.Inf(-1))
	}
	for f := range s.values {
		s.values[f] = make([]float64, 0, maxBins+1)
	}
	return s
}

// add checks an example and takes it in.
func (s *summary) add(row []float64, target float64) error {
	if len(row) != len(s.features) {
		return fmt.Errorf("%w: example %d has %d values for %d features", ErrBadExamples, s.count, len(row), len(s.features))
	}
	hash := mix(math.Float64bits(target + 0))
	for f, x := range row {
		if err := checkColumn(s.features[f], row[f:f+1]); err != nil {
			return fmt.Errorf("%w: example %d of the stream: %w", ErrBadExamples, s.count, err)
		}
		x += 0 // -0 becomes 0
		hash = mix(hash ^ math.Float64bits(x))
		s.low[f], s.high[f] = min(s.low[f], x), max(s.high[f], x)
		s.note(f, x)
	}
	if !finite(target) {
		return fmt.Errorf("%w: target of example %d is %g", ErrBadExamples, s.count, target)
	}
	last := len(row)
	s.low[last], s.high[last] = min(s.low[last], target), max(s.high[last], target)
	if s.count++; s.count > mostExamples {
		return fmt.Errorf("%w: more than %d examples", ErrBadExamples, mostExamples)
	}
	if hash <= s.limit {
		s.sample = append(s.sample, sampled{hash, slices.Clone(row)})
		if len(s.sample) >= 2*sampledValues {
			s.prune()
		}
	}
	return nil
}

// note remembers a value of a feature, as long as there are few.
func (s *summary) note(f int, x float64) {
	if s.values[f] == nil {
		return
	}
	at, known := slices.BinarySearch(s.values[f], x)
	if known {
		return
	}
	if s.values[f] = slices.Insert(s.values[f], at, x); len(s.values[f]) > maxBins {
		s.values[f] = nil
	}
}

// prune keeps the smallest hashes. Equal hashes are equal examples: it does not
// matter which of them stay.
func (s *summary) prune() {
	slices.SortFunc(s.sample, func(a, b sampled) int { return cmp.Compare(a.hash, b.hash) })
	if len(s.sample) > sampledValues {
		s.sample = slices.Delete(s.sample, sampledValues, len(s.sample))
		s.limit = s.sample[sampledValues-1].hash
	}
}

// bins chooses the bins of all features; codes are not known yet.
func (s *summary) bins() *binned {
	s.prune()
	n := len(s.features)
	b := &binned{codes: make([][]uint8, n), low: make([][]float64, n), high: make([][]float64, n), cuts: make([][]float64, n)}
	column := make([]float64, len(s.sample))
	for f := range s.features {
		if s.values[f] != nil {
			b.low[f], b.high[f] = s.values[f], slices.Clone(s.values[f])
		} else {
			for i := range s.sample {
				column[i] = s.sample[i].row[f] + 0
			}
			b.low[f], b.high[f] = edges(column)
		}
		b.cuts[f] = cutsBetween(b.low[f], b.high[f])
	}
	s.sample = nil
	return b
}

// again checks an example of the second reading, so far as it can.
func (s *summary) again(row []float64, target float64, example int) error {
	same := len(row) == len(s.features) && example < s.count
	for f := range s.features {
		same = same && row[f] >= s.low[f] && row[f] <= s.high[f]
	}
	if last := len(s.features); !same || !(target >= s.low[last] && target <= s.high[last]) {
		return fmt.Errorf("%w: example %d was not there when the stream was read first", ErrBadExamples, example)
	}
	return nil
}

// pause asks ctx now and then whether to go on.
func (s *summary) pause(ctx context.Context) error {
	if s.paused++; s.paused%(1<<12) != 0 {
		return nil
	}
	return ctx.Err()
}
