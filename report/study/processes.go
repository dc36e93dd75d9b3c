package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"courier/regress/table"
)

// processes returns the number of processes of each run and where the numbers are from; nil if the
// table does not have them.
func (s *RunsAnalysis) processes() (counts []float64, source string) {
	if name := Column(s.Table, Processes); name != "" {
		return Numbers(s.Table, name), name
	}
	cpus, jobs := Column(s.Table, CPUs), Column(s.Table, Jobs)
	if cpus == "" || jobs == "" {
		return nil, ""
	}
	counts = Numbers(s.Table, cpus)
	for i, n := range Numbers(s.Table, jobs) {
		counts[i] *= n
	}
	return counts, cpus + " × " + jobs
}

// processPoint is the mean of the runs of a series with the same number of processes.
type processPoint struct {
	count, mean float64
}

// processesFigure shows a column against the number of processes, with a line per batch size; nil
// if fewer than two numbers of processes have a value.
func (s *RunsAnalysis) processesFigure(column string) *figure {
	counts, source := s.processes()
	values := Numbers(s.Table, column)
	if counts == nil || values == nil {
		return nil
	}
	names, of := s.batchSizes()
	var xs, ys []float64
	for i := range values {
		if isNumber(values[i]) && isFiniteProduct(counts[i]) {
			xs, ys = append(xs, counts[i]), append(ys, values[i])
		}
	}
	if len(xs) == 0 || slices.Min(xs) == slices.Max(xs) {
		return nil
	}
	axisName := "processes"
	if source != axisName {
		axisName += " (" + source + ")"
	}
	counted := numericAxis(xs, true)
	counted.whole = true
	c := newChart(column+" against processes", axisName, column, counted, numericAxis(ys, true))
	if len(names) > seriesColours*seriesMarks {
		names, of = nil, nil
	}
	drawn := s.drawProcesses(c, counts, values, names, of)
	f := &figure{studyChart: c, Caption: processesText(column, xs, ys) + partOf(drawn, len(xs))}
	if len(names) > 1 {
		f.Factor, f.Legend = Column(s.Table, BatchSize), legend(names)
	}
	return f
}

// isFiniteProduct reports whether a number of processes can be drawn.
func isFiniteProduct(x float64) bool { return isNumber(x) && x-x == 0 }

// batchSizes returns the batch sizes in order, and the index of that of each row; -1 without one.
func (s *RunsAnalysis) batchSizes() (names []string, of []int) {
	name := Column(s.Table, BatchSize)
	if name == "" {
		return nil, nil
	}
	names = levels(s.Table, name)
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(table.Number(a), table.Number(b))
	})
	index := map[string]int{}
	for i, n := range names {
		index[n] = i
	}
	k := slices.Index(s.Table.Header, name)
	for _, row := range s.Table.Rows {
		at, known := index[strings.TrimSpace(row[k])]
		if !known {
			at = -1
		}
		of = append(of, at)
	}
	return names, of
}

// drawProcesses adds the runs and the means of each batch size, and returns the number of runs.
func (s *RunsAnalysis) drawProcesses(
	c *studyChart, counts, values []float64, names []string, of []int,
) int {
	var rows []int
	for i := range values {
		if isNumber(values[i]) && isFiniteProduct(counts[i]) && (of == nil || of[i] >= 0) {
			rows = append(rows, i)
		}
	}
	bySeries := make([][]int, max(1, len(names)))
	for _, i := range rows {
		series := 0
		if of != nil {
			series = of[i]
		}
		bySeries[series] = append(bySeries[series], i)
	}
	for series, members := range bySeries {
		c.processMeans(series, members, counts, values)
	}
	drawn := sample(len(rows), maxPanelDots)
	for _, at := range drawn {
		i, class, batch := rows[at], "s0", ""
		if of != nil {
			class, batch = seriesClass(of[i]), ", batch size "+names[of[i]]
		}
		c.dot(class, counts[i], values[i], 0, processesOf(counts[i])+batch+": "+
			Digits(values[i]))
	}
	return len(drawn)
}

// maxProcessMeans is the largest number of means of a series. More are drawn as runs only.
const maxProcessMeans = 60

// processMeans adds a line through the means of a series.
func (c *studyChart) processMeans(series int, rows []int, counts, values []float64) {
	sums, runs := map[float64]float64{}, map[float64]float64{}
	for _, i := range rows {
		runs[counts[i]]++
	}
	for _, i := range rows {
		sums[counts[i]] += values[i] / runs[counts[i]]
	}
	var points []processPoint
	for count, mean := range sums {
		points = append(points, processPoint{count, mean})
	}
	slices.SortFunc(points, func(a, b processPoint) int { return cmp.Compare(a.count, b.count) })
	var xs, ys []float64
	for _, p := range points {
		xs, ys = append(xs, p.count), append(ys, p.mean)
	}
	if len(xs) == 0 || len(xs) > maxProcessMeans {
		return
	}
	c.line(seriesClass(series), xs, ys, 0)
	for i := range xs {
		c.mark(series, xs[i], ys[i], 0, fmt.Sprintf("mean with %s: %s", processesOf(xs[i]),
			Digits(ys[i])))
	}
}

// processesText compares the runs with the fewest and with the most processes.
func processesText(column string, counts, values []float64) string {
	few, many := slices.Min(counts), slices.Max(counts)
	mean := func(count float64) (float64, int) {
		sum, n := 0.0, 0
		for i, c := range counts {
			if c == count {
				n++
				sum += (values[i] - sum) / float64(n)
			}
		}
		return sum, n
	}
	low, lowRuns := mean(few)
	high, highRuns := mean(many)
	return fmt.Sprintf("The mean of %s is %s with %s (%s) and %s with %s (%s).", column,
		Digits(low), processesOf(few), runsText(lowRuns), Digits(high), processesOf(many),
		runsText(highRuns))
}

// regressorFigure shows the errors of methods on held-out runs.
func regressorFigure(title string, scores []MethodScore) *figure {
	var rows []estimateRow
	var failed []string
	high := 0.0
	for _, m := range scores {
		e := m.Scores.MAPE
		if m.Error != "" || !isFiniteProduct(e.Value) || !isFiniteProduct(e.Low) ||
			!isFiniteProduct(e.High) {
			failed = append(failed, m.Method+" ("+cmp.Or(m.Error, "no error could be computed")+")")
			continue
		}
		value := fmt.Sprintf("%.1f %% (%.1f to %.1f %%)", 100*e.Value, 100*e.Low, 100*e.High)
		rows = append(rows, estimateRow{m.Method, value, 100 * e.Value, 100 * e.Low, 100 * e.High})
		high = max(high, 100*e.High, 100*e.Value)
	}
	if len(rows) == 0 {
		return nil
	}
	caption := fmt.Sprintf("The best of %d methods is %s: %s, %s.", len(rows), rows[0].name,
		rows[0].value, runsText(scores[0].Runs))
	if len(failed) > 0 {
		caption += " Not fitted: " + strings.Join(failed, ", ") + "."
	}
	return &figure{
		studyChart: rowChart(title, "mean absolute percentage error, with 95 % interval", rows,
			max(1.03*high, 1e-9), true),
		Caption: caption,
	}
}

func processesOf(count float64) string {
	if count == 1 {
		return "1 process"
	}
	return number(count) + " processes"
}
