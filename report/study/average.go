package study

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"courier/regress/table"
)

// average replaces the jobs that were started together by their mean, if the table names the block
// and the job in it. These jobs share a node at the same time, so they are one observation and not
// several.
func (s *RunsAnalysis) average(o *Options, responses []string) {
	block, job := Column(s.Table, Block), Column(s.Table, Job)
	if block == "" || job == "" || slices.Contains(o.Factors, job) {
		return
	}
	keys := []string{block}
	if name := Column(s.Table, Replication); name != "" {
		keys = append(keys, name)
	}
	for _, role := range settingRoles {
		if name := Column(s.Table, role); name != "" {
			keys = append(keys, name)
		}
	}
	keys = append(keys, slices.Concat(o.Factors, o.Covariates, o.Blocks)...)
	groups := groupRows(s.Table, keys)
	if len(groups) == len(s.Table.Rows) {
		return
	}
	averaged := append(slices.Clone(responses), Column(s.Table, TotalSeconds),
		Column(s.Table, EpochSeconds), Column(s.Table, Accuracy))
	var rows [][]string
	for _, g := range groups {
		rows = append(rows, meanRow(s.Table, g, averaged))
		if len(g) > 1 {
			s.Averaged += len(g)
		}
	}
	s.Notes = append(s.Notes, fmt.Sprintf("%d jobs that ran together are averaged to %d runs: they"+
		" are not independent", s.Averaged, s.Averaged-(len(s.Table.Rows)-len(rows))))
	s.Table.Rows = rows
}

// groupRows returns the rows with equal cells in some columns, in the order of their first row. Cells
// with equal numbers are equal, such as 64 and 64.0.
func groupRows(t *table.Table, names []string) [][]int {
	index := map[string]int{}
	var groups [][]int
	for i, row := range t.Rows {
		var cells []string
		for _, name := range names {
			k := slices.Index(t.Header, name)
			if k < 0 {
				continue
			}
			cell := strings.TrimSpace(row[k])
			if x := table.Number(cell); isNumber(x) {
				cell = strconv.FormatFloat(x, 'g', -1, 64)
			}
			cells = append(cells, cell)
		}
		key := fmt.Sprintf("%q", cells)
		g, known := index[key]
		if !known {
			g = len(groups)
			index[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// meanRow returns the first row of a group with the means of some columns.
func meanRow(t *table.Table, rows []int, averaged []string) []string {
	mean := slices.Clone(t.Rows[rows[0]])
	for k, name := range t.Header {
		if len(rows) == 1 || !slices.Contains(averaged, name) {
			continue
		}
		sum, count := 0.0, 0
		for _, i := range rows {
			if x := table.Number(t.Rows[i][k]); isNumber(x) {
				sum, count = sum+x, count+1
			}
		}
		if mean[k] = ""; count > 0 {
			mean[k] = strconv.FormatFloat(sum/float64(count), 'g', -1, 64)
		}
	}
	return mean
}
