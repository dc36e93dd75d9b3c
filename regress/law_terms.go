package regress

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// terms returns the inputs of a law and the products in its sum.
func (o *LawOptions) terms(d *Dataset) ([]Input, [][]int, error) {
	switch {
	case o.Terms != nil:
		return namedTerms(d, o.Terms)
	case o.Linear:
		return linearTerms(d)
	}
	return automaticTerms(d)
}

// automaticTerms returns each feature once, all products of two features without Alone, and the
// inverses of positive numbers. A feature that is the product of two others enters as log(1+x),
// which is not the sum of their logarithms.
func automaticTerms(d *Dataset) ([]Input, [][]int, error) {
	inputs := mainInputs(d)
	for k, in := range inputs {
		if in.Form == LogOf && isProduct(d, in.Feature) {
			if other, ok := newInput(d, in.Feature, LogOf1, 0); ok {
				inputs[k] = other
			}
		}
	}
	var terms [][]int
	for i := range inputs {
		terms = append(terms, []int{i})
	}
	for i := range inputs {
		for j := range i {
			if a, b := inputs[i].Feature, inputs[j].Feature; a != b && !d.Features[a].Alone &&
				!d.Features[b].Alone {
				terms = append(terms, []int{j, i})
			}
		}
	}
	for f := range d.Features {
		if d.Features[f].Levels != nil || d.Features[f].Alone || slices.Min(d.Columns[f]) <= 0 ||
			isProduct(d, f) {
			continue
		}
		if in, ok := newInput(d, f, Inverse, 0); ok {
			inputs = append(inputs, in)
			terms = append(terms, []int{len(inputs) - 1})
		}
	}
	return inputs, terms, nil
}

// linearTerms returns all products of the plain features, as in an analysis of variance, without
// features that are products of others.
func linearTerms(d *Dataset) ([]Input, [][]int, error) {
	var inputs []Input
	for f, feature := range d.Features {
		if isProduct(d, f) {
			continue
		}
		forms := []Input{{Form: Plain}}
		if feature.Levels != nil {
			forms = mainForms(d, f)
		}
		for _, form := range forms {
			if in, ok := newInput(d, f, form.Form, form.LevelIndex); ok {
				inputs = append(inputs, in)
			}
		}
	}
	if len(inputs) > 10 {
		return nil, nil, fmt.Errorf("%w: all products of %d features are too many, want at most 10",
			ErrBadOptions, len(inputs))
	}
	var terms [][]int
	for set := 1; set < 1<<len(inputs); set++ {
		var term []int
		for i := range inputs {
			if set>>i&1 == 1 {
				term = append(term, i)
			}
		}
		terms = append(terms, term)
	}
	slices.SortStableFunc(terms, func(a, b []int) int { return len(a) - len(b) })
	return inputs, terms, nil
}

// namedTerms parses terms as written in LawOptions.
func namedTerms(d *Dataset, names []string) ([]Input, [][]int, error) {
	var inputs []Input
	var terms [][]int
	for _, name := range names {
		products := [][]int{{}}
		for factor := range strings.SplitSeq(name, "*") {
			choices, err := namedInputs(d, strings.TrimSpace(factor))
			if err != nil {
				return nil, nil, fmt.Errorf("%w: term %q: %w", ErrBadOptions, name, err)
			}
			var longer [][]int
			for _, p := range products {
				for _, in := range choices {
					at := slices.Index(inputs, in)
					if at < 0 {
						at = len(inputs)
						inputs = append(inputs, in)
					}
					longer = append(longer, append(slices.Clone(p), at))
				}
			}
			products = longer
		}
		terms = append(terms, products...)
	}
	return inputs, terms, nil
}

// namedInputs parses one factor; a category stands for all its levels except the first. A constant
// feature is no input.
func namedInputs(d *Dataset, factor string) ([]Input, error) {
	form, name := Plain, factor
	for prefix, f := range map[string]Form{"log(": LogOf, "log1p(": LogOf1} {
		if inner, ok := strings.CutPrefix(factor, prefix); ok && strings.HasSuffix(inner, ")") {
			form, name = f, strings.TrimSuffix(inner, ")")
		}
	}
	if inner, ok := strings.CutPrefix(factor, "1/"); ok {
		form, name = Inverse, inner
	}
	f := slices.IndexFunc(d.Features, func(f Feature) bool { return f.Name == name })
	if f < 0 {
		return nil, fmt.Errorf("there is no feature %q", name)
	}
	forms := []Input{{Form: form}}
	if d.Features[f].Levels != nil {
		if form != Plain {
			return nil, fmt.Errorf("form of %s: the feature is a category, want the form %q", name, Plain)
		}
		forms = mainForms(d, f)
	}
	var inputs []Input
	for _, form := range forms {
		in, ok := newInput(d, f, form.Form, form.LevelIndex)
		switch {
		case ok:
			inputs = append(inputs, in)
		case !constant(d.Columns[f]):
			return nil, fmt.Errorf("%s has values that the form does not suit", name)
		}
	}
	return inputs, nil
}

// Form is the function of a feature in a formula.
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
	// maxInputs is the maximum number of inputs of a formula, so that the inputs of a row fit on
	// the stack.
	maxInputs = 64
	// extrapolationRange is how many ranges outside the examples a formula is evaluated on either
	// side; farther outside it is constant.
	extrapolationRange = 1
	// wide is the ratio of largest to smallest value from which a feature enters by its logarithm
	// if the skewnesses differ by less than nearly.
	wide, nearly = 8, 0.3
)

// Input is a number that a formula computes from one feature: (form(x) - Center) / Width, limited
// to Low and High.
type Input struct {
	// Feature is the index in a row, LevelIndex the index of a category's level.
	Feature    int  `json:"feature"`
	Form       Form `json:"form"`
	LevelIndex int  `json:"level_index,omitempty"`
	// Center and Width are the mean and the standard deviation among the examples.
	Center float64 `json:"center"`
	Width  float64 `json:"width"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// shape returns the form of x before it is scaled; it may be infinite, never NaN.
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

// newInput scales a form of feature f by the examples; false if it is constant there or not finite.
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
	room := extrapolationRange * (high/in.Width - low/in.Width)
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

// mainInputs returns one input per feature that varies (for a category one per level except the
// first), in the form that suits its values.
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
	return []Input{{Form: symmetricForm(d.Columns[f])}}
}

// symmetricForm returns the form under which the distinct values of a feature are less skewed:
// values 1, 2, 4 and 8 suggest ratios, values 1, 3 and 5 differences. If both are similar, as for
// two values, a span of a factor of 8 selects the logarithm.
func symmetricForm(column []float64) Form {
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

// skewness returns the mean of the cubes of standardized deviations.
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

// isProduct reports whether feature f is the product of two others in every example, so that a
// formula has it already.
func isProduct(d *Dataset, f int) bool {
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

// check checks an input of a manifest.
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
		return fmt.Errorf("invalid scale: center %g, width %g, range %g to %g",
			in.Center, in.Width, in.Low, in.High)
	}
	return nil
}

// fill sets the inputs of a row.
func fill(inputs []Input, row []float64, values *[maxInputs]float64) {
	for i := range inputs {
		values[i] = inputs[i].value(row[inputs[i].Feature])
	}
}
