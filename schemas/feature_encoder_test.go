package schemas_test

import (
	"math"
	"strings"
	"testing"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// storedEncoder returns the encoder of a regressor that was fitted on nodes, as read from its file.
// Its ranges come from the rows of the examples.
func storedEncoder(t *testing.T, nodes ...schemas.Hardware) *schemas.Encoder {
	t.Helper()
	models := make([]string, len(nodes))
	for i := range models {
		models[i] = "m"
	}
	e := schemas.NewEncoder(schemas.TargetEpochTime, models, nodes)
	columns := e.Columns()
	inputs := make([]schemas.EncoderInput, len(columns))
	for i, c := range columns {
		inputs[i] = schemas.EncoderInput{
			Name:   c.String(),
			Levels: e.Levels(c),
			Min:    math.Inf(1),
			Max:    math.Inf(-1),
		}
	}
	row := make([]float64, len(columns))
	for _, h := range nodes {
		e.Fill(row, &schemas.Features{
			BatchSize: 64,
			CPUs:      2,
			Load:      schemas.Load{Processes: 2},
			Node:      e.Node(h),
		})
		for i, x := range row {
			inputs[i].Min, inputs[i].Max = min(inputs[i].Min, x), max(inputs[i].Max, x)
		}
	}
	e, err := schemas.ReadEncoder(inputs)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// nodeColumns returns the names of the columns that distinguish nodes.
func nodeColumns(e *schemas.Encoder) string {
	var names []string
	for _, c := range e.Columns()[len(schemas.ColumnsOf(schemas.TargetEpochTime)):] {
		names = append(names, c.String())
	}
	return strings.Join(names, " ")
}

func TestNewEncoder_ChoosesColumnsByWhatExamplesKnow(t *testing.T) {
	const speed = "node_speed_operations_per_second"
	quick := schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1e9}
	slow := schemas.Hardware{Cores: 8, CPUModel: "y", Speed: 6e8}
	bare := schemas.Hardware{Cores: 4}
	for _, c := range []struct {
		name    string
		nodes   []schemas.Hardware
		columns string
		levels  []string
	}{
		{"nothing is known", []schemas.Hardware{{}, {}}, "", nil},
		{"events of old: cores only, all alike", []schemas.Hardware{bare, bare}, "cores", nil},
		{
			"events of old: unlike cores", []schemas.Hardware{bare, {Cores: 8}},
			"cores processes_per_core", nil,
		},
		{"one that does not know its cores", []schemas.Hardware{bare, {}}, "", nil},
		{
			"nodes alike", []schemas.Hardware{quick, quick}, "cores cpu_model " + speed,
			[]string{"x"},
		},
		{
			"unlike nodes", []schemas.Hardware{quick, slow},
			"cores processes_per_core cpu_model " + speed, []string{"x", "y"},
		},
		{
			"no collector: nobody measured",
			[]schemas.Hardware{{Cores: 4, CPUModel: "x"}, {Cores: 4, CPUModel: "y"}},
			"cores cpu_model", []string{"x", "y"},
		},
		{
			"one from before nodes were described", []schemas.Hardware{quick, bare},
			"cores cpu_model " + speed, []string{"unknown, speed not measured", "x"},
		},
		{
			"one without a collector", []schemas.Hardware{quick, {Cores: 4, CPUModel: "x"}},
			"cores cpu_model " + speed, []string{"x", "x, speed not measured"},
		},
		{
			"a system without CPU models", []schemas.Hardware{{Cores: 4, Speed: 1e9}},
			"cores " + speed, nil,
		},
	} {
		e := schemas.NewEncoder(schemas.TargetEpochTime, make([]string, len(c.nodes)), c.nodes)
		if got := nodeColumns(e); got != c.columns {
			t.Errorf("%s: columns %q, want %q", c.name, got, c.columns)
		}
		if got := e.Levels(schemas.ColumnCPUModel); e.ColumnIndex(schemas.ColumnCPUModel) >= 0 &&
			cmp.Diff(c.levels, got) != "" || e.ColumnIndex(schemas.ColumnCPUModel) < 0 &&
			c.levels != nil {
			t.Errorf("%s: levels %q, want %q", c.name, got, c.levels)
		}
	}
	nodes := []schemas.Hardware{quick}
	got := schemas.NewEncoder(schemas.TargetAccuracy, []string{"m"}, nodes).Columns()
	if cmp.Diff(schemas.ColumnsOf(schemas.TargetAccuracy), got) != "" {
		t.Errorf("columns of the accuracy = %v, want none of the node", got)
	}
}

func TestEncoder_ReadsNodes(t *testing.T) {
	quick := schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1e9}
	slow := schemas.Hardware{Cores: 8, CPUModel: "y", Speed: 6e8}
	alike := storedEncoder(t, quick, quick)
	unlike := storedEncoder(t, quick, slow)
	old := storedEncoder(t, schemas.Hardware{}, schemas.Hardware{})
	fast, lame := quick.Rounded().Speed, slow.Rounded().Speed
	middle := math.Sqrt(fast * lame)
	with := func(h schemas.Hardware, change func(h *schemas.Hardware)) schemas.Hardware {
		change(&h)
		return h
	}
	for _, c := range []struct {
		name string
		e    *schemas.Encoder
		node schemas.Hardware
		want schemas.NodeCode
	}{
		{"known", alike, quick, schemas.NodeCode{Cores: 4, Speed: fast}},
		{
			"measured again, 3 % faster", alike,
			with(quick, func(h *schemas.Hardware) { h.Speed *= 1.03 }),
			schemas.NodeCode{Cores: 4, Speed: fast},
		},
		{
			"measured again, 9 % faster: across a step", alike,
			with(quick, func(h *schemas.Hardware) { h.Speed *= 1.09 }),
			schemas.NodeCode{Cores: 4, Speed: fast},
		},
		{
			"faster than its jobs told: it may be what they ran on", alike,
			with(quick, func(h *schemas.Hardware) { h.Speed, h.Slowest = 1.8e9, 1e9 }),
			schemas.NodeCode{Cores: 4, Speed: fast},
		},
		{
			"faster, and its jobs told so", alike,
			with(quick, func(h *schemas.Hardware) { h.Speed, h.Slowest = 1.8e9, 1.5e9 }),
			schemas.NodeCode{Cores: 4, Speed: schemas.Hardware{Speed: 1.8e9}.Rounded().Speed},
		},
		{
			"faster, and no job told of it", alike,
			with(quick, func(h *schemas.Hardware) { h.Speed = 1.8e9 }),
			schemas.NodeCode{Cores: 4, Speed: schemas.Hardware{Speed: 1.8e9}.Rounded().Speed},
		},
		{
			"unlike: as it is, and the CPU model is none of theirs", alike, slow,
			schemas.NodeCode{Cores: 8, CPUModel: -1, Speed: lame},
		},
		{
			"nothing known, and all examples alike", alike, schemas.Hardware{},
			schemas.NodeCode{Cores: 4, Speed: fast},
		},
		{
			"without a collector, the CPU that all have", alike,
			schemas.Hardware{Cores: 4, CPUModel: "x"}, schemas.NodeCode{Cores: 4, Speed: fast},
		},
		{
			"without a collector, another CPU", alike, schemas.Hardware{Cores: 4, CPUModel: "y"},
			schemas.NodeCode{Cores: 4, CPUModel: -1, Speed: fast},
		},
		{"one of two", unlike, slow, schemas.NodeCode{Cores: 8, CPUModel: 1, Speed: lame}},
		{
			"nothing known, and examples differ", unlike, schemas.Hardware{},
			schemas.NodeCode{
				Cores:          math.Sqrt(32),
				CPUModel:       -1,
				Speed:          middle,
				OutsideSupport: true,
			},
		},
		{
			"not measured, and examples differ", unlike, schemas.Hardware{Cores: 4, CPUModel: "x"},
			schemas.NodeCode{Cores: 4, CPUModel: -1, Speed: middle},
		},
		{"a regressor that knows no nodes", old, quick, schemas.NodeCode{Cores: 4}},
	} {
		if d := cmp.Diff(c.want, c.e.Node(c.node), cmp.Comparer(func(a, b float64) bool {
			return math.Abs(a-b) <= 1e-9*math.Abs(b)
		})); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	if got, want := unlike.Nearest(schemas.Hardware{
		Cores:    64,
		CPUModel: "z",
		Speed:    9e9,
	}), (schemas.NodeCode{Cores: 8, Speed: fast}); got != want {
		t.Errorf("nearest node to one outside of the support = %+v, want %+v", got, want)
	}
	if _, err := schemas.ReadEncoder([]schemas.EncoderInput{
		{Name: "batch_size"},
		{Name: "processes_per_core"},
	}); err == nil {
		t.Error("ReadEncoder accepts processes per core without cores")
	}
	if _, err := schemas.ReadEncoder([]schemas.EncoderInput{{Name: "phase_of_the_moon"}}); err == nil {
		t.Error("ReadEncoder accepts an unknown feature")
	}
}

func TestEncoder_FillsTheColumnsOfNodes(t *testing.T) {
	e := schemas.NewEncoder(schemas.TargetEpochTime, []string{"m", "n"}, []schemas.Hardware{
		small, large,
	})
	code, known := e.Model("n")
	row := make([]float64, len(e.Columns()))
	e.Fill(row, &schemas.Features{
		BatchSize: 64,
		CPUs:      2,
		ModelCode: code,
		Load:      schemas.Load{ConcurrentJobs: 1.6, Processes: 6.1},
		Node:      e.Node(small),
	})
	want := []float64{64, 2, 1.5, 6, 1, 2, 3, 1, small.Rounded().Speed}
	if d := cmp.Diff(want, row); d != "" || !known {
		t.Errorf("row of %v (-want +got):\n%s", e.Columns(), d)
	}
}
