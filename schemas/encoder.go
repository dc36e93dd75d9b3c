package schemas

import (
	"fmt"
	"math"
	"slices"
)

// Input is a column as the examples of a regressor had it.
type Input struct {
	Name     string
	Levels   []string // of a category, by their values
	Min, Max float64  // of a number
	Typical  float64  // of a number that may be unknown
}

// ForeignColumn is a column of foreign load, ColumnForeignCPU or ColumnForeignIOWait.
type ForeignColumn struct {
	Column
	Typical  float64 // stands in for an unknown value
	Greatest float64 // of the examples
}

// Encoder turns a job, its load and its node into the rows of one regressor: in
// training from the examples, in advice from the regressor's file. It never
// changes.
//
// What is unknown of a node is taken for what all examples have in common. Where
// they differ it is beyond them, and nothing can be promised.
type Encoder struct {
	columns    []Column
	models     []string
	cpuModels  []cpuModel
	cores      extent // of the examples, where there is the column
	speed      extent
	withSpeed  bool
	modelAt    int // index of the column; -1: none
	cpuModelAt int
	foreign    []ForeignColumn // the last columns
}

// cpuModel is a level of its column. Nodes whose speed nobody measured are levels
// of their own in a regressor that has speeds.
type cpuModel struct {
	name       string
	unmeasured bool
}

const (
	unknownCPU = "unknown"
	unmeasured = ", speed not measured"
)

func (c cpuModel) String() string {
	name := c.name
	if name == "" {
		name = unknownCPU
	}
	if c.unmeasured {
		name += unmeasured
	}
	return name
}

func parseCPUModel(level string) (c cpuModel) {
	if c.name = level; len(level) > len(unmeasured) && level[len(level)-len(unmeasured):] == unmeasured {
		c.name, c.unmeasured = level[:len(level)-len(unmeasured)], true
	}
	if c.name == unknownCPU {
		c.name = ""
	}
	return c
}

// extent is the range of a number among the examples.
type extent struct{ min, max float64 }

func (e *extent) add(x float64) {
	if e.max == 0 || x < e.min {
		e.min = x
	}
	e.max = max(e.max, x)
}

func (e extent) constant() bool { return e.min == e.max }

func (e extent) within(x float64) float64 {
	if e.max == 0 { // there is no such column
		return x
	}
	return min(max(x, e.min), e.max)
}

// middle stands in for what is unknown.
func (e extent) middle() float64 { return math.Sqrt(e.min * e.max) }

// NodeCode is a node as a regressor reads it.
type NodeCode struct {
	Cores    float64
	CPUModel float64 // index of the level; -1: none of the examples
	Speed    float64
	Beyond   bool // something that tells the examples' nodes apart is unknown
}

// NewEncoder chooses the columns for examples of models on nodes, an entry each.
// Cores are a column where all examples know them, processes per core where those
// differ, too (else they are processes, again), the CPU model and the speed where
// any does: examples without are a level of their own. The accuracy does not
// depend on the node. The columns of foreign load, if any, are chosen by the caller.
func NewEncoder(
	target string, models []string, nodes []Hardware, foreign ...ForeignColumn,
) *Encoder {
	e := &Encoder{columns: ColumnsOf(target), models: slices.Compact(slices.Sorted(slices.Values(models)))}
	if target != TargetAccuracy {
		e.chooseNodeColumns(nodes)
	}
	for _, f := range foreign {
		e.columns = append(e.columns, f.Column)
	}
	e.foreign = foreign
	e.index()
	return e
}

func (e *Encoder) chooseNodeColumns(nodes []Hardware) {
	sized, measured, named := 0, 0, 0
	levels := map[cpuModel]bool{}
	for _, h := range nodes {
		if h.Cores > 0 {
			sized++
			e.cores.add(float64(h.Cores))
		}
		if h.Speed > 0 {
			measured++
			e.speed.add(h.Rounded().Speed)
		}
		if h.CPUModel != "" {
			named++
		}
	}
	if sized > 0 && sized == len(nodes) {
		e.columns = append(e.columns, ColumnCores)
		if !e.cores.constant() {
			e.columns = append(e.columns, ColumnProcessesPerCore)
		}
	}
	e.withSpeed = measured > 0
	if named > 0 || measured > 0 && measured < len(nodes) {
		e.columns = append(e.columns, ColumnCPUModel)
		for _, h := range nodes {
			if level := e.level(h); !levels[level] {
				levels[level] = true
				e.cpuModels = append(e.cpuModels, level)
			}
		}
		slices.SortFunc(e.cpuModels, func(a, b cpuModel) int {
			if a.name != b.name {
				return map[bool]int{true: -1, false: 1}[a.name < b.name]
			}
			return map[bool]int{true: 1, false: -1}[a.unmeasured]
		})
	}
	if e.withSpeed {
		e.columns = append(e.columns, ColumnNodeSpeed)
	}
}

// ReadEncoder returns the encoder of a regressor that was fitted before. A column
// that this version does not know is an error.
func ReadEncoder(inputs []Input) (*Encoder, error) {
	e := &Encoder{}
	for _, in := range inputs {
		columns, err := ParseColumns([]string{in.Name})
		if err != nil {
			return nil, err
		}
		switch e.columns = append(e.columns, columns[0]); columns[0] {
		case ColumnModel:
			e.models = in.Levels
		case ColumnCPUModel:
			for _, level := range in.Levels {
				e.cpuModels = append(e.cpuModels, parseCPUModel(level))
			}
		case ColumnCores:
			e.cores = extent{in.Min, in.Max}
		case ColumnNodeSpeed:
			e.speed, e.withSpeed = extent{in.Min, in.Max}, true
		case ColumnForeignCPU, ColumnForeignIOWait:
			e.foreign = append(e.foreign, ForeignColumn{columns[0], in.Typical, in.Max})
		}
	}
	for _, c := range e.columns {
		if c == ColumnProcessesPerCore && !slices.Contains(e.columns, ColumnCores) {
			return nil, fmt.Errorf("feature %q is there without %q", c, ColumnCores)
		}
	}
	e.index()
	return e, nil
}

func (e *Encoder) index() {
	e.modelAt, e.cpuModelAt = slices.Index(e.columns, ColumnModel), slices.Index(e.columns, ColumnCPUModel)
}

// Columns returns what a row consists of, in order. It is not to be changed.
func (e *Encoder) Columns() []Column { return e.columns }

// At returns the index of a category's column, ColumnModel or ColumnCPUModel; -1
// if there is none.
func (e *Encoder) At(c Column) int {
	if c == ColumnCPUModel {
		return e.cpuModelAt
	}
	return e.modelAt
}

// Levels returns the names of a category's levels; nil for a number.
func (e *Encoder) Levels(c Column) []string {
	switch c {
	case ColumnModel:
		return e.models
	case ColumnCPUModel:
		names := make([]string, len(e.cpuModels))
		for i, l := range e.cpuModels {
			names[i] = l.String()
		}
		return names
	}
	return nil
}

// Model returns the code of a model, and whether the regressor has learnt of it.
func (e *Encoder) Model(name string) (float64, bool) {
	i := slices.Index(e.models, name)
	return float64(i), i >= 0
}

// Node returns a node as the regressor reads it. A speed less than two steps
// outside the examples' counts as theirs: so much do measurements of nodes alike
// differ. So does any, if jobs have told of the node that it is as slow as they: they
// may be of this node, from before it was measured faster.
func (e *Encoder) Node(h Hardware) (c NodeCode) {
	if c.Cores = float64(h.Cores); h.Cores == 0 {
		c.Cores, c.Beyond = e.cores.middle(), !e.cores.constant()
	}
	if e.cpuModelAt >= 0 {
		c.CPUModel = e.cpuModel(h)
	}
	switch {
	case !e.withSpeed:
	case h.Speed > 0:
		c.Speed = h.Rounded().Speed
		if near := e.speed.within(c.Speed); ColumnNodeSpeed.Near(near, c.Speed) || h.Slowest > 0 && rounded(h.Slowest) <= near && near < c.Speed {
			c.Speed = near
		}
	default: // the level of the CPU model says so
		c.Speed = e.speed.middle()
		c.Beyond = c.Beyond || e.cpuModelAt < 0 && !e.speed.constant()
	}
	return c
}

// Nearest returns the node among the examples' that comes nearest, in each column
// alone: what a regressor would say of a node if it were like those it knows.
func (e *Encoder) Nearest(h Hardware) NodeCode {
	c := e.Node(h)
	c.Cores, c.Speed, c.CPUModel, c.Beyond = e.cores.within(c.Cores), e.speed.within(c.Speed), max(c.CPUModel, 0), false
	return c
}

// level is that of a node.
func (e *Encoder) level(h Hardware) cpuModel {
	return cpuModel{h.CPUModel, e.withSpeed && h.Speed == 0}
}

func (e *Encoder) cpuModel(h Hardware) float64 {
	level := e.level(h)
	at := slices.Index(e.cpuModels, level)
	if at < 0 && level.unmeasured && e.speed.constant() {
		at = slices.Index(e.cpuModels, cpuModel{name: h.CPUModel})
	}
	if at < 0 && h.CPUModel == "" && len(e.cpuModels) == 1 && (!level.unmeasured || e.speed.constant()) {
		at = 0
	}
	return float64(at)
}

// Fill writes the row of some features, whose codes are this encoder's, into dst,
// which is as long as Columns. A foreign load that is unknown is the typical one.
func (e *Encoder) Fill(dst []float64, f *Features) {
	if len(e.foreign) > 0 && e.LacksForeign(f) {
		typical := *f
		e.assume(&typical, func(c ForeignColumn) float64 { return c.Typical })
		f = &typical
	}
	f.Fill(dst, e.columns)
}

// LacksForeign reports whether the regressor has a column of a foreign load that is unknown among
// the features.
func (e *Encoder) LacksForeign(f *Features) bool {
	return slices.ContainsFunc(e.foreign, func(c ForeignColumn) bool { return !c.of(&f.Load).Known })
}

// Busiest returns the features with each unknown foreign load replaced by the greatest one that
// the examples had.
func (e *Encoder) Busiest(f Features) Features {
	e.assume(&f, func(c ForeignColumn) float64 { return c.Greatest })
	return f
}

// assume fills in the unknown foreign loads that the regressor has columns of.
func (e *Encoder) assume(f *Features, value func(ForeignColumn) float64) {
	for _, c := range e.foreign {
		if r := c.of(&f.Load); !r.Known {
			*r = RatioOf(value(c))
		}
	}
}

// of returns the column's ratio in a load.
func (c Column) of(l *Load) *Ratio {
	if c == ColumnForeignCPU {
		return &l.ForeignCPURatio
	}
	return &l.ForeignIOWaitRatio
}

// Foreign returns the ratio of a load that a column of foreign load holds.
func (c Column) Foreign(l *Load) Ratio { return *c.of(l) }
