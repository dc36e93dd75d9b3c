package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrInvalid is wrapped by the errors of Compile.
var ErrInvalid = errors.New("invalid regressor")

// check returns an error for a regressor that Fit cannot produce. JSON has no infinite numbers.
func (r *Regressor) check() error {
	if r.Format != format {
		return fmt.Errorf("%w: format %d, want %d", ErrInvalid, r.Format, format)
	}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		part := ""
		switch {
		case s.Time != nil && !s.Time.isValid(s):
			part = "time"
		case slices.ContainsFunc(s.Startup, func(u StartupTimes) bool { return !u.isValid() }):
			part = "start-up"
		case s.Accuracy != nil && !s.Accuracy.isValid():
			part = "accuracy"
		default:
			continue
		}
		return fmt.Errorf("%w: model %q, dataset %q: its %s has values that no fit gives",
			ErrInvalid, s.Model, s.Dataset, part)
	}
	return nil
}

// arePositive reports whether variances, degrees of freedom or lengths are above 0 and plausible.
func arePositive(values ...float64) bool {
	return !slices.ContainsFunc(values, func(x float64) bool { return !(x > 0) || x > 1e6 })
}

// rises reports whether each value is above the previous one.
func rises[T cmp.Ordered](values []T) bool {
	for i := range values[min(1, len(values)):] {
		if values[i+1] <= values[i] {
			return false
		}
	}
	return true
}

func (t *TimeModel) isValid(s *Subject) bool {
	n := len(t.Configurations)
	if n == 0 || n > MaxConfigurations || !(t.LoadVariance >= 0 && t.LoadVariance <= 1e6) ||
		!arePositive(append(t.Lengths[:], t.Balance, t.Amplitude, t.NodeAmplitude, t.Effect, t.PaceVariance,
			t.EpochVariance, t.CorrelatedShare, t.SlopeVariance)...) {
		return false
	}
	for i := range t.Configurations {
		c := &t.Configurations[i]
		isOwn := c.Model == s.Model && c.Dataset == s.Dataset
		isNext := i == 0 || t.Configurations[i-1].compare(c.Configuration) < 0
		if !isOwn || !isNext || !c.valid() || c.Banded() != c.Configuration || !c.hasCurve() {
			return false
		}
	}
	return true
}

// hasCurve reports whether the curve of the configuration is one of a fit.
func (c *ConfigurationTimes) hasCurve() bool {
	n := len(c.Points)
	return c.Runs > 0 && math.Abs(c.Pace) < 100 && arePositive(c.PaceVariance) &&
		n > 0 && c.Points[0] > 0 && rises(c.Points) &&
		len(c.Location) == n && slices.IsSorted(c.Location) && c.Location[0] > -100 && c.Location[n-1] < 100 &&
		len(c.RunVariance) == n && arePositive(c.RunVariance...) &&
		len(c.Degrees) == n && arePositive(c.Degrees...) &&
		len(c.LocationVariance) == n && arePositive(c.LocationVariance...)
}

func (s *StartupTimes) isValid() bool {
	return s.Runs > 0 && math.Abs(s.Location) < 100 && s.LocationVariance >= 0 &&
		arePositive(s.Variance, s.Degrees)
}

func (m *AccuracyModel) isValid() bool {
	if n := len(m.Groups); n == 0 || n > maxGroups || !arePositive(m.Prior) {
		return false
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		isNext := i == 0 || compareGroups(m.Groups[i-1], *g) < 0
		isInvalid := func(r Records) bool { return !r.isValid() }
		if !isNext || g.BatchSize < 1 || len(g.Runs) == 0 || slices.ContainsFunc(g.Runs, isInvalid) {
			return false
		}
	}
	return true
}

func (r *Records) isValid() bool {
	n := len(r.Epochs)
	return n > 0 && n <= maxRecords && r.Epochs[0] > 0 && rises(r.Epochs) && r.Length >= r.Epochs[n-1] &&
		len(r.Accuracy) == n && r.Accuracy[0] >= 0 && rises(r.Accuracy) && r.Accuracy[n-1] <= 1
}

// check returns an error for a state that Add cannot produce.
func (d *DriftState) check() error {
	if len(d.Residuals) > MaxResiduals || len(d.Past) > MaxPastFactors {
		return fmt.Errorf("%w: drift with %d residuals and %d past factors, want at most %d and %d",
			ErrInvalid, len(d.Residuals), len(d.Past), MaxResiduals, MaxPastFactors)
	}
	for i := range d.Past {
		if x := d.Past[i].Ratio; !(x > 1e-9 && x < 1e9) {
			return fmt.Errorf("%w: past factor %d is %g, want 1e-9 to 1e9", ErrInvalid, i, x)
		}
	}
	for i := range d.Residuals {
		if r := &d.Residuals[i]; !r.isValid() {
			return fmt.Errorf("%w: residual %d is %g with variance %g, of which %g is shared",
				ErrInvalid, i, r.Value, r.Variance, r.Shared)
		}
	}
	return nil
}

// isValid reports whether Predictor.Residual can return it.
func (r *Residual) isValid() bool {
	return r.valid() && math.Abs(r.Value) <= maxResidual && r.Variance > residualTolerance &&
		r.Variance <= 1e6 && r.Shared >= 0 && r.Shared <= r.Variance
}
