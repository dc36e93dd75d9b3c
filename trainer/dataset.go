package trainer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"courier/regress"
	"courier/schemas"
)

// Dataset turns examples into a dataset of package regress. Its groups are configurations, which
// have equal features except for the epochs done. foreign selects columns of foreign load.
func Dataset(target string, examples []Example, foreign ...schemas.ForeignColumn) *regress.Dataset {
	e := encoderOf(target, examples, foreign)
	columns := e.Columns()
	d := &regress.Dataset{
		TargetName: target,
		TargetUnit: map[string]string{
			schemas.TargetEpochTime: "seconds",
			schemas.TargetStartup:   "seconds",
		}[target],
	}
	for _, c := range columns {
		d.Features = append(d.Features, regress.Feature{
			Name:       c.String(),
			Unit:       c.Unit(),
			Continuous: c.Continuous(),
			Alone:      c.DescribesNode(),
			Levels:     e.Levels(c),
		})
		d.Columns = append(d.Columns, make([]float64, len(examples)))
	}
	groups := map[string]int{}
	row := make([]float64, len(columns))
	for i := range examples {
		x := &examples[i]
		x.Features.ModelCode, _ = e.Model(x.level())
		x.Features.Node = e.Node(x.Hardware)
		e.Fill(row, &x.Features)
		for k := range columns {
			d.Columns[k][i] = row[k]
		}
		d.Target, d.Weight = append(d.Target, x.Value), append(d.Weight, x.Weight)
		if k := slices.Index(columns, schemas.ColumnEpochsDone); k >= 0 {
			row[k] = 0
		}
		setting := fmt.Sprint(row)
		if _, ok := groups[setting]; !ok {
			groups[setting] = len(groups)
		}
		d.Group = append(d.Group, groups[setting])
	}
	for _, c := range foreign {
		d.Features[slices.Index(columns, c.Column)].Typical = c.Typical
	}
	for k, c := range columns {
		if c.DescribesNode() {
			d.Features[k].Scarce = scarce(c, d.Columns[k], examples)
		}
	}
	return d
}

// Minimum number of jobs on similar nodes for a bound there. With fewer jobs the bounds, which are
// calibrated on all nodes, covered too few epochs. Another number of cores needs more jobs, because
// load has another effect there (docs/decisions/0009).
const (
	minJobsOnNode  = 10
	minJobsOnCores = 20
)

// scarce returns the values of a node column that too few jobs had: less than the minimum, and less
// than half of the jobs with the most common value, which determines the bounds.
func scarce(c schemas.Column, column []float64, examples []Example) (values []float64) {
	jobs := map[float64]map[string]bool{}
	for i, x := range column {
		if jobs[x] == nil {
			jobs[x] = map[string]bool{}
		}
		jobs[x][cmp.Or(examples[i].Job, fmt.Sprint(i))] = true
	}
	most, enough := 0, minJobsOnNode
	if c == schemas.ColumnCores {
		enough = minJobsOnCores
	}
	for _, withValue := range jobs {
		most = max(most, len(withValue))
	}
	for x := range jobs {
		near := 0
		for y, withValue := range jobs {
			if c.Near(x, y) {
				near += len(withValue)
			}
		}
		if near < enough && 2*near < most {
			values = append(values, x)
		}
	}
	slices.Sort(values)
	return values
}

// encoderOf returns an encoder with the columns that the examples have values for.
func encoderOf(
	target string, examples []Example, foreign []schemas.ForeignColumn,
) *schemas.Encoder {
	models, nodes := make([]string, len(examples)), make([]schemas.Hardware, len(examples))
	for i := range examples {
		models[i], nodes[i] = examples[i].level(), examples[i].Hardware
	}
	return schemas.NewEncoder(target, models, nodes, foreign...)
}

// times returns the times of the first and the last example.
func times(examples []Example) (first, last time.Time) {
	if len(examples) == 0 {
		return first, last
	}
	byTime := func(a, b Example) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) }
	return slices.MinFunc(examples, byTime).At, slices.MaxFunc(examples, byTime).At
}

// thin returns at most maxExamples examples, or one per configuration if that is more: the newest
// of each configuration, and equally many of each as far as possible. Their weights are scaled so
// that each configuration keeps its total weight. Some hundred examples describe a configuration as
// well as a million, but a fit of a million takes minutes.
func thin(examples []Example, maxExamples int) []Example {
	if len(examples) <= maxExamples {
		return examples
	}
	type group struct {
		members []int // newest first
		weight  float64
	}
	groups := map[string]*group{}
	var order []*group
	for i := range examples {
		k := levelText(&examples[i])
		g := groups[k]
		if g == nil {
			g = &group{}
			groups[k] = g
			order = append(order, g)
		}
		g.members, g.weight = append(g.members, i), g.weight+examples[i].Weight
	}
	each := share(maxExamples, order, func(g *group) int { return len(g.members) })
	var kept []int
	factor := make(map[int]float64, maxExamples)
	for _, g := range order {
		slices.SortStableFunc(g.members, func(a, b int) int {
			return examples[b].At.Compare(examples[a].At)
		})
		stay := g.members[:min(each, len(g.members))]
		weight := 0.0
		for _, i := range stay {
			weight += examples[i].Weight
		}
		for _, i := range stay {
			kept, factor[i] = append(kept, i), g.weight/weight
		}
	}
	slices.Sort(kept)
	thinned := make([]Example, len(kept))
	for n, i := range kept {
		thinned[n] = examples[i]
		thinned[n].Weight *= factor[i]
	}
	return thinned
}

// levelText identifies the configuration of an example and its level of foreign load.
func levelText(x *Example) string {
	l := &x.Features.Load
	return fmt.Sprint(settingText(x), l.ForeignCPURatio, l.ForeignIOWaitRatio)
}

// share returns the maximum size of a group such that all groups together have at most total
// members; 1 if there are more groups.
func share[G any](total int, groups []G, size func(G) int) int {
	sizes := make([]int, len(groups))
	for i, g := range groups {
		sizes[i] = size(g)
	}
	slices.SortFunc(sizes, cmp.Compare[int])
	left := total
	for i, s := range sizes {
		if each := left / (len(sizes) - i); each < s {
			return max(1, each)
		}
		left -= s
	}
	return total
}
