package regress

import (
	"fmt"
	"slices"
	"strings"
)

// terms returns the inputs of a law and the products that it adds up.
func (o *LawOptions) terms(d *Dataset) ([]Input, [][]int, error) {
	switch {
	case o.Terms != nil:
		return namedTerms(d, o.Terms)
	case o.Linear:
		return linearTerms(d)
	}
	return automaticTerms(d)
}

// automaticTerms are each feature once, all products of two that do not act alone,
// and the inverses of positive numbers. A feature that is the product of two others enters as
// log(1+x), which is not the sum of their logarithms.
func automaticTerms(d *Dataset) ([]Input, [][]int, error) {
	inputs := mainInputs(d)
	for k, in := range inputs {
		if in.Form == LogOf && repeats(d, in.Feature) {
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
			repeats(d, f) {
			continue
		}
		if in, ok := newInput(d, f, Inverse, 0); ok {
			inputs = append(inputs, in)
			terms = append(terms, []int{len(inputs) - 1})
		}
	}
	return inputs, terms, nil
}

// linearTerms are all products of the plain features, as an analysis of variance
// has them, without those that are products of others.
func linearTerms(d *Dataset) ([]Input, [][]int, error) {
	var inputs []Input
	for f, feature := range d.Features {
		if repeats(d, f) {
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
			ErrBadSettings, len(inputs))
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

// namedTerms reads terms as people write them.
func namedTerms(d *Dataset, names []string) ([]Input, [][]int, error) {
	var inputs []Input
	var terms [][]int
	for _, name := range names {
		products := [][]int{{}}
		for factor := range strings.SplitSeq(name, "*") {
			choices, err := namedInputs(d, strings.TrimSpace(factor))
			if err != nil {
				return nil, nil, fmt.Errorf("%w: term %q: %w", ErrBadSettings, name, err)
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

// namedInputs reads one factor; a category stands for its levels but the first.
// What never varies among the examples is no input.
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
			return nil, fmt.Errorf("%s is a category", name)
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
