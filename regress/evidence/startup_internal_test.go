package evidence

import (
	"math"
	"testing"
	"time"
)

func TestMeasureStartups_TheFirstIsCold(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	run := func(nodeType string, hour int, seconds float64) Run {
		r := Run{StartedAt: noon.Add(time.Duration(hour) * time.Hour), StartupSeconds: seconds}
		r.NodeType = nodeType
		return r
	}
	got := measureStartups([]Run{
		run("a", 2, 3), run("a", 1, 9), run("a", 3, 3), // the second run was the first one
		run("b", 4, 5),
		run("b", 5, 0), // unknown
	})
	if len(got) != 2 || got[0].Runs != 2 || math.Abs(math.Exp(got[0].Mean)-3) > 1e-9 ||
		got[0].Squares > 1e-9 {
		t.Errorf("start-ups = %+v, want 3 s of two runs on a, without the first", got)
	}
	if len(got) == 2 && (got[1].Runs != 1 || math.Abs(math.Exp(got[1].Mean)-5) > 1e-9) {
		t.Errorf("start-up = %+v, want 5 s of the only run on b", got[1])
	}
}
