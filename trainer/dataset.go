package trainer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"courier/regress"
	"courier/schemas"
)

// Dataset turns examples into what regress fits. A setting is what the owner
// and the cluster fix: equal features, but for the epochs done. Columns of foreign load are those
// that the caller chooses.
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

// Jobs on nodes alike that are needed for a promise there: with fewer the bounds,
// which are those of all nodes, were kept too rarely. Another number of cores needs
// more, because load acts otherwise there (docs/decisions/0009).
const (
	enoughJobs        = 10
	enoughJobsOnCores = 20
)

// scarce returns the values of a column of nodes that too few jobs had: less than
// enough, and less than half of those that had the most common one: by that bounds
// are set.
func scarce(c schemas.Column, column []float64, examples []Example) (values []float64) {
	jobs := map[float64]map[string]bool{}
	for i, x := range column {
		if jobs[x] == nil {
			jobs[x] = map[string]bool{}
		}
		jobs[x][cmp.Or(examples[i].Job, fmt.Sprint(i))] = true
	}
	most, enough := 0, enoughJobs
	if c == schemas.ColumnCores {
		enough = enoughJobsOnCores
	}
	for _, of := range jobs {
		most = max(most, len(of))
	}
	for x := range jobs {
		near := 0
		for y, of := range jobs {
			if c.Near(x, y) {
				near += len(of)
			}
		}
		if near < enough && 2*near < most {
			values = append(values, x)
		}
	}
	slices.Sort(values)
	return values
}

// encoderOf chooses the columns by what the examples know.
func encoderOf(
	target string, examples []Example, foreign []schemas.ForeignColumn,
) *schemas.Encoder {
	models, nodes := make([]string, len(examples)), make([]schemas.Hardware, len(examples))
	for i := range examples {
		models[i], nodes[i] = examples[i].level(), examples[i].Hardware
	}
	return schemas.NewEncoder(target, models, nodes, foreign...)
}

// span of the examples' times.
func times(examples []Example) (first, last time.Time) {
	if len(examples) == 0 {
		return first, last
	}
	byTime := func(a, b Example) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) }
	return slices.MinFunc(examples, byTime).At, slices.MaxFunc(examples, byTime).At
}
