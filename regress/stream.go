package regress

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
)

// Stream reads examples that are too many to be held as numbers. Each weighs 1,
// and those with equal features are one setting.
type Stream struct {
	Features []Feature
	// TargetName and TargetUnit describe the target in the manifest.
	TargetName, TargetUnit string
	// Read hands every example to visit, which keeps nothing of the row, and ends
	// with the first error. It is called twice and gives the same examples each
	// time; their order does not matter.
	Read func(visit func(row []float64, target float64) error) error
}

// FitBoostingStream fits as FitBoosting does, but never holds the features as
// numbers: it reads the examples once to choose bins and once more to keep the
// bin, a byte, of each value. A feature of n examples takes about 2n bytes, and
// an example 50 bytes more. What needs the examples again is not to be had:
// Folds has to be negative (the regressor knows no bound), Patience 0.
//
// Where no feature has more than 255 values the file is FitBoosting's, byte for
// byte; up to 131,072 examples it has the same bins. The manifest's digest names
// the bins, not the numbers.
func FitBoostingStream(ctx context.Context, s *Stream, o BoostingOptions) (*Regressor, error) {
	r, err := fitBoostingStream(ctx, s, o)
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", s.TargetName, err)
	}
	return r, nil
}

func fitBoostingStream(ctx context.Context, s *Stream, o BoostingOptions) (*Regressor, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if o.Folds >= 0 || o.Patience != 0 {
		return nil, fmt.Errorf("%w: folds is %d and patience %d, want less than 0 and 0 for a stream", ErrBadSettings, o.Folds, o.Patience)
	}
	t, err := readStream(ctx, s, o.Threads)
	if err != nil {
		return nil, err
	}
	if n, settings := len(t.target), t.settings(); n < o.MinExamples || settings < o.MinSettings {
		return nil, fmt.Errorf("%w: %d examples of %d settings, want %d of %d", ErrTooFewExamples, n, settings, o.MinExamples, o.MinSettings)
	}
	if err := o.Transform.check(t.target); err != nil {
		return nil, err
	}
	var signs []int
	for _, f := range s.Features {
		signs = append(signs, f.Monotone)
	}
	trees, err := assemble(t.bins, t.target, nil, signs, o).sum(ctx, nil, newProgress(o.Progress, o.Trees))
	if err != nil {
		return nil, err
	}
	r := &Regressor{ensemble: ensemble{trees: trees}, Manifest: t.describe(s, o.Transform)}
	r.Manifest.Family, r.Manifest.Boosting = FamilyBoosting, &o
	return r, nil
}

// streamed is a stream that was read: bins by example and by feature, and
// targets, all in the order that a dataset of the examples would have.
type streamed struct {
	bins   *binned
	target []float64
}

func readStream(ctx context.Context, s *Stream, threads int) (*streamed, error) {
	if len(s.Features) == 0 {
		return nil, fmt.Errorf("%w: no features", ErrBadExamples)
	}
	if err := checkFeatures(s.Features); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadExamples, err)
	}
	look := newSummary(s.Features)
	if err := s.Read(func(row []float64, target float64) error {
		return cmp.Or(look.add(row, target), look.pause(ctx))
	}); err != nil {
		return nil, err
	}
	if look.count == 0 {
		return nil, fmt.Errorf("%w: no examples", ErrBadExamples)
	}
	n, features := look.count, len(s.Features)
	t := &streamed{bins: look.bins(), target: make([]float64, 0, n)}
	ladders := make([]*ladder, features)
	for f, cuts := range t.bins.cuts {
		ladders[f] = newLadder(cuts)
	}
	rows := make([]uint8, 0, n*features)
	if err := s.Read(func(row []float64, target float64) error {
		if err := look.again(row, target, len(t.target)); err != nil {
			return err
		}
		for f, x := range row {
			code := ladders[f].find(x)
			low, high := t.bins.low[f], t.bins.high[f]
			low[code], high[code] = min(low[code], x+0), max(high[code], x+0)
			rows = append(rows, code)
		}
		t.target = append(t.target, target+0) // -0 becomes 0
		return look.pause(ctx)
	}); err != nil {
		return nil, err
	}
	if len(t.target) != n {
		return nil, fmt.Errorf("%w: %d examples, when they were read again %d", ErrBadExamples, n, len(t.target))
	}
	t.sort(rows, threads)
	return t, nil
}

// sort brings the examples into the order of Dataset.canonical.
func (t *streamed) sort(rows []uint8, threads int) {
	n := len(t.target)
	features := len(rows) / n
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(bytes.Compare(rows[int(a)*features:][:features], rows[int(b)*features:][:features]),
			cmp.Compare(t.target[a], t.target[b]))
	})
	target := make([]float64, n)
	t.bins.rows = make([]uint8, len(rows))
	t.bins.codes = make([][]uint8, features)
	for f := range t.bins.codes {
		t.bins.codes[f] = make([]uint8, n)
	}
	parallel(threads, n, 1<<14, func(_, from, to int) {
		for i := from; i < to; i++ {
			target[i] = t.target[order[i]]
			codes := rows[int(order[i])*features:][:features]
			copy(t.bins.rows[i*features:], codes)
			for f, code := range codes {
				t.bins.codes[f][i] = code
			}
		}
	})
	t.target = target
}

// settings counts the examples that differ from the one before in some bin.
func (t *streamed) settings() int {
	count := 1
	for i := 1; i < len(t.target); i++ {
		if !bytes.Equal(t.bins.row(int32(i)), t.bins.row(int32(i-1))) {
			count++
		}
	}
	return count
}

func (t *streamed) describe(s *Stream, transform Transform) Manifest {
	m := Manifest{Format: manifestFormat, Target: s.TargetName, Unit: s.TargetUnit, Transform: transform,
		Smearing: 1, Spread: deviation(transform.apply(t.target)),
		Constant: slices.Min(t.target) == slices.Max(t.target),
		Examples: Examples{Count: len(t.target), Settings: t.settings(), Digest: t.digest(s)}}
	for f, feature := range s.Features {
		low, high := t.bins.low[f], t.bins.high[f]
		r := FeatureRange{Feature: feature, Min: low[0], Max: high[len(high)-1]}
		if feature.Levels != nil {
			for _, x := range low {
				r.Seen = append(r.Seen, int(x))
			}
		} else if feature.chosen() && slices.Equal(low, high) { // a bin per value
			r.Measured = measured(t.settingsOf(f))
		}
		m.Features = append(m.Features, r)
	}
	return m
}

// settingsOf yields a feature's values, where it has a bin per value, and the
// settings that had them.
func (t *streamed) settingsOf(f int) iter.Seq2[float64, int] {
	return func(yield func(x float64, group int) bool) {
		group := 0
		for i, code := range t.bins.codes[f] {
			if i > 0 && !bytes.Equal(t.bins.row(int32(i)), t.bins.row(int32(i-1))) {
				group++
			}
			if !yield(t.bins.low[f][code], group) {
				return
			}
		}
	}
}

// digest names the examples as far as they were kept: by features, ranges of
// bins, bins and targets.
func (t *streamed) digest(s *Stream) string {
	h := sha256.New()
	for f, feature := range s.Features {
		fmt.Fprintf(h, "%s %q %q %d\n", feature.Name, feature.Unit, feature.Levels, feature.Monotone)
		writeFloats(h, t.bins.low[f])
		writeFloats(h, t.bins.high[f])
	}
	fmt.Fprintf(h, "%q %q\n", s.TargetName, s.TargetUnit)
	h.Write(t.bins.rows) // a hash never returns an error
	writeFloats(h, t.target)
	return hex.EncodeToString(h.Sum(nil))
}
