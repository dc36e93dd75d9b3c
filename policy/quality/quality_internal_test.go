package quality

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
)

// fallingWindow and flatWindow are windows of a job that grows by 0.1 per second and of one that does not.
func fallingWindow() *lossWindow {
	return &lossWindow{Seconds: 2, Before: 0.9, After: 0.8, CPURatio: 0.5}
}

func flatWindow() *lossWindow {
	return &lossWindow{Seconds: 2, Before: 0.1, After: 0.1, CPURatio: 0.5}
}

func TestDivideNode_TakesCPUAfterTwoLowRounds(t *testing.T) {
	windows := map[string]*lossWindow{"a": fallingWindow(), "b": flatWindow(), "c": flatWindow()}
	states := map[string]jobState{}
	for name := range windows {
		states[name] = jobState{phase: growing, share: 1.0 / 3}
	}
	first, _ := divideNode(states, windows, Options{})
	if first["b"].phase != watched || first["a"].phase != growing {
		t.Errorf("after one low round: %+v, want b watched and a growing", first)
	}
	second, isIdle := divideNode(first, windows, Options{})
	if second["b"].phase != completing || isIdle {
		t.Errorf("after two low rounds: %+v, idle %t, want b completing", second, isIdle)
	}
	// n = 3 and beta = 2: two jobs at the floor of 1/6 leave 2/3.
	if got := second["a"].share; math.Abs(got-2.0/3) > 1e-9 {
		t.Errorf("share of the growing job = %g, want 2/3", got)
	}
	windows["b"] = fallingWindow()
	third, _ := divideNode(second, windows, Options{})
	if third["b"].phase != growing || math.Abs(third["b"].share-third["a"].share) > 1e-9 {
		t.Errorf("after one good round: %+v, want b growing with the share of a", third)
	}
}

func TestDivideNode_TreatsNewcomersAsTheFastest(t *testing.T) {
	windows := map[string]*lossWindow{"a": fallingWindow(), "new": nil}
	got, _ := divideNode(nil, windows, Options{})
	if math.Abs(got["new"].share-0.5) > 1e-9 {
		t.Errorf("share of a newcomer = %g, want that of the growing job", got["new"].share)
	}
	got, _ = divideNode(nil, windows, Options{IsPublished: true})
	if got["new"].share != 1 || got["a"].share != 1 {
		t.Errorf("published caps = %+v, want none for a newcomer without growth", got)
	}
}

func TestDivideNode_RisingLossesAreNoProgress(t *testing.T) {
	rising := &lossWindow{Seconds: 2, Before: 0.5, After: 0.7, CPURatio: 0.5}
	windows := map[string]*lossWindow{"a": rising, "b": fallingWindow()}
	got, _ := divideNode(nil, windows, Options{})
	if got["a"].phase != watched {
		t.Errorf("phase of a job with a rising loss = %d, want watched", got["a"].phase)
	}
	got, _ = divideNode(nil, windows, Options{IsPublished: true})
	if got["a"].phase != growing {
		t.Errorf("published phase = %d, want growing: the published code takes the absolute value",
			got["a"].phase)
	}
}

func TestDivideNode_BacksOffWhenAllAreCompleting(t *testing.T) {
	windows := map[string]*lossWindow{"a": flatWindow(), "b": flatWindow()}
	states, isIdle := divideNode(nil, windows, Options{})
	if isIdle {
		t.Error("all jobs are completing after one round, want them watched")
	}
	states, isIdle = divideNode(states, windows, Options{})
	if !isIdle || states["a"].share != 0.5 {
		t.Errorf("idle %t with %+v, want equal shares", isIdle, states)
	}
	if states, isIdle := divideNode(nil, nil, Options{}); states != nil || isIdle {
		t.Errorf("plan without jobs = %v, %t", states, isIdle)
	}
}

// planOf plans for jobs, states and windows that are read from bytes, among them numbers that are not
// finite, and checks what holds for all of them.
func planOf(t *testing.T, data []byte, o Options) {
	t.Helper()
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	number := func() float64 {
		switch b := next(); b {
		case 0:
			return 0
		case 1:
			return math.NaN()
		case 2:
			return math.Inf(1)
		case 3:
			return -1
		case 4:
			return 1e300
		default:
			return float64(b) / 255
		}
	}
	windows, states := map[string]*lossWindow{}, map[string]jobState{}
	n := 1 + int(next()%20)
	for i := range n {
		name := fmt.Sprint(i)
		windows[name] = nil
		if next()%4 > 0 {
			windows[name] = &lossWindow{
				Seconds: 20 * number(), Before: number(), After: number(), CPURatio: number(),
			}
			if flags := next(); flags%4 == 0 {
				w := windows[name]
				w.IORatio, w.IOWaitRatio = number(), number()
				w.IsStale, w.IsDiverging = flags%8 == 0, flags%16 < 8
			}
		}
		if next()%3 > 0 {
			states[name] = jobState{phase: phase(next() % 3), share: number()}
		}
	}

	states0, windows0 := fmt.Sprint(states), fmt.Sprint(values(windows))
	got, _ := divideNode(states, windows, o)
	if fmt.Sprint(states) != states0 || fmt.Sprint(values(windows)) != windows0 {
		t.Fatal("the plan modified its input")
	}
	if again, _ := divideNode(states, windows, o); !maps.Equal(got, again) {
		t.Fatalf("two plans for the same input: %v and %v", got, again)
	}
	sum, beta := 0.0, min(max(o.Floor, 1.1), 8)
	if o.Floor == 0 || math.IsNaN(o.Floor) {
		beta = 2
	}
	for name, s := range got {
		sum += s.share
		if !o.IsPublished && !(s.share >= 1/(beta*float64(n))-1e-9) || !(s.share > 0 && s.share <= 1+1e-9) {
			t.Fatalf("share of %s among %d jobs = %g with beta %g", name, n, s.share, beta)
		}
	}
	if len(got) != n || !o.IsPublished && !(math.Abs(sum-1) <= 1e-9) {
		t.Fatalf("%d shares sum to %g, want %d with the sum 1", len(got), sum, n)
	}
}

func values(windows map[string]*lossWindow) map[string]lossWindow {
	all := map[string]lossWindow{}
	for name, w := range windows {
		if w != nil {
			all[name] = *w
		}
	}
	return all
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("some jobs, with windows and shares of their last round"), 2.0, 0.01, false)
	f.Add([]byte{3, 1, 1, 2, 4, 1, 1, 1, 1, 1, 2, 1, 1}, math.NaN(), math.Inf(1), false)
	f.Add([]byte{9, 1, 1, 2, 4, 5, 200, 100, 30}, 0.5, 0.0, true)
	f.Fuzz(func(t *testing.T, data []byte, floor, threshold float64, isPublished bool) {
		planOf(t, data, Options{Threshold: threshold, Floor: floor, IsPublished: isPublished})
	})
}

func TestDivideNode_KeepsTheRulesOnRandomViews(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for round := range 3000 {
		data := make([]byte, random.IntN(200))
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		o := Options{Floor: 10 * random.Float64(), Threshold: 0.05 * random.Float64()}
		o.IsPublished = round%4 == 0
		planOf(t, data, o)
	}
}

// The names of the jobs do not matter.
func TestDivideNode_PermutedJobsGetPermutedShares(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		n := 2 + random.IntN(8)
		order := random.Perm(n)
		windows, permuted := map[string]*lossWindow{}, map[string]*lossWindow{}
		for i := range n {
			w := &lossWindow{
				Seconds: 1, Before: random.Float64(), After: random.Float64(), CPURatio: 0.5,
			}
			windows[fmt.Sprint(i)], permuted[fmt.Sprint(order[i])] = w, w
		}
		a, _ := divideNode(nil, windows, Options{})
		b, _ := divideNode(nil, permuted, Options{})
		for i := range n {
			x, y := a[fmt.Sprint(i)], b[fmt.Sprint(order[i])]
			if x.phase != y.phase || math.Abs(x.share-y.share) > 1e-12 {
				t.Fatalf("job %d has %+v, and %+v as job %d", i, x, y, order[i])
			}
		}
	}
}

// BenchmarkPlan plans 1,000 jobs.
func BenchmarkPlan(b *testing.B) {
	random := rand.New(rand.NewPCG(9, 10))
	windows := map[string]*lossWindow{}
	for i := range 1000 {
		windows[fmt.Sprint(i)] = &lossWindow{
			Seconds: 10, Before: 1, After: random.Float64(), CPURatio: 0.001,
		}
	}
	for b.Loop() {
		divideNode(nil, windows, Options{})
	}
}
