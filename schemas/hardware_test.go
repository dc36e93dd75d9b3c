package schemas_test

import (
	"testing"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestFleet_KeepsWhatWasToldUntilItChanges(t *testing.T) {
	type told struct {
		cores  uint32
		model  string
		speed  float64
		expect schemas.Hardware
	}
	f := schemas.Fleet{}
	for i, c := range []told{
		{4, "", 0, schemas.Hardware{Cores: 4}},
		{0, "x", 1e9, schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1e9}},
		{4, "", 0, schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1e9}},
		{
			4, "x", 1.05e9, schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1e9},
		}, // a repeated measurement
		{4, "x", 1.2e9, schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1.2e9}},
		{8, "", 0, schemas.Hardware{Cores: 8}}, // a different machine
	} {
		if got := f.See([]string{"n"}, []schemas.Hardware{{
			Cores:    c.cores,
			CPUModel: c.model,
			Speed:    c.speed,
		}}, 0); got[0] != c.expect {
			t.Errorf("step %d: %+v, want %+v", i, got[0], c.expect)
		}
	}
	both := f.See([]string{"n", "other"}, nil, 2)
	if d := cmp.Diff([]schemas.Hardware{{Cores: 8}, {Cores: 2}}, both); d != "" {
		t.Errorf("nodes of which only the smallest is reported (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]schemas.Hardware{{Cores: 8}, {}}, f.Of([]string{"n", "other"})); d != "" {
		t.Errorf("known hardware at the end (-want +got):\n%s", d)
	}
	f.Sample(&schemas.Sample{Node: "n", Cores: 8, CPUModel: "y"})
	if got, want := f.Complete("n", schemas.Hardware{Cores: 8}), (schemas.Hardware{
		Cores:    8,
		CPUModel: "y",
	}); got != want {
		t.Errorf("Complete = %+v, want %+v", got, want)
	}
	other := schemas.Hardware{Cores: 2}
	if got, want := f.Complete("n", other), other; got != want {
		t.Errorf("Complete of a different machine = %+v, want %+v", got, want)
	}
}

// The speed of a node is the highest reported speed of the machine. A change of another property
// shows that the node is a different machine.
func TestFleet_KeepsTheFastestMeasurementOfANode(t *testing.T) {
	const slow, fast = 2.7e9, 4.9e9
	x := func(speed float64) schemas.Hardware {
		return schemas.Hardware{Cores: 2, CPUModel: "x", Speed: speed}
	}
	bare := func(speed float64) schemas.Hardware { return schemas.Hardware{Cores: 2, Speed: speed} }
	for _, c := range []struct {
		name   string
		told   []schemas.Hardware
		speeds []float64 // known speed after each report
		last   []float64 // result of Complete for each at the end
	}{
		{
			"slower after faster", []schemas.Hardware{x(fast), x(slow), x(slow)},
			[]float64{fast, fast, fast}, []float64{fast, fast, fast},
		},
		{
			"faster after slower", []schemas.Hardware{x(slow), x(fast), x(slow)},
			[]float64{slow, fast, fast}, []float64{fast, fast, fast},
		},
		{
			"a little faster, or slower: the first",
			[]schemas.Hardware{x(fast), x(1.09 * fast), x(0.92 * fast)},
			[]float64{fast, fast, fast}, []float64{fast, fast, fast},
		},
		{
			"by little steps from the first",
			[]schemas.Hardware{x(fast), x(1.09 * fast), x(1.12 * fast)},
			[]float64{fast, fast, 1.12 * fast}, []float64{1.12 * fast, 1.12 * fast, 1.12 * fast},
		},
		{
			"not measured in between", []schemas.Hardware{x(fast), x(0), x(slow)},
			[]float64{fast, fast, fast}, []float64{fast, fast, fast},
		},
		{
			"CPU model unknown: another machine", []schemas.Hardware{bare(fast), bare(slow)},
			[]float64{fast, slow}, []float64{fast, slow},
		},
		{
			"CPU model unknown, a little slower",
			[]schemas.Hardware{bare(fast), bare(0.92 * fast)}, []float64{fast, fast},
			[]float64{fast, fast},
		},
		{
			"CPU model told later, slower", []schemas.Hardware{bare(fast), x(slow)},
			[]float64{fast, slow}, []float64{fast, slow},
		},
		{
			"other cores",
			[]schemas.Hardware{x(fast), {Cores: 4, CPUModel: "x", Speed: slow}, x(slow)},
			[]float64{fast, slow, slow}, []float64{slow, slow, slow},
		},
		{
			"another CPU model",
			[]schemas.Hardware{x(fast), {Cores: 2, CPUModel: "y", Speed: slow}},
			[]float64{fast, slow}, []float64{fast, slow},
		},
	} {
		f, jobs := schemas.Fleet{}, schemas.Fleet{}
		var speeds, fromJobs, last []float64
		for _, h := range c.told {
			speeds = append(speeds, f.Sample(&schemas.Sample{
				Node:                     "n",
				Cores:                    h.Cores,
				CPUModel:                 h.CPUModel,
				SpeedOperationsPerSecond: &h.Speed,
			}).Speed)
			fromJobs = append(fromJobs, jobs.See([]string{"n"}, []schemas.Hardware{h}, 0)[0].Speed)
		}
		for i, h := range c.told {
			if h.Speed == 0 {
				h.Speed = speeds[i] // as known at that time
			}
			last = append(last, f.Complete("n", h).Speed)
		}
		if d := cmp.Diff(c.speeds, speeds) + cmp.Diff(c.speeds, fromJobs); d != "" {
			t.Errorf("%s: known speeds after each report (-want +got):\n%s", c.name, d)
		}
		if d := cmp.Diff(c.last, last); d != "" {
			t.Errorf("%s: completed speeds (-want +got):\n%s", c.name, d)
		}
	}
}
