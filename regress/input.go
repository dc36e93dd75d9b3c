package regress

import (
	"fmt"
	"math"
	"slices"
)

// Form is how a feature enters a formula.
type Form string

// The forms. Level is 1 for one level of a category and 0 for all others.
const (
	Plain   Form = "x"
	LogOf   Form = "log"
	LogOf1  Form = "log1p"
	Inverse Form = "inverse"
	Level   Form = "level"
)

const (
	// maxInputs bounds what a formula looks at, so that a row's inputs lie on the stack.
	maxInputs = 64
	// reach is how many ranges beyond the examples a formula is followed to either
	// side; farther out it stays as it is there, and nothing is promised.
	reach = 1
	// wide is the span, as largest by smallest value, from which on a feature
	// enters by its logarithm where the skewnesses differ by nearly nothing.
	wide, nearly = 8, 0.3
)

// Input is a number that a formula makes of one feature: (form(x) - Center) /
// Width, kept within Low and High.
type Input struct {
	// Feature is the index in a row, LevelIndex that of a category's level.
	Feature    int  `json:"feature"`
	Form       Form `json:"form"`
	LevelIndex int  `json:"level_index,omitempty"`
	// Center and Width are the mean and the standard deviation among the examples.
	Center float64 `json:"center"`
	Width  float64 `json:"width"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// shape is the form of x before it is scaled; it may be infinite, never NaN.
func (in *Input) shape(x float64) float64 {
	switch in.Form {
	case LogOf:
		return math.Log(max(x, 0))
	case LogOf1:
		return math.Log1p(max(x, -1))
	case Inverse:
		if x <= 0 {
			return math.Inf(1)
		}
		return 1 / x
	case Level:
		if x == float64(in.LevelIndex) {
			return 1
		}
		return 0
	}
	return x
}

func (in *Input) value(x float64) float64 {
	return min(max((in.shape(x)-in.Center)/in.Width, in.Low), in.High)
}

// newInput scales a form of feature f by the examples; false if all are equal
// there or the form does not suit them.
func newInput(d *Dataset, f int, form Form, level int) (Input, bool) {
	in := Input{Feature: f, Form: form, LevelIndex: level, Width: 1}
	shapes := make([]float64, d.Len())
	for i, x := range d.Columns[f] {
		if shapes[i] = in.shape(x); !finite(shapes[i]) {
			return in, false
		}
	}
	low, high := slices.Min(shapes), slices.Max(shapes)
	in.Center, in.Width = mean(shapes), deviation(shapes)
	if low == high || !finite(in.Center) || !(in.Width > 1e-12*max(math.Abs(low), math.Abs(high))) {
		return in, false
	}
	room := reach * (high/in.Width - low/in.Width)
	in.Low, in.High = (low-in.Center)/in.Width-room, (high-in.Center)/in.Width+room
	return in, true
}

func mean(numbers []float64) float64 {
	m := 0.0
	for _, x := range numbers {
		m += x / float64(len(numbers))
	}
	return m
}

// mainInputs returns one input per feature that varies (one per level but the
// first for a category), in the form that suits its values.
func mainInputs(d *Dataset) []Input {
	var inputs []Input
	for f := range d.Features {
		for _, form := range mainForms(d, f) {
			if in, ok := newInput(d, f, form.Form, form.LevelIndex); ok {
				inputs = append(inputs, in)
			}
		}
	}
	return inputs
}

func mainForms(d *Dataset, f int) []Input {
	if levels := d.Features[f].Levels; levels != nil {
		seen := slices.Compact(slices.Sorted(slices.Values(d.Columns[f])))
		var forms []Input
		for _, level := range seen[1:] {
			forms = append(forms, Input{Form: Level, LevelIndex: int(level)})
		}
		return forms
	}
	return []Input{{Form: evenForm(d.Columns[f])}}
}

// evenForm returns the form under which a feature's different values lie more
// evenly, by their skewness: whoever measured 1, 2, 4 and 8 cores thinks in
// ratios, and whoever measured 1, 3 and 5 jobs in differences. Where that says
// little, as for two values, a span of a factor of 8 calls for the logarithm.
func evenForm(column []float64) Form {
	values := slices.Compact(slices.Sorted(slices.Values(column)))
	low, high := values[0], values[len(values)-1]
	if low < 0 || low == high {
		return Plain
	}
	form, span := LogOf, high/low
	if low == 0 {
		form, span = LogOf1, 1+high
	}
	in := Input{Form: form}
	logs := make([]float64, len(values))
	for i, x := range values {
		logs[i] = in.shape(x)
	}
	plain, even := math.Abs(skewness(values)), math.Abs(skewness(logs))
	if even < plain-1e-9 || span >= wide && even < plain+nearly {
		return form
	}
	return Plain
}

// skewness is the mean of the cubes of deviations from the mean, in standard
// deviations.
func skewness(numbers []float64) float64 {
	center, size, sum := mean(numbers), deviation(numbers), 0.0
	for _, x := range numbers {
		z := (x - center) / size
		sum += z * z * z / float64(len(numbers))
	}
	if !finite(sum) {
		return math.MaxFloat64
	}
	return sum
}

// repeats says that feature f is the product of two others in every example: a
// formula has it already.
func repeats(d *Dataset, f int) bool {
	for a := range d.Features {
		for b := a; b < len(d.Features); b++ {
			if a == f || b == f || a == b || d.Features[a].Levels != nil ||
				d.Features[b].Levels != nil ||
				constant(d.Columns[a]) || constant(d.Columns[b]) {
				continue
			}
			same := true
			for i, x := range d.Columns[f] {
				if p := d.Columns[a][i] * d.Columns[b][i]; !(math.Abs(p-x) <= 1e-9*math.Abs(x)) {
					same = false
					break
				}
			}
			if same {
				return true
			}
		}
	}
	return false
}

func constant(numbers []float64) bool { return slices.Min(numbers) == slices.Max(numbers) }

// check holds for an input that was read.
func (in *Input) check(features []FeatureRange) error {
	if in.Feature < 0 || in.Feature >= len(features) {
		return fmt.Errorf("feature is %d of %d", in.Feature, len(features))
	}
	switch in.Form {
	case Plain, LogOf, LogOf1, Inverse, Level:
	default:
		return fmt.Errorf("form is %q", in.Form)
	}
	if !finite(in.Center) || !(in.Width > 0) || !finite(in.Width) || !(in.Low <= in.High) ||
		!finite(in.Low) || !finite(in.High) {
		return fmt.Errorf("scale is %g, %g within %g and %g", in.Center, in.Width, in.Low, in.High)
	}
	return nil
}

// fill sets the inputs of a row.
func fill(inputs []Input, row []float64, values *[maxInputs]float64) {
	for i := range inputs {
		values[i] = inputs[i].value(row[inputs[i].Feature])
	}
}
