package quality_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"courier/policy/quality"
)

// growing and completed are windows of a job that grows by 0.1 per second and of one that does not.
func growing() *quality.Window {
	return &quality.Window{Seconds: 2, Before: 0.9, After: 0.8, CPURatio: 0.5}
}

func completed() *quality.Window {
	return &quality.Window{Seconds: 2, Before: 0.1, After: 0.1, CPURatio: 0.5}
}

func TestPlan_TakesCPUAfterTwoLowRounds(t *testing.T) {
	windows := map[string]*quality.Window{"a": growing(), "b": completed(), "c": completed()}
	states := map[string]quality.JobState{}
	for name := range windows {
		states[name] = quality.JobState{Phase: quality.Growing, Share: 1.0 / 3}
	}
	first, _ := quality.Plan(states, windows, quality.Options{})
	if first["b"].Phase != quality.Watched || first["a"].Phase != quality.Growing {
		t.Errorf("after one low round: %+v, want b watched and a growing", first)
	}
	second, isIdle := quality.Plan(first, windows, quality.Options{})
	if second["b"].Phase != quality.Completing || isIdle {
		t.Errorf("after two low rounds: %+v, idle %t, want b completing", second, isIdle)
	}
	// n = 3 and beta = 2: two jobs at the floor of 1/6 leave 2/3.
	if got := second["a"].Share; math.Abs(got-2.0/3) > 1e-9 {
		t.Errorf("share of the growing job = %g, want 2/3", got)
	}
	windows["b"] = growing()
	third, _ := quality.Plan(second, windows, quality.Options{})
	if third["b"].Phase != quality.Growing || math.Abs(third["b"].Share-third["a"].Share) > 1e-9 {
		t.Errorf("after one good round: %+v, want b growing with the share of a", third)
	}
}

func TestPlan_TreatsNewcomersAsTheFastest(t *testing.T) {
	windows := map[string]*quality.Window{"a": growing(), "new": nil}
	got, _ := quality.Plan(nil, windows, quality.Options{})
	if math.Abs(got["new"].Share-0.5) > 1e-9 {
		t.Errorf("share of a newcomer = %g, want that of the growing job", got["new"].Share)
	}
	got, _ = quality.Plan(nil, windows, quality.Options{IsPublished: true})
	if got["new"].Share != 1 || got["a"].Share != 1 {
		t.Errorf("published caps = %+v, want none for a newcomer without growth", got)
	}
}

func TestPlan_RisingLossesAreNoProgress(t *testing.T) {
	rising := &quality.Window{Seconds: 2, Before: 0.5, After: 0.7, CPURatio: 0.5}
	windows := map[string]*quality.Window{"a": rising, "b": growing()}
	got, _ := quality.Plan(nil, windows, quality.Options{})
	if got["a"].Phase != quality.Watched {
		t.Errorf("phase of a job with a rising loss = %d, want watched", got["a"].Phase)
	}
	got, _ = quality.Plan(nil, windows, quality.Options{IsPublished: true})
	if got["a"].Phase != quality.Growing {
		t.Errorf("published phase = %d, want growing: the published code takes the absolute value",
			got["a"].Phase)
	}
}

func TestPlan_BacksOffWhenAllAreCompleting(t *testing.T) {
	windows := map[string]*quality.Window{"a": completed(), "b": completed()}
	states, isIdle := quality.Plan(nil, windows, quality.Options{})
	if isIdle {
		t.Error("all jobs are completing after one round, want them watched")
	}
	states, isIdle = quality.Plan(states, windows, quality.Options{})
	if !isIdle || states["a"].Share != 0.5 {
		t.Errorf("idle %t with %+v, want equal shares", isIdle, states)
	}
	if states, isIdle := quality.Plan(nil, nil, quality.Options{}); states != nil || isIdle {
		t.Errorf("plan without jobs = %v, %t", states, isIdle)
	}
}

// Shares are at least 1/(beta n) and sum to 1, whatever the windows and the states.
func TestPlan_SharesAreBoundedAndSumToOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		n := 1 + random.IntN(12)
		o := quality.Options{Floor: 1.1 + 7*random.Float64(), Threshold: 0.02 * random.Float64()}
		windows, states := map[string]*quality.Window{}, map[string]quality.JobState{}
		for i := range n {
			name := fmt.Sprint(i)
			windows[name] = &quality.Window{
				Seconds: 10 * random.Float64(), Before: random.Float64(), After: random.Float64(),
				CPURatio: random.Float64(),
			}
			if random.IntN(4) == 0 {
				windows[name] = nil
			}
			if random.IntN(3) > 0 {
				states[name] = quality.JobState{Phase: quality.Phase(random.IntN(3)), Share: random.Float64()}
			}
		}
		got, _ := quality.Plan(states, windows, o)
		sum := 0.0
		for name, s := range got {
			sum += s.Share
			if least := 1 / (o.Floor * float64(n)); s.Share < least-1e-9 {
				t.Fatalf("round %d: share of %s = %g, want at least %g", round, name, s.Share, least)
			}
		}
		if len(got) != n || math.Abs(sum-1) > 1e-9 {
			t.Fatalf("round %d: %d shares sum to %g, want %d with the sum 1", round, len(got), sum, n)
		}
	}
}

// Between two rounds either no share changes, or one changes enough to be worth a move.
func TestPlan_LeavesSharesThatHardlyChange(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	kept, moved := 0, 0
	for range 200 {
		states := map[string]quality.JobState{}
		windows := map[string]*quality.Window{}
		for i := range 2 + random.IntN(5) {
			windows[fmt.Sprint(i)] = &quality.Window{
				Seconds: 1, Before: 1, After: 1 - random.Float64()/2, CPURatio: 0.5,
			}
		}
		states, _ = quality.Plan(states, windows, quality.Options{})
		for range 10 {
			for _, w := range windows {
				w.After += 0.1 * (random.Float64() - 0.5)
			}
			next, _ := quality.Plan(states, windows, quality.Options{})
			isKept, isEnough := true, false
			for name, s := range next {
				change := math.Abs(s.Share - states[name].Share)
				isKept = isKept && change == 0
				isEnough = isEnough || change >= 0.05 || change >= 0.2*states[name].Share
			}
			switch {
			case isKept:
				kept++
			case isEnough:
				moved++
			default:
				t.Fatalf("shares %+v instead of %+v: no change is worth a move", next, states)
			}
			states = next
		}
	}
	if kept < 100 || moved < 100 {
		t.Errorf("%d rounds kept their shares and %d moved them: the test shows nothing", kept, moved)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add(0.9, 0.8, 2.0, 0.5, 2.0, 0.01, false)
	f.Add(math.NaN(), math.Inf(1), 0.0, -1.0, 1.0, 0.0, true)
	f.Fuzz(func(t *testing.T, before, after, seconds, cpu, floor, threshold float64, isPublished bool) {
		if !(floor >= 1.1 && floor <= 100) {
			return
		}
		w := &quality.Window{Seconds: seconds, Before: before, After: after, CPURatio: cpu}
		o := quality.Options{Threshold: threshold, Floor: floor, IsPublished: isPublished}
		got, _ := quality.Plan(nil, map[string]*quality.Window{"a": w, "b": completed(), "c": nil}, o)
		sum := 0.0
		for name, s := range got {
			if !(s.Share >= 0 && s.Share <= 1+1e-9) {
				t.Errorf("share of %s = %g, want 0 to 1", name, s.Share)
			}
			sum += s.Share
		}
		if !isPublished && math.Abs(sum-1) > 1e-6 {
			t.Errorf("shares sum to %g, want 1", sum)
		}
	})
}
