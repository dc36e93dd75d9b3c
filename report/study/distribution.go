package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"courier/regress/anova"
	"courier/regress/table"
)

// distributionFigures shows the values of a column at each level of the settings, and by the number of
// processes.
func (s *RunsAnalysis) distributionFigures(column string) []figure {
	var all []figure
	settings := s.Settings[:min(len(s.Settings), maxSettings)]
	if name := s.processes(); name != "" && !slices.Contains(settings, name) {
		settings = append(slices.Clone(settings), name)
	}
	for _, setting := range settings {
		if setting != column {
			all = append(all, s.distributionFigure(column, setting))
		}
	}
	return all
}

// processes returns the column with the number of processes of each run. If the table has none, it
// adds the product of CPUs and jobs. It is empty if the table lacks these, too.
func (s *RunsAnalysis) processes() string {
	cpus, jobs := Column(s.Table, CPUs), Column(s.Table, Jobs)
	if name := Column(s.Table, Processes); name != "" || cpus == "" || jobs == "" {
		return name
	}
	name, counts := cpus+" × "+jobs, Numbers(s.Table, cpus)
	if slices.Contains(s.Table.Header, name) {
		return name
	}
	for i, n := range Numbers(s.Table, jobs) {
		s.Table.Rows[i] = append(slices.Clone(s.Table.Rows[i]), number(counts[i]*n))
	}
	s.Table.Header = append(slices.Clone(s.Table.Header), name)
	return name
}

// levelGroup has the values of the runs of a level.
type levelGroup struct {
	name   string
	values []float64
}

// groups returns the sorted numbers of a column by the levels of a setting, sorted as numbers if all of
// the levels are.
func groups(t *table.Table, column, setting string) []levelGroup {
	k := slices.Index(t.Header, setting)
	numbers := Numbers(t, column)
	var all []levelGroup
	for _, rows := range groupRows(t, []string{setting}) {
		g := levelGroup{name: strings.TrimSpace(t.Rows[rows[0]][k])}
		for _, i := range rows {
			if isNumber(numbers[i]) {
				g.values = append(g.values, numbers[i])
			}
		}
		if g.name != "" && len(g.values) > 0 {
			slices.Sort(g.values)
			all = append(all, g)
		}
	}
	allNumbers := !slices.ContainsFunc(all, func(g levelGroup) bool {
		return !isNumber(table.Number(g.name))
	})
	slices.SortStableFunc(all, func(a, b levelGroup) int {
		if allNumbers {
			return cmp.Compare(table.Number(a.name), table.Number(b.name))
		}
		return strings.Compare(a.name, b.name)
	})
	return all
}

func (s *RunsAnalysis) distributionFigure(column, setting string) figure {
	all := groups(s.Table, column, setting)
	var names []string
	var values []float64
	for _, g := range all {
		names, values = append(names, g.name), append(values, g.values...)
	}
	title, ys := fmt.Sprintf("%s by %s", column, setting), numericAxis(values, true)
	if len(all) > maxNamed {
		return scatterFigure(title, column, setting, all, ys)
	}
	c := newChart(title, setting, column, namedAxis(names), ys)
	drawn := 0
	for i, g := range all {
		if len(g.values) >= minBox {
			c.box(float64(i), g.values)
		}
		share := max(1, maxPanelDots*len(g.values)/len(values))
		for k, at := range sample(len(g.values), share) {
			tip := fmt.Sprintf("%s %s: %s", setting, g.name, Digits(g.values[at]))
			c.dot("s1", float64(i), g.values[at], spreadOut(k), tip)
			drawn++
		}
	}
	return figure{studyChart: c, Caption: mediansOf(all, column, setting) + partOf(drawn, len(values))}
}

// maxNamed is the number of levels from which their values are an axis of numbers. Only a covariate
// can have so many.
const maxNamed = anova.MaxLevels

// scatterFigure shows a point per run.
func scatterFigure(title, column, setting string, all []levelGroup, ys chartAxis) figure {
	var xs, values []float64
	for _, g := range all {
		x := table.Number(g.name)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		for _, v := range g.values {
			xs, values = append(xs, x), append(values, v)
		}
	}
	c := newChart(title, setting, column, numericAxis(xs, true), ys)
	drawn := sample(len(xs), maxPanelDots)
	for _, i := range drawn {
		c.dot("s1", xs[i], values[i], 0, fmt.Sprintf("%s %s: %s", setting, Digits(xs[i]),
			Digits(values[i])))
	}
	return figure{studyChart: c, Caption: mediansOf(all, column, setting) + partOf(len(drawn), len(xs))}
}

// minBox is the number of runs from which a level has a box.
const minBox = 5

// spreadOut returns the shift of a point from the middle of its level, so that points with similar
// values are visible. It repeats after seven points.
func spreadOut(k int) float64 { return 3 * float64(k*3%7-3) }

// mediansOf describes the levels with the lowest and the highest median. The values of the groups
// are sorted.
func mediansOf(all []levelGroup, column, setting string) string {
	if len(all) == 0 {
		return "No run has a value of " + column + "."
	}
	byMedian := func(a, b levelGroup) int {
		return cmp.Compare(quantile(a.values, 0.5), quantile(b.values, 0.5))
	}
	low, high := slices.MinFunc(all, byMedian), slices.MaxFunc(all, byMedian)
	lowest, highest := quantile(low.values, 0.5), quantile(high.values, 0.5)
	if lowest == highest {
		return fmt.Sprintf("The median is %s at each %s.", Digits(lowest), setting)
	}
	return fmt.Sprintf("The median is lowest at %s %s with %s (%s) and highest at %s with %s (%s).",
		setting, low.name, Digits(lowest), runsText(len(low.values)), high.name, Digits(highest),
		runsText(len(high.values)))
}

func runsText(n int) string {
	if n == 1 {
		return "1 run"
	}
	return strconv.Itoa(n) + " runs"
}
