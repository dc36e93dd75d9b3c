package schemas

import "slices"

// Columns of foreign load in a regressor's file.
const (
	ColumnForeignCPU    = "foreign_cpu_ratio"
	ColumnForeignIOWait = "foreign_io_wait_ratio"
)

// ForeignColumn is a column of foreign load in a regressor's file.
type ForeignColumn struct {
	Name    string  // ColumnForeignCPU or ColumnForeignIOWait
	Typical float64 // replaces an unknown value
	Max     float64 // largest value of the examples
}

// Ratio returns the ratio of a load that the column contains.
func (c ForeignColumn) Ratio(l *Load) Ratio { return *c.ratio(l) }

func (c ForeignColumn) ratio(l *Load) *Ratio {
	if c.Name == ColumnForeignCPU {
		return &l.ForeignCPURatio
	}
	return &l.ForeignIOWaitRatio
}

// ForeignColumns are the columns of foreign load of a regressor.
type ForeignColumns []ForeignColumn

// Add returns the columns with a column of a file, unless it contains no foreign load.
func (all ForeignColumns) Add(name string, typical, largest float64) ForeignColumns {
	if name != ColumnForeignCPU && name != ColumnForeignIOWait {
		return all
	}
	return append(slices.Clip(all), ForeignColumn{name, typical, largest})
}

// Ratios returns the ratios of a load that have a column: the typical value where one is unknown,
// and 0 without a column.
func (all ForeignColumns) Ratios(l *Load) (cpu, ioWait float64) {
	for _, c := range all {
		value := c.Ratio(l).Or(c.Typical)
		if c.Name == ColumnForeignCPU {
			cpu = value
		} else {
			ioWait = value
		}
	}
	return cpu, ioWait
}

// AreKnown reports whether a load has all ratios that have a column.
func (all ForeignColumns) AreKnown(l *Load) bool {
	return !slices.ContainsFunc(all, func(c ForeignColumn) bool { return !c.ratio(l).Known })
}

// Busiest returns a load with the largest value of the examples for each unknown ratio that has a
// column.
func (all ForeignColumns) Busiest(l Load) Load {
	for _, c := range all {
		if r := c.ratio(&l); !r.Known {
			*r = RatioOf(c.Max)
		}
	}
	return l
}
