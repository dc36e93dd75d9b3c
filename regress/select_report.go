package regress

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// SelectReport is the record of a selection.
type SelectReport struct {
	Target     string    `json:"target"`
	Unit       string    `json:"unit,omitempty"`
	Examples   int       `json:"examples"`
	Settings   int       `json:"settings"`
	Confidence float64   `json:"confidence"`
	Transform  Transform `json:"transform"`
	Folds      int       `json:"folds"`
	Shuffles   int       `json:"shuffles"`
	// Winner is the name of the selected candidate.
	Winner string `json:"winner"`
	// Candidates are sorted by their pinball loss, best first.
	Candidates []Judged `json:"candidates"`
	Baselines  []Judged `json:"baselines"`
	// Groups is the coverage of the winner per level of each category.
	Groups []GroupCoverage `json:"groups,omitempty"`
	// Levels are the errors at levels that were left out, by the best candidate of each family.
	Levels []LevelCheck `json:"levels,omitempty"`
	// HeldOut are the winner's held-out predictions in the first shuffle, at most 5000.
	HeldOut []HeldOut `json:"held_out"`
}

// Judged is the score of a method or baseline on held-out configurations: medians over the shuffles
// and the range of 95 % of them, which is unknown for a single shuffle.
type Judged struct {
	Name   string `json:"name"`
	Family string `json:"family,omitempty"`
	// Pinball is the loss of the bound at the confidence, in the unit of the target.
	Pinball Estimate `json:"pinball"`
	MSE     Estimate `json:"mse"`
	R2      Estimate `json:"r2"`
	MAPE    Estimate `json:"mape"`
	// Coverage is the share of examples within their bound, Width the median of bound /
	// prediction, Refused the share of examples without a bound.
	Coverage Estimate `json:"coverage"`
	Width    Estimate `json:"width"`
	Refused  float64  `json:"refused"`
	// Error is the reason why all figures are unknown.
	Error string `json:"error,omitempty"`
}

// GroupCoverage is the coverage of the winner's bounds for a level of a category, averaged over the
// shuffles.
type GroupCoverage struct {
	Feature  string   `json:"feature"`
	Level    string   `json:"level"`
	Coverage Coverage `json:"coverage"`
}

// LevelCheck scores the predictions of a method at a level after a fit without that level.
type LevelCheck struct {
	Method  string  `json:"method"`
	Feature string  `json:"feature"`
	Level   string  `json:"level"`
	Count   int     `json:"count"`
	Between bool    `json:"between"` // there are levels on both sides
	MAPE    float64 `json:"mape"`    // a ratio
	// Covered is the share within the bound at the confidence, widened by the errors at the other
	// levels; -1 without a bound.
	Covered float64 `json:"covered"`
}

// HeldOut is one example with its held-out prediction.
type HeldOut struct {
	Row       []float64 `json:"row"`
	Truth     float64   `json:"truth"`
	Predicted float64   `json:"predicted"`
	// Bound at the confidence; 0 if there is none.
	Bound float64 `json:"bound"`
	Group int     `json:"group"`
}

// judge scores all shuffles of a method.
func (c *comparison) judge(e *comparedMethod) Judged {
	var j Judged
	if e.baseline != nil {
		j.Name = e.baseline.Name
	} else {
		j.Name, j.Family = e.method.Name, e.method.Family
	}
	var pinball, mse, r2, mape, coverage, width []float64
	for s, t := range e.results {
		if t.err != nil {
			unknown := Estimate{math.NaN(), math.NaN(), math.NaN()}
			return Judged{
				Name:     j.Name,
				Family:   j.Family,
				Pinball:  unknown,
				MSE:      unknown,
				R2:       unknown,
				MAPE:     unknown,
				Coverage: unknown,
				Width:    unknown,
				Error:    t.err.Error(),
			}
		}
		points, bounds := c.bounds(e, s)
		whole := moments{}
		for _, m := range errorSums(c.d.Target, points, c.d.Group) {
			whole.add(m)
		}
		a, _, r, p := whole.scores()
		cover := Cover(c.d.Target, points, bounds, c.o.Confidence)
		mse, r2, mape = append(mse, a), append(r2, r), append(mape, p)
		pinball, coverage, width = append(pinball, c.loss(points, bounds)), append(coverage,
			cover.Ratio.Value), append(width, cover.Width.Value)
		j.Refused += float64(cover.Refused) / float64(len(points)) / float64(len(e.results))
	}
	j.Pinball, j.MSE, j.R2, j.MAPE = spread(pinball), spread(mse), spread(r2), spread(mape)
	j.Coverage, j.Width = spread(coverage), spread(width)
	return j
}

// loss returns the pinball loss of the bounds. If an example has no bound, there are too few
// examples, and it returns the loss of the predictions.
func (c *comparison) loss(points, bounds []float64) float64 {
	if slices.ContainsFunc(bounds, func(b float64) bool { return math.IsInf(b, 0) }) {
		return Pinball(c.d.Target, points, 0.5)
	}
	return Pinball(c.d.Target, bounds, c.o.Confidence)
}

// bounds returns the predictions and bounds of one shuffle in the unit of the target.
func (c *comparison) bounds(e *comparedMethod, shuffle int) (points, bounds []float64) {
	points = make([]float64, c.d.Len())
	for i, p := range e.results[shuffle].predicted {
		points[i] = e.transform.invert(p)
	}
	m := Manifest{Transform: e.transform}
	return points, m.heldOutBounds(c.d, c.residuals(e, shuffle), points, c.folds[shuffle],
		c.o.Confidence)
}

// residuals returns the errors in a shuffle in the unit of the fit.
func (c *comparison) residuals(e *comparedMethod, shuffle int) []float64 {
	fitted := e.transform.apply(c.d.Target)
	residuals := make([]float64, len(fitted))
	for i, p := range e.results[shuffle].predicted {
		residuals[i] = fitted[i] - p
	}
	return residuals
}

// spread returns the median and the range of 95 % of some numbers; a single number has no range.
func spread(numbers []float64) Estimate {
	sorted := slices.Sorted(slices.Values(numbers))
	n := len(sorted)
	e := Estimate{Value: (sorted[(n-1)/2] + sorted[n/2]) / 2}
	if e.Low, e.High = sorted[n/40], sorted[n-1-n/40]; n == 1 {
		e.Low, e.High = math.NaN(), math.NaN()
	}
	return e
}

const maxHeldOut = 5000

// heldOut stores the winner's prediction of each example, and the coverage of its bounds per level
// of a category.
func (c *comparison) heldOut(report *SelectReport, best *comparedMethod) {
	points, bounds := c.bounds(best, 0)
	for i := range min(len(points), maxHeldOut) {
		h := HeldOut{
			Row:       c.d.Row(i, nil),
			Truth:     c.d.Target[i],
			Predicted: points[i],
			Group:     c.d.Group[i],
		}
		if finite(bounds[i]) {
			h.Bound = bounds[i]
		}
		report.HeldOut = append(report.HeldOut, h)
	}
	for f, feature := range c.d.Features {
		for level, name := range feature.Levels {
			var truth, predicted, bound []float64
			for s := range c.folds {
				points, bounds := c.bounds(best, s)
				for i, x := range c.d.Columns[f] {
					if x == float64(level) {
						truth, predicted, bound = append(truth, c.d.Target[i]), append(predicted,
							points[i]), append(bound, bounds[i])
					}
				}
			}
			if len(truth) > 0 {
				report.Groups = append(report.Groups, GroupCoverage{
					feature.Name, name,
					Cover(truth, predicted, bound, c.o.Confidence).averaged(len(c.folds)),
				})
			}
		}
	}
}

// checkLevels leaves out each level of each feature in turn. It is skipped for many examples or
// levels: sparse designs need it most.
func (c *comparison) checkLevels(ctx context.Context, report *SelectReport) error {
	if c.d.Len() > 5000 {
		return nil
	}
	tried := map[string]bool{}
	for _, j := range report.Candidates {
		if tried[j.Family] || j.Error != "" {
			continue
		}
		tried[j.Family] = true
		for _, e := range c.methods {
			if e.method == nil || e.method.Name != j.Name {
				continue
			}
			if err := c.checkMethod(ctx, report, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMethod fits a method without each level, except for features with Alone, and scores its
// predictions there. The bounds at a level widen by the errors at the other levels.
func (c *comparison) checkMethod(
	ctx context.Context, report *SelectReport, e *comparedMethod,
) error {
	var trials []*levelTrial
	for f, feature := range c.d.Features {
		levels := slices.Compact(slices.Sorted(slices.Values(c.d.Columns[f])))
		if feature.Alone || len(levels) < 3 && feature.Levels == nil || len(levels) < 2 ||
			len(levels) > 12 {
			continue
		}
		for k := range levels {
			t, err := c.withoutLevel(ctx, e, f, levels, k)
			if err := ctx.Err(); err != nil {
				return err
			}
			if err == nil { // with an error, too few examples are left
				trials = append(trials, t)
			}
		}
	}
	for _, t := range trials {
		if err := c.checkLevel(t, trials); err != nil {
			continue // a prediction is not finite
		}
		report.Levels = append(report.Levels, t.LevelCheck)
	}
	return nil
}

// levelTrial is a fit without a level.
type levelTrial struct {
	LevelCheck
	left      []int
	regressor *Regressor
	missed    *LeftOutLevel // nil if the level is not a number with levels
}

// withoutLevel fits without a level. The bound gets the offset of the first shuffle.
func (c *comparison) withoutLevel(
	ctx context.Context, e *comparedMethod, f int, levels []float64, k int,
) (*levelTrial, error) {
	feature, out := c.d.Features[f], c.d.levelCase(f, levels, k)
	t := &levelTrial{
		LevelCheck: LevelCheck{
			Method:  e.method.Name,
			Feature: feature.Name,
			Level:   fmt.Sprint(out.level),
			Count:   len(out.left),
			Covered: -1,
		},
		left: out.left,
	}
	if feature.Levels != nil {
		t.Level = feature.Levels[int(out.level)]
	}
	t.Between = feature.Levels == nil && k > 0 && k < len(levels)-1
	r, err := e.method.Fit(ctx, c.d.Subset(out.kept), c.fastOptions())
	if err != nil {
		return nil, err
	}
	t.regressor = r
	r.Manifest.Calibration = newCalibration(c.residuals(e, 0))
	if feature.chosen() && slices.Equal(levels, measured(c.d.settingsOf(f))) {
		t.missed = out.leftOut(c.d, c.o.Transform, r.raw())
	}
	return t, nil
}

// checkLevel scores the predictions at a level that was left out.
func (c *comparison) checkLevel(t *levelTrial, trials []*levelTrial) error {
	m := &t.regressor.Manifest
	for _, other := range trials {
		if other != t && other.missed != nil &&
			slices.Contains(m.Features[other.missed.Feature].Measured, other.missed.Level) {
			m.LeftOut = append(m.LeftOut, *other.missed)
		}
	}
	p, err := compile(t.regressor, 0)
	if err != nil {
		return err
	}
	held, bounded := 0, 0
	for _, i := range t.left {
		point, err := p.Predict(c.d.Row(i, nil))
		if err != nil {
			return err
		}
		truth := c.d.Target[i]
		t.MAPE += ape(truth, truth-point.Value) / float64(len(t.left))
		if bound, _ := p.UpperBound(point, c.o.Confidence); finite(bound) {
			bounded++
			if truth <= bound {
				held++
			}
		}
	}
	if bounded > 0 {
		t.Covered = float64(held) / float64(bounded)
	}
	if !finite(t.MAPE) {
		t.MAPE = -1
	}
	return nil
}
