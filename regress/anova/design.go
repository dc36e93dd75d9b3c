package anova

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Variable is a column that may influence the response.
type Variable struct {
	Name string
	// Levels of a factor; nil for a covariate, which has a slope.
	Levels []string
	// Values of the runs: the index of the level, or the value of the covariate.
	Values []float64
}

// Design is a response with the variables that may influence it. All numbers are finite.
type Design struct {
	Response  string
	Y         []float64 // the response of each run
	Variables []Variable
	// Interactions are the names of variables that influence the response together. All
	// interactions among some of the names are terms, too.
	Interactions [][]string
}

// Limits of a design. They bound the time and memory of a fit.
const (
	MaxLevels     = 60
	MaxParameters = 200
	MaxRuns       = 10_000
	MaxTerms      = 100
	// MaxEffort bounds the product of runs, terms and squared parameters, to which the time of a
	// fit is proportional: some seconds at this limit.
	MaxEffort = 4e9
)

// ErrTooLarge is wrapped by the error of Fit for a model with too many terms or parameters.
var ErrTooLarge = errors.New("the model is too large")

// check returns why a design cannot be analysed.
func (d *Design) check() error {
	runs, factors := len(d.Y), len(d.Variables)
	switch {
	case runs < 3:
		return fmt.Errorf("%s has %d runs, want at least 3", d.Response, runs)
	case runs > MaxRuns:
		return fmt.Errorf("%s has %d runs, want at most %d", d.Response, runs, MaxRuns)
	case factors == 0:
		return fmt.Errorf("%s: there is no factor, want at least one", d.Response)
	case factors > MaxTerms:
		return fmt.Errorf("%s: there are %d factors, want at most %d: name fewer", d.Response, factors,
			MaxTerms)
	}
	if err := checkSpread(d.Response, d.Y); err != nil {
		return err
	}
	seen := map[string]bool{d.Response: true}
	for i := range d.Variables {
		v := &d.Variables[i]
		if seen[v.Name] {
			return fmt.Errorf("%s is named twice, want each column once", v.Name)
		}
		seen[v.Name] = true
		if err := v.check(); err != nil {
			return err
		}
	}
	return nil
}

// checkSpread checks that numbers differ, and that their squares can be added and divided without
// becoming infinite or zero.
func checkSpread(name string, values []float64) error {
	low, high := slices.Min(values), slices.Max(values)
	switch spread := high - low; {
	case !(spread > 1e-12*max(math.Abs(low), math.Abs(high))):
		return fmt.Errorf("%s is %g in all %d runs: there is no variance to analyse", name, low,
			len(values))
	case spread < 1e-140 || math.IsInf(spread*spread*float64(len(values)), 0):
		return fmt.Errorf("%s is between %g and %g: its squares exceed the range of numbers;"+
			" measure it in another unit", name, low, high)
	}
	return nil
}

func notFinite(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

func (v *Variable) check() error {
	switch {
	case v.Levels == nil:
		return checkSpread("covariate "+v.Name, v.Values)
	case len(v.Levels) == 1:
		return fmt.Errorf("factor %s has the single level %q in these runs: remove it, or measure"+
			" another level", v.Name, v.Levels[0])
	case len(v.Levels) > MaxLevels:
		return fmt.Errorf("factor %s has %d levels, want at most %d: a number with many values is"+
			" better a covariate", v.Name, len(v.Levels), MaxLevels)
	}
	return nil
}

// term is the sorted indices of the variables of an effect.
type term []int

func (t term) contains(u term) bool {
	for _, v := range u {
		if !slices.Contains(t, v) {
			return false
		}
	}
	return true
}

// terms returns the variables, the interactions, and all interactions among some of their names,
// by order.
func (d *Design) terms() ([]term, error) {
	index := map[string]int{}
	var all []term
	for i, v := range d.Variables {
		index[v.Name] = i
		all = append(all, term{i})
	}
	for _, names := range d.Interactions {
		var t term
		for _, name := range names {
			i, known := index[name]
			if !known || slices.Contains(t, i) {
				return nil, fmt.Errorf("interaction %s: %q is not another factor of the model",
					strings.Join(names, ":"), name)
			}
			t = append(t, i)
		}
		if len(t) > 8 {
			return nil, fmt.Errorf("interaction %s: want at most 8 factors",
				strings.Join(names, ":"))
		}
		slices.Sort(t)
		for _, u := range subsets([]int(t)) {
			if !slices.ContainsFunc(all, func(v term) bool { return slices.Equal(u, v) }) {
				all = append(all, u)
			}
		}
		if len(all) > MaxTerms {
			return nil, fmt.Errorf("%s: %w: it has over %d terms; use fewer interactions",
				d.Response, ErrTooLarge, MaxTerms)
		}
	}
	slices.SortStableFunc(all, func(a, b term) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare(a, b)
	})
	return all, nil
}

// subsets returns the subsets that are not empty.
func subsets[T any](all []T) (parts [][]T) {
	for mask := 1; mask < 1<<len(all); mask++ {
		var u []T
		for i, v := range all {
			if mask&(1<<i) != 0 {
				u = append(u, v)
			}
		}
		parts = append(parts, u)
	}
	return parts
}

// name returns the names of the variables, such as cpus:jobs.
func (d *Design) name(t term) string {
	var names []string
	for _, v := range t {
		names = append(names, d.Variables[v].Name)
	}
	return strings.Join(names, ":")
}
