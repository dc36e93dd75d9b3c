package schemas

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// EncoderInput describes a column by the examples that a regressor was fitted on.
type EncoderInput struct {
	Name     string
	Levels   []string // names of a category's levels, by their codes
	Min, Max float64  // range of a number
	Typical  float64  // typical value of a number that may be unknown
}

// ForeignColumn is a column of foreign load, ColumnForeignCPU or ColumnForeignIOWait.
type ForeignColumn struct {
	Column
	Typical float64 // replaces an unknown value
	Max     float64 // largest value of the examples
}

// Encoder encodes a job, its load and its node as a row of features for one regressor. Training
// creates it from the examples, advice from the regressor's file. It is immutable.
//
// An unknown property of a node is replaced by the value that all examples share. If they do not
// share one, the node is outside the support and advice gives no guarantee.
type Encoder struct {
	columns       []Column
	models        []string
	cpuModels     []cpuModel
	cores         valueRange // of the examples, if there is such a column
	speed         valueRange
	hasSpeed      bool
	modelIndex    int // index of the column; -1: none
	cpuModelIndex int
	foreign       []ForeignColumn // the last columns
}

// cpuModel is a level of the column of CPU models. In a regressor with speeds, nodes of unknown
// speed have levels of their own.
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

// parseCPUModel parses the result of cpuModel.String.
func parseCPUModel(level string) (c cpuModel) {
	c.name, c.unmeasured = strings.CutSuffix(level, unmeasured)
	if c.name == "" && c.unmeasured {
		c = cpuModel{name: level}
	}
	if c.name == unknownCPU {
		c.name = ""
	}
	return c
}

// valueRange is the range of a number among the examples; zero if there is no such column.
type valueRange struct{ min, max float64 }

func (r *valueRange) add(x float64) {
	if r.max == 0 || x < r.min {
		r.min = x
	}
	r.max = max(r.max, x)
}

func (r valueRange) constant() bool { return r.min == r.max }

// clamp returns the value of the range that is nearest to x.
func (r valueRange) clamp(x float64) float64 {
	if r.max == 0 {
		return x
	}
	return min(max(x, r.min), r.max)
}

// middle returns the value that replaces an unknown one.
func (r valueRange) middle() float64 { return math.Sqrt(r.min * r.max) }

// NodeCode is the encoded form of a node.
type NodeCode struct {
	Cores    float64
	CPUModel float64 // index of the level; -1: a level that no example has
	Speed    float64
	// OutsideSupport reports that a property in which the examples' nodes differ is unknown.
	OutsideSupport bool
}

// NewEncoder chooses the columns for examples of models on nodes; models and nodes have one entry
// per example.
//
//   - The cores are a column if all examples have them.
//   - The processes per core are a column if the cores also differ.
//   - The CPU model and the speed are columns if at least one example has them. Examples without
//     them are a level of their own.
//
// The accuracy does not depend on the node. The caller chooses the columns of foreign load.
func NewEncoder(
	target string, models []string, nodes []Hardware, foreign ...ForeignColumn,
) *Encoder {
	e := &Encoder{
		columns: ColumnsOf(target),
		models:  slices.Compact(slices.Sorted(slices.Values(models))),
	}
	if target != TargetAccuracy {
		e.chooseNodeColumns(nodes)
	}
	for _, f := range foreign {
		e.columns = append(e.columns, f.Column)
	}
	e.foreign = foreign
	e.indexCategories()
	return e
}

// chooseNodeColumns adds the columns that distinguish the examples' nodes.
func (e *Encoder) chooseNodeColumns(nodes []Hardware) {
	withCores, withSpeed, withCPUModel := 0, 0, 0
	for _, h := range nodes {
		if h.Cores > 0 {
			withCores++
			e.cores.add(float64(h.Cores))
		}
		if h.Speed > 0 {
			withSpeed++
			e.speed.add(h.Rounded().Speed)
		}
		if h.CPUModel != "" {
			withCPUModel++
		}
	}

	if withCores > 0 && withCores == len(nodes) {
		e.columns = append(e.columns, ColumnCores)
		if !e.cores.constant() {
			e.columns = append(e.columns, ColumnProcessesPerCore)
		}
	}
	e.hasSpeed = withSpeed > 0
	if withCPUModel > 0 || withSpeed > 0 && withSpeed < len(nodes) {
		e.columns = append(e.columns, ColumnCPUModel)
		e.setCPUModels(nodes)
	}
	if e.hasSpeed {
		e.columns = append(e.columns, ColumnNodeSpeed)
	}
}

// setCPUModels sets the levels of the column of CPU models in their order.
func (e *Encoder) setCPUModels(nodes []Hardware) {
	seen := map[cpuModel]bool{}
	for _, h := range nodes {
		if level := e.level(h); !seen[level] {
			seen[level] = true
			e.cpuModels = append(e.cpuModels, level)
		}
	}
	slices.SortFunc(e.cpuModels, func(a, b cpuModel) int {
		switch {
		case a.name != b.name:
			return cmp.Compare(a.name, b.name)
		case a.unmeasured:
			return 1
		}
		return -1
	})
}

// ReadEncoder returns the encoder of a stored regressor. A column that is unknown to this version
// is an error.
func ReadEncoder(inputs []EncoderInput) (*Encoder, error) {
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
			e.cores = valueRange{in.Min, in.Max}
		case ColumnNodeSpeed:
			e.speed, e.hasSpeed = valueRange{in.Min, in.Max}, true
		case ColumnForeignCPU, ColumnForeignIOWait:
			e.foreign = append(e.foreign, ForeignColumn{columns[0], in.Typical, in.Max})
		}
	}
	for _, c := range e.columns {
		if c == ColumnProcessesPerCore && !slices.Contains(e.columns, ColumnCores) {
			return nil, fmt.Errorf("feature %q requires feature %q", c, ColumnCores)
		}
	}
	e.indexCategories()
	return e, nil
}

// indexCategories caches the indices of the columns that are categories.
func (e *Encoder) indexCategories() {
	e.modelIndex = slices.Index(e.columns, ColumnModel)
	e.cpuModelIndex = slices.Index(e.columns, ColumnCPUModel)
}

// Columns returns the columns of a row, in order. The caller must not modify the result.
func (e *Encoder) Columns() []Column { return e.columns }

// ColumnIndex returns the index of a category's column, ColumnModel or ColumnCPUModel, or -1 if the
// encoder has no such column.
func (e *Encoder) ColumnIndex(c Column) int {
	if c == ColumnCPUModel {
		return e.cpuModelIndex
	}
	return e.modelIndex
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

// Model returns the code of a model, and whether the regressor has examples of it.
func (e *Encoder) Model(name string) (float64, bool) {
	i := slices.Index(e.models, name)
	return float64(i), i >= 0
}

// Node returns the code of a node.
//
// A speed outside the examples' range is clamped to it in two cases: if it differs by less than two
// steps, as two measurements of identical nodes may; and if a job reported a speed of this node
// within the range, because the examples may then be of this node before a faster measurement.
func (e *Encoder) Node(h Hardware) (c NodeCode) {
	if c.Cores = float64(h.Cores); h.Cores == 0 {
		c.Cores, c.OutsideSupport = e.cores.middle(), !e.cores.constant()
	}
	if e.cpuModelIndex >= 0 {
		c.CPUModel = e.cpuModel(h)
	}

	switch {
	case !e.hasSpeed:
	case h.Speed > 0:
		c.Speed = h.Rounded().Speed
		nearest := e.speed.clamp(c.Speed)
		wasSlower := h.Slowest > 0 && rounded(h.Slowest) <= nearest && nearest < c.Speed
		if ColumnNodeSpeed.Near(nearest, c.Speed) || wasSlower {
			c.Speed = nearest
		}
	default: // the level of the CPU model, if any, encodes that the speed is unknown
		c.Speed = e.speed.middle()
		c.OutsideSupport = c.OutsideSupport || e.cpuModelIndex < 0 && !e.speed.constant()
	}
	return c
}

// Nearest returns the code of a node with each property replaced by the nearest value among the
// examples.
func (e *Encoder) Nearest(h Hardware) NodeCode {
	c := e.Node(h)
	return NodeCode{
		Cores:    e.cores.clamp(c.Cores),
		CPUModel: max(c.CPUModel, 0),
		Speed:    e.speed.clamp(c.Speed),
	}
}

// level returns the level of a node in the column of CPU models.
func (e *Encoder) level(h Hardware) cpuModel {
	return cpuModel{h.CPUModel, e.hasSpeed && h.Speed == 0}
}

// cpuModel returns the code of a node's level, or -1. If all examples have the same speed, an
// unknown speed counts as this speed. If they have only one level, so does an unknown CPU model.
func (e *Encoder) cpuModel(h Hardware) float64 {
	level := e.level(h)
	i := slices.Index(e.cpuModels, level)
	if i < 0 && level.unmeasured && e.speed.constant() {
		i = slices.Index(e.cpuModels, cpuModel{name: h.CPUModel})
	}
	speedKnown := !level.unmeasured || e.speed.constant()
	if i < 0 && h.CPUModel == "" && len(e.cpuModels) == 1 && speedKnown {
		i = 0
	}
	return float64(i)
}

// Fill writes the row of features into dst, which has the length of Columns. The codes of the
// features must come from this encoder. A typical value replaces an unknown foreign load.
func (e *Encoder) Fill(dst []float64, f *Features) {
	if len(e.foreign) > 0 && e.LacksForeign(f) {
		typical := *f
		e.fillForeign(&typical, func(c ForeignColumn) float64 { return c.Typical })
		f = &typical
	}
	f.Fill(dst, e.columns)
}

// LacksForeign reports whether the encoder has a column for a foreign load that is unknown in the
// features.
func (e *Encoder) LacksForeign(f *Features) bool {
	return slices.ContainsFunc(e.foreign, func(c ForeignColumn) bool {
		return !c.foreignRatio(&f.Load).Known
	})
}

// Busiest returns the features with each unknown foreign load replaced by the largest value of the
// examples.
func (e *Encoder) Busiest(f Features) Features {
	e.fillForeign(&f, func(c ForeignColumn) float64 { return c.Max })
	return f
}

// fillForeign replaces each unknown foreign load for which the encoder has a column.
func (e *Encoder) fillForeign(f *Features, value func(ForeignColumn) float64) {
	for _, c := range e.foreign {
		if r := c.foreignRatio(&f.Load); !r.Known {
			*r = RatioOf(value(c))
		}
	}
}

// ForeignRatios returns the foreign loads that have a column: the typical value where one is
// unknown, and 0 without a column.
func ForeignRatios(l *Load, columns []ForeignColumn) (cpu, ioWait float64) {
	for _, c := range columns {
		value := c.foreignRatio(l).Or(c.Typical)
		if c.Column == ColumnForeignCPU {
			cpu = value
		} else {
			ioWait = value
		}
	}
	return cpu, ioWait
}

// ForeignRatios returns the foreign loads for which the encoder has columns.
func (e *Encoder) ForeignRatios(l *Load) (cpu, ioWait float64) {
	return ForeignRatios(l, e.foreign)
}

// foreignRatio returns the ratio of a load for a column of foreign load.
func (c Column) foreignRatio(l *Load) *Ratio {
	if c == ColumnForeignCPU {
		return &l.ForeignCPURatio
	}
	return &l.ForeignIOWaitRatio
}

// Foreign returns the value of a column of foreign load.
func (c Column) Foreign(l *Load) Ratio { return *c.foreignRatio(l) }
