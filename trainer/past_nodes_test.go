package trainer_test

import (
	"testing"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var (
	quick = schemas.Hardware{Cores: 2, CPUModel: "x", Speed: 1e9}
	lame  = schemas.Hardware{Cores: 8, CPUModel: "y", Speed: 6e8}
)

// runOn returns the events of a run of one epoch that starts at second s. They report the hardware
// of its nodes; with nil they are like events of versions without hardware.
func runOn(job string, s float64, cores uint32, told []schemas.Hardware, nodes ...string) []schemas.Event {
	set := setting(16, 2)
	set.Nodes = nodes
	begin, e := started(job, 1, s, set), epochEvent(job, 1, 1, s+2, 2, set)
	begin.NodeCores, e.NodeCores = cores, cores
	begin.SetHardware(told)
	return []schemas.Event{begin, e, ended(job, 1, schemas.EventFinished, s+2, 2, set)}
}

func all(runs ...[]schemas.Event) (events []schemas.Event) {
	for _, r := range runs {
		events = append(events, r...)
	}
	return events
}

func TestPast_DistinguishesNodes(t *testing.T) {
	bare := func(h schemas.Hardware) schemas.Hardware { return schemas.Hardware{Cores: h.Cores} }
	slower := quick
	slower.Speed = 6e8 // measured under other load
	for _, c := range []struct {
		name   string
		events []schemas.Event
		want   []schemas.Hardware
	}{
		{
			"as told",
			all(runOn("a", 0, 2, []schemas.Hardware{quick}, "n"),
				runOn("b", 9, 8, []schemas.Hardware{lame}, "m")),
			[]schemas.Hardware{quick, lame},
		},
		{"events of old tell cores", all(runOn("a", 0, 2, nil, "n")), []schemas.Hardware{bare(quick)}},
		{
			"what is told of a node holds for its jobs before and after",
			all(runOn("a", 0, 2, nil, "n"), runOn("b", 9, 2, []schemas.Hardware{quick}, "n"),
				runOn("c", 19, 2, nil, "n")),
			[]schemas.Hardware{quick, quick, quick},
		},
		{
			"but not for another machine of that name",
			all(runOn("a", 0, 4, nil, "n"), runOn("b", 9, 2, []schemas.Hardware{quick}, "n")),
			[]schemas.Hardware{{Cores: 4}, quick},
		},
		{
			"measured again: the same node",
			all(runOn("a", 0, 2, []schemas.Hardware{quick}, "n"), runOn("b", 9, 2, []schemas.Hardware{{
				Cores:    2,
				CPUModel: "x",
				Speed:    1.06e9,
			}}, "n")),
			[]schemas.Hardware{quick, quick},
		},
		{
			"measured slower: it stays as fast",
			all(runOn("a", 0, 2, []schemas.Hardware{quick}, "n"),
				runOn("b", 9, 2, []schemas.Hardware{slower}, "n")),
			[]schemas.Hardware{quick, quick},
		},
		{
			"measured faster: it was before",
			all(runOn("a", 0, 2, []schemas.Hardware{slower}, "n"),
				runOn("b", 9, 2, []schemas.Hardware{quick}, "n"), runOn("c", 19, 2, nil, "n"),
				runOn("d", 29, 2, []schemas.Hardware{slower}, "n")),
			[]schemas.Hardware{quick, quick, quick, quick},
		},
		{
			"a machine of other cores is another",
			all(runOn("a", 0, 2, []schemas.Hardware{slower}, "n"),
				runOn("b", 9, 4, []schemas.Hardware{{Cores: 4, CPUModel: "x", Speed: 1e9}}, "n")),
			[]schemas.Hardware{slower, {Cores: 4, CPUModel: "x", Speed: 1e9}},
		},
		{
			"of two nodes the fuller",
			all(runOn("a", 0, 2, []schemas.Hardware{lame, quick}, "m", "n")),
			[]schemas.Hardware{quick},
		},
		{
			"two nodes in events of old: the smallest is all that is told",
			all(runOn("a", 0, 2, nil, "m", "n")), []schemas.Hardware{bare(quick)},
		},
	} {
		for _, target := range []string{schemas.TargetEpochTime, schemas.TargetAccuracy} {
			var got []schemas.Hardware
			for _, x := range pastAfter(c.events...).Examples(target) {
				got = append(got, x.Hardware)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", c.name, target, diff)
			}
		}
	}
}
