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
		{4, "x", 1.05e9, schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1e9}}, // measured again
		{4, "x", 1.2e9, schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1.2e9}},
		{8, "", 0, schemas.Hardware{Cores: 8}}, // another machine: nothing else is known of it
	} {
		if got := f.See([]string{"n"}, []schemas.Hardware{{Cores: c.cores, CPUModel: c.model, Speed: c.speed}}, 0); got[0] != c.expect {
			t.Errorf("step %d: %+v, want %+v", i, got[0], c.expect)
		}
	}
	both := f.See([]string{"n", "other"}, nil, 2)
	if d := cmp.Diff([]schemas.Hardware{{Cores: 8}, {Cores: 2}}, both); d != "" {
		t.Errorf("the smallest of several nodes is told only (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]schemas.Hardware{{Cores: 8}, {}}, f.Of([]string{"n", "other"})); d != "" {
		t.Errorf("what is known of the nodes afterwards (-want +got):\n%s", d)
	}
	f.Sample(&schemas.Sample{Node: "n", Cores: 8, CPUModel: "y"})
	if got, want := f.Complete("n", schemas.Hardware{Cores: 8}), (schemas.Hardware{Cores: 8, CPUModel: "y"}); got != want {
		t.Errorf("Complete = %+v, want %+v", got, want)
	}
	if got, want := f.Complete("n", schemas.Hardware{Cores: 2}), (schemas.Hardware{Cores: 2}); got != want {
		t.Errorf("Complete of another machine = %+v, want %+v", got, want)
	}
}
