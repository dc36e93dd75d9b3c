package anova

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"courier/regress/table"
)

// ColumnChoice selects the columns of a table that make a design.
type ColumnChoice struct {
	Response   string
	Factors    []string // columns whose values are levels, even if they are numbers
	Covariates []string // numbers whose effect is a slope
	// Blocks are factors that do not interact with others, such as the replication.
	Blocks []string
	// Interactions are names joined by colons, such as cpus:jobs.
	Interactions []string
	// Order adds the interactions of up to so many factors and covariates; 0 and 1 add none.
	Order int
}

// TableDesign is a design with the number of rows that it leaves out.
type TableDesign struct {
	Design
	// Rows are the indices of the rows of the runs.
	Rows []int
	// Incomplete counts the rows in which the response or a factor is empty.
	Incomplete int
}

// FromTable returns the design of some columns of a table. Rows with an empty cell in one of them
// are left out.
func FromTable(t *table.Table, c ColumnChoice) (*TableDesign, error) {
	d := &TableDesign{Design: Design{Response: c.Response}}
	names := slices.Concat([]string{c.Response}, c.Factors, c.Covariates, c.Blocks)
	columns := make([]int, len(names))
	for i, name := range names {
		var err error
		if columns[i], err = t.Column(name); err != nil {
			return nil, err
		}
	}
	for row, cells := range t.Rows {
		if slices.ContainsFunc(columns, func(k int) bool { return strings.TrimSpace(cells[k]) == "" }) {
			d.Incomplete++
			continue
		}
		d.Rows = append(d.Rows, row)
	}
	if len(d.Rows) == 0 {
		return nil, fmt.Errorf("none of %d rows has a value in all of the columns %s", len(t.Rows),
			strings.Join(names, ", "))
	}
	var err error
	if d.Y, err = numbers(t, d.Rows, c.Response, columns[0]); err != nil {
		return nil, err
	}
	for i, name := range names[1:] {
		v := Variable{Name: name}
		if slices.Contains(c.Covariates, name) {
			v.Values, err = numbers(t, d.Rows, name, columns[i+1])
		} else {
			err = v.setLevels(t, d.Rows, columns[i+1])
		}
		if err != nil {
			return nil, err
		}
		d.Variables = append(d.Variables, v)
	}
	d.Interactions, err = c.interactions()
	return d, err
}

// interactions returns the names of the variables of all interactions.
func (c *ColumnChoice) interactions() ([][]string, error) {
	crossed := slices.Concat(c.Factors, c.Covariates)
	if c.Order > 1 && len(crossed) > 12 {
		return nil, fmt.Errorf("%d factors have too many interactions: name some, such as %s:%s",
			len(crossed), crossed[0], crossed[1])
	}
	var all [][]string
	if c.Order > 1 {
		all = slices.DeleteFunc(subsets(crossed), func(names []string) bool {
			return len(names) < 2 || len(names) > c.Order
		})
	}
	for _, list := range c.Interactions {
		names := strings.Split(list, ":")
		if len(names) < 2 {
			return nil, fmt.Errorf("interaction %q has a single name, want for example cpus:jobs",
				list)
		}
		all = append(all, names)
	}
	return all, nil
}

// numbers returns the numbers of a column.
func numbers(t *table.Table, rows []int, name string, column int) ([]float64, error) {
	var values []float64
	for _, row := range rows {
		cell := t.Rows[row][column]
		x := table.Number(cell)
		if notFinite(x) {
			return nil, fmt.Errorf("%s of row %d is %q, want a finite number", name, row+1, cell)
		}
		values = append(values, x)
	}
	return values, nil
}

// setLevels sets the levels of a factor, sorted as numbers if all of them are.
func (v *Variable) setLevels(t *table.Table, rows []int, column int) error {
	index, allNumbers := map[string]int{}, true
	for _, row := range rows {
		cell := canonical(t.Rows[row][column])
		if strings.EqualFold(cell, "nan") {
			return fmt.Errorf("%s of row %d is %q, want a level; leave unknown cells empty", v.Name,
				row+1, cell)
		}
		if _, known := index[cell]; !known {
			index[cell] = 0
			v.Levels = append(v.Levels, cell)
			allNumbers = allNumbers && !notFinite(table.Number(cell))
		}
	}
	slices.SortFunc(v.Levels, func(a, b string) int {
		if allNumbers {
			return cmp.Or(cmp.Compare(table.Number(a), table.Number(b)), strings.Compare(a, b))
		}
		return strings.Compare(a, b)
	})
	for i, level := range v.Levels {
		index[level] = i
	}
	for _, row := range rows {
		v.Values = append(v.Values, float64(index[canonical(t.Rows[row][column])]))
	}
	return nil
}

// canonical returns a cell without blanks; equal numbers, such as 64 and 64.0, become equal texts.
func canonical(cell string) string {
	cell = strings.TrimSpace(cell)
	if x := table.Number(cell); !notFinite(x) {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return cell
}
