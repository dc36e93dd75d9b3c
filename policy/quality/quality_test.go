package quality_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"courier/policy"
	"courier/policy/quality"
)

// falling and flat are the losses of a job that grows, and of one that does not.
var falling, flat = []float64{1, 0.9, 0.8, 0.7}, []float64{0.5, 0.5, 0.5, 0.5}

// job returns a job that reported losses every 2 s, and used half of the node.
func job(id string, losses ...float64) policy.Job {
	l := &policy.Losses{Largest: 1, First: 1}
	for _, loss := range losses {
		l.Reports = append(l.Reports, policy.LossReport{Seconds: 2, Loss: loss, CPURatio: 0.5})
	}
	return policy.Job{ID: id, Losses: l}
}

// sharesOf returns the shares after a plan for a node that weights divide, and the reasons of changes.
func sharesOf(o quality.Options, jobs ...policy.Job) (map[string]float64, map[string]policy.Reason) {
	shares, reasons := map[string]float64{}, map[string]policy.Reason{}
	for _, j := range jobs {
		shares[j.ID] = j.Share
	}
	for _, m := range quality.New(o).Plan(&policy.View{Jobs: jobs}) {
		shares[m.Job], reasons[m.Job] = m.Share, m.Reason
	}
	return shares, reasons
}

func wantShares(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for id, share := range want {
		if math.Abs(got[id]-share) > 1e-9 {
			t.Errorf("share of %s = %g, want %g", id, got[id], share)
		}
	}
}

// The states of the table in section 2.2: a low round watches a growing job, the next one completes it,
// and a good one makes it grow.
func TestPlan_FollowsThePhases(t *testing.T) {
	for _, test := range []struct {
		losses []float64
		want   policy.Reason
	}{
		{[]float64{0.9}, policy.ReasonNewcomer},
		{[]float64{0.9, 0.5}, policy.ReasonGrowing},
		{[]float64{0.9, 0.9}, policy.ReasonWatched},
		{[]float64{0.9, 0.9, 0.9}, policy.ReasonCompleting},
		{[]float64{0.9, 0.9, 0.9, 0.9}, policy.ReasonCompleting},
		{[]float64{0.9, 0.9, 0.9, 0.5}, policy.ReasonGrowing},
		{[]float64{0.9, 0.5, 0.5}, policy.ReasonWatched},
		{[]float64{0.4, 0.5, 0.7, 0.9}, policy.ReasonWatched}, // diverging
	} {
		_, reasons := sharesOf(quality.Options{}, job("a", test.losses...), job("b", falling...))
		if reasons["a"] != test.want {
			t.Errorf("reason after the losses %v = %s, want %s", test.losses, reasons["a"], test.want)
		}
	}
}

func TestPlan_TakesCPUAfterTwoLowRounds(t *testing.T) {
	// n = 3 and beta = 2: two jobs at the floor of 1/6 leave 2/3.
	shares, _ := sharesOf(quality.Options{}, job("a", falling...), job("b", flat...), job("c", flat...))
	wantShares(t, shares, map[string]float64{"a": 2.0 / 3, "b": 1.0 / 6, "c": 1.0 / 6})
	watched := job("b", 0.6, 0.5, 0.5)
	watched.Share = 0.5
	shares, _ = sharesOf(quality.Options{}, job("a", falling...), watched)
	wantShares(t, shares, map[string]float64{"a": 2.0 / 3, "b": 1.0 / 3})
}

func TestPlan_TreatsNewcomersAsTheFastest(t *testing.T) {
	shares, _ := sharesOf(quality.Options{}, job("a", falling...), job("new"))
	wantShares(t, shares, map[string]float64{"new": 0.5})
	shares, _ = sharesOf(quality.Options{IsPublished: true}, job("a", falling...), job("new"))
	wantShares(t, shares, map[string]float64{"a": 1, "new": 1}) // caps; one of 0 is no limit
}

// The published code takes the absolute value of the progress.
func TestPlan_RisingLossesAreNoProgress(t *testing.T) {
	for isPublished, want := range map[bool]policy.Reason{false: policy.ReasonWatched, true: policy.ReasonGrowing} {
		o := quality.Options{IsPublished: isPublished}
		if _, reasons := sharesOf(o, job("a", 0.5, 0.7), job("b", falling...)); reasons["a"] != want {
			t.Errorf("published %t: reason of a rising loss %s, want %s", isPublished, reasons["a"], want)
		}
	}
}

func TestIsIdle_WhenAllAreCompleting(t *testing.T) {
	p, watched := quality.New(quality.Options{}), job("b", 0.5, 0.5)
	for _, test := range []struct {
		jobs []policy.Job
		want bool
	}{
		{[]policy.Job{job("a", flat...), watched}, false},
		{[]policy.Job{job("a", flat...), job("b", flat...)}, true},
		{nil, false},
	} {
		v := &policy.View{Jobs: test.jobs}
		if got := p.IsIdle(v); got != test.want {
			t.Errorf("idle with %d jobs = %t, want %t", len(test.jobs), got, test.want)
		}
	}
	shares, _ := sharesOf(quality.Options{}, job("a", flat...), job("b", flat...))
	wantShares(t, shares, map[string]float64{"a": 0.5, "b": 0.5})
}

// A job that is silent for more than three report times, or reports no loss, keeps its share; the others
// divide the rest.
func TestPlan_LeavesJobsWithoutRecentLosses(t *testing.T) {
	silent := job("silent", falling...)
	silent.Share, silent.Losses.SilentSeconds = 0.4, 6.1
	mute := policy.Job{ID: "mute", Share: 0.1}
	shares, reasons := sharesOf(quality.Options{}, silent, mute, job("a", falling...), job("b", falling...))
	wantShares(t, shares, map[string]float64{"silent": 0.4, "mute": 0.1, "a": 0.25, "b": 0.25})
	if len(reasons) != 2 {
		t.Errorf("reasons %v, want those of a and b", reasons)
	}
	silent.Losses.SilentSeconds = 6
	if _, reasons = sharesOf(quality.Options{}, silent, job("a", falling...)); reasons["silent"] == "" {
		t.Error("a job is silent after three report times, want after more")
	}
}

// Where the node waits for IO, the progress counts per IO.
func TestPlan_CountsTheScarcestResource(t *testing.T) {
	for _, test := range []struct{ ioWait, ioOfB, want float64 }{
		{0.14, 0.6, 0.5},
		{0.15, 0.6, 0.75}, // as much progress for a third of the IO
		{0.15, 0, 0.5 / 0.7},
	} {
		a, b := job("a", falling...), job("b", falling...)
		for i := range a.Losses.Reports {
			x, y := &a.Losses.Reports[i], &b.Losses.Reports[i]
			x.IORatio, y.IORatio, x.IOWaitRatio, y.IOWaitRatio = 0.2, test.ioOfB, test.ioWait, test.ioWait
		}
		shares, _ := sharesOf(quality.Options{}, a, b)
		wantShares(t, shares, map[string]float64{"a": test.want})
	}
}

// checkPlan plans for jobs that are read from bytes, among them numbers that are not finite, and checks
// what holds for all of them.
func checkPlan(t *testing.T, data []byte, o quality.Options) {
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
	var jobs []policy.Job
	for i := range 1 + next()%20 {
		l := &policy.Losses{Largest: number(), First: number(), SilentSeconds: number()}
		for range next() % 6 {
			l.Reports = append(l.Reports, policy.LossReport{
				Seconds: 20 * number(), Loss: number(), CPURatio: number(), IORatio: number(), IOWaitRatio: number(),
			})
		}
		jobs = append(jobs, policy.Job{ID: fmt.Sprint(i), Losses: l, Share: float64(next()) / 255})
	}
	v := &policy.View{Jobs: jobs}
	moves := quality.New(o).Plan(v)
	if again := quality.New(o).Plan(v); !reflect.DeepEqual(moves, again) {
		t.Fatalf("two plans for the same input: %v and %v", moves, again)
	}
	beta := min(max(o.Floor, 1.1), 8)
	if o.Floor == 0 || math.IsNaN(o.Floor) {
		beta = 2
	}
	least := 1 / (beta * float64(len(jobs)))
	for _, m := range moves {
		if o.IsPublished {
			least = math.SmallestNonzeroFloat64
		}
		if !(m.Share >= least-1e-9) || m.Share > 1+1e-9 {
			t.Fatalf("share of %s among %d jobs = %g with beta %g", m.Job, len(jobs), m.Share, beta)
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("some jobs, with losses and shares of their last round"), 2.0, 0.01, false)
	f.Add([]byte{3, 1, 1, 2, 4, 1, 1, 1, 1, 1, 2, 1, 1}, math.NaN(), math.Inf(1), false)
	f.Add([]byte{9, 1, 1, 2, 4, 5, 200, 100, 30}, 0.5, 0.0, true)
	f.Fuzz(func(t *testing.T, data []byte, floor, threshold float64, isPublished bool) {
		checkPlan(t, data, quality.Options{Threshold: threshold, Floor: floor, IsPublished: isPublished})
	})
}

func TestPlan_KeepsTheRulesOnRandomViews(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for round := range 3000 {
		data := make([]byte, random.IntN(400))
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		o := quality.Options{Floor: 10 * random.Float64(), Threshold: 0.05 * random.Float64()}
		o.IsPublished = round%4 == 0
		checkPlan(t, data, o)
	}
}

// The names of the jobs do not matter, nor the unit of their losses, and the shares sum to 1.
func TestPlan_PermutedJobsGetPermutedShares(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		n, unit := 2+random.IntN(8), 1+100*random.Float64()
		order := random.Perm(n)
		var jobs, permuted []policy.Job
		for i := range n {
			before, after := random.Float64(), random.Float64()
			jobs = append(jobs, job(fmt.Sprint(i), before, after))
			other := job(fmt.Sprint(order[i]), unit*before, unit*after)
			other.Losses.Largest = unit
			permuted = append(permuted, other)
		}
		a, _ := sharesOf(quality.Options{}, jobs...)
		b, _ := sharesOf(quality.Options{}, permuted...)
		sum := 0.0
		for i := range n {
			x, y := a[fmt.Sprint(i)], b[fmt.Sprint(order[i])]
			if sum += x; math.Abs(x-y) > 1e-12 {
				t.Fatalf("job %d has %g, and %g as job %d", i, x, y, order[i])
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("the shares sum to %g", sum)
		}
	}
}
