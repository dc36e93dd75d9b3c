package fit_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/fit"
	"courier/policy/speed"
)

// eachRandomView calls a test with views of up to five jobs, of which many can move.
func eachRandomView(views int, test func(v *clusterView)) {
	random := rand.New(rand.NewPCG(3, 4))
	for range views {
		v := &clusterView{FreeCores: random.IntN(60), QueuedJobs: random.IntN(2)}
		for i := range 1 + random.IntN(5) {
			j := randomJob(random, random.IntN(3) > 0)
			j.ID = string(rune('a' + i))
			j.Pause = time.Duration(10*random.IntN(3)) * time.Second
			j.DoneSamples = j.RemainingSamples * random.Float64()
			if random.IntN(2) == 0 {
				j.Deadline = now.Add(time.Duration(random.IntN(3600)) * time.Second)
			}
			v.Jobs = append(v.Jobs, j)
		}
		test(v)
	}
}

// moreThan fails a test that did not see enough cases to mean something.
func moreThan(t *testing.T, least, cases int) {
	t.Helper()
	if cases < least {
		t.Errorf("only %d cases, want at least %d", cases, least)
	}
}

func jobOf(v *clusterView, id string) *training {
	return &v.Jobs[slices.IndexFunc(v.Jobs, func(j training) bool { return j.ID == id })]
}

func TestPlan_IsPureAndDeterministic(t *testing.T) {
	moved := 0
	eachRandomView(300, func(v *clusterView) {
		before := *v
		before.Jobs = slices.Clone(v.Jobs)
		for i := range v.Jobs {
			before.Jobs[i].Window = slices.Clone(v.Jobs[i].Window)
		}
		checkPlan(t, v)
		moves, records := planAt(v, now, largest)
		again, recordsAgain := planAt(v, now, largest)
		if !reflect.DeepEqual(moves, again) || !reflect.DeepEqual(records, recordsAgain) {
			t.Errorf("the same view has moves %+v and %+v", moves, again)
		}
		for i := range v.Jobs {
			if !reflect.DeepEqual(v.Jobs[i], before.Jobs[i]) {
				t.Errorf("the plan changed job %s of its view", v.Jobs[i].ID)
			}
		}
		moved += len(moves)
	})
	moreThan(t, 200, moved)
}

// The order of the jobs does not matter, unless they compete for free cores with the same score.
func TestPlan_DoesNotDependOnTheOrderOfJobs(t *testing.T) {
	moved := 0
	eachRandomView(300, func(v *clusterView) {
		moves, _ := planAt(v, now, largest)
		slices.Reverse(v.Jobs)
		reversed, _ := planAt(v, now, largest)
		if !slices.Equal(moves, reversed) {
			t.Errorf("moves %+v, and %+v with the jobs reversed", moves, reversed)
		}
		moved += len(moves)
	})
	moreThan(t, 200, moved)
}

// The rules above all policies leave moves out, but change none: fixed jobs keep their shape, jobs that
// moved lately give up no cores, and the jobs fit.
func TestPlan_KeepsTheRulesAboveAllPolicies(t *testing.T) {
	moved, kept := 0, 0
	random := rand.New(rand.NewPCG(8, 9))
	eachRandomView(600, func(v *clusterView) {
		view := viewAt(v, now)
		for i := range view.Jobs {
			j := &view.Jobs[i]
			j.IsFixed, j.HasMoved, j.EpochsSinceMove = random.IntN(4) == 0, random.IntN(2) == 0, random.IntN(6)
		}
		all := fit.New(largest).Plan(view)
		more := 0
		for _, m := range policy.Guard(fit.New(largest)).Plan(view) {
			j := view.Jobs[slices.IndexFunc(view.Jobs, func(j policy.Job) bool { return j.ID == m.Job })]
			isSettling := j.HasMoved && j.EpochsSinceMove < 3
			if j.IsFixed || isSettling && m.Units < j.Units && v.FreeCores >= 0 || m.Units != m.Shape.Cores() {
				t.Errorf("move %+v of %+v", m, j)
			}
			more += m.Units - j.Units
			moved++
		}
		if more > v.FreeCores {
			t.Errorf("%d more cores of %d free ones", more, v.FreeCores)
		}
		kept += len(all)
	})
	moreThan(t, 100, moved)
	moreThan(t, moved+50, kept)
}

// A job that keeps its deadline now still keeps it with a bound of 90 % after any move.
func TestPlan_KeepsDeadlinesFirst(t *testing.T) {
	shrunk := 0
	eachRandomView(600, func(v *clusterView) {
		moves, _ := planAt(v, now, largest)
		for _, m := range moves {
			j := jobOf(v, m.Job)
			left := j.Deadline.Sub(now).Seconds()
			remaining := j.RemainingSamples / j.Facts.Speed(j.Shape, j.Model.StepSeconds(j.Shape))
			if j.Deadline.IsZero() || remaining > left {
				continue
			}
			mean, standardError := j.Model.Gain(m.From, m.To)
			safe := boundOf(mean, standardError, 1.28)
			if after := j.Pause.Seconds() + remaining/safe; after > left+1e-6 && safe < 1 {
				t.Errorf("move %+v ends %.0f s after the deadline", m, after-left)
			}
			if m.Reason == policy.ReasonShrink {
				shrunk++
			}
		}
	})
	moreThan(t, 30, shrunk)
}

// No move saves less than twice its pause, and no job grows or changes for less than the least gain.
func TestPlan_MovesOnlyForALargeGain(t *testing.T) {
	moved := 0
	eachRandomView(300, func(v *clusterView) {
		moves, _ := planAt(v, now, largest)
		for _, m := range moves {
			j := jobOf(v, m.Job)
			mean, standardError := j.Model.Gain(m.From, m.To)
			lower := boundOf(mean, standardError, 0.67)
			growth := float64(m.To.Cores())/float64(m.From.Cores()) - 1
			least := 1.0
			switch m.Reason {
			case policy.ReasonShrink:
				lower /= 1 + growth // of core-seconds
			case policy.ReasonExchange:
				least += 0.01
			case policy.ReasonGrow:
				least += 0.05 * growth
			}
			remaining := j.RemainingSamples / j.Facts.Speed(j.Shape, j.Model.StepSeconds(j.Shape))
			saved := remaining * (1 - 1/lower)
			if lower < least-1e-9 || saved < 2*j.Pause.Seconds()-1e-6 {
				t.Errorf("move %+v gains %.3f and saves %.1f s", m, lower, saved)
			}
			moved++
		}
	})
	moreThan(t, 200, moved)
}

// Without a queue and free cores, the exchange with the highest lower bound wins.
func TestPlan_FindsTheBestExchange(t *testing.T) {
	moved := 0
	eachRandomView(300, func(v *clusterView) {
		v.QueuedJobs, v.FreeCores = 0, 0
		moves, _ := planAt(v, now, largest)
		for _, m := range moves {
			j := jobOf(v, m.Job)
			if !j.Deadline.IsZero() {
				continue // which may exclude an exchange
			}
			for _, n := range j.Shape.Neighbours(j.Facts.HasServers, largest) {
				mean, standardError := j.Model.Gain(m.From, n)
				lower := boundOf(mean, standardError, 0.67)
				if n.Cores() <= m.From.Cores() && lower > m.LowerSpeedRatio*(1+1e-9) {
					t.Errorf("%+v is faster by %.4f than the move %+v", n, lower, m)
				}
			}
			moved++
		}
	})
	moreThan(t, 200, moved)
}

// A shape is barred for ten minutes after it brought less than half of its gain, also if it is the
// best one, and can be had again afterwards.
func TestPlan_BarsShapesForSomeTime(t *testing.T) {
	again := 0
	eachRandomView(300, func(v *clusterView) {
		v.Jobs = v.Jobs[:1]
		first, _ := planAt(v, now, largest)
		if len(first) == 0 {
			return
		}
		bar := policy.BarredShape{Shape: first[0].To, Until: now.Add(10 * time.Minute)}
		v.Jobs[0].Record.Barred = []policy.BarredShape{bar}
		barred, records := planAt(v, now, largest)
		if len(barred) > 0 && barred[0].To == bar.Shape || !slices.Contains(records["a"].Barred, bar) {
			t.Errorf("move %+v to a barred shape", barred)
		}
		v.Jobs[0].Deadline = time.Time{} // which would come closer
		free, records := planAt(v, bar.Until, largest)
		if len(records["a"].Barred) > 0 {
			t.Errorf("still barred: %+v", records["a"].Barred)
		}
		if len(free) > 0 && free[0].To == bar.Shape {
			again++
		}
	})
	moreThan(t, 50, again)
}

// A distant shape that the model prefers needs a model of four shapes; until then, a job moves to a
// neighbour or to its requested shape.
func TestPlan_MovesFarOnlyWithATrustedModel(t *testing.T) {
	far := map[bool]int{}
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		j := randomJob(random, true)
		j.ID, j.Requested = "a", j.Shape
		v := &clusterView{QueuedJobs: 1, Jobs: []training{j}}
		moves, _ := planAt(v, now, largest)
		if len(moves) == 0 {
			continue
		}
		near := j.Shape.Neighbours(j.Facts.HasServers, largest)
		if _, isTrusted := j.Model.Fastest(1000); !slices.Contains(near, moves[0].To) {
			far[isTrusted]++
		}
	}
	if far[false] > 0 {
		t.Errorf("%d moves to distant shapes without a trusted model", far[false])
	}
	moreThan(t, 20, far[true])
}

func TestSpeedModel_FastestIsThatOfAllShapes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for trusted := 0; trusted < 5; {
		j := randomJob(random, true)
		cores := 2 + random.IntN(300)
		got, ok := j.Model.Fastest(cores)
		if !ok {
			continue
		}
		trusted++
		if got.Cores() > cores {
			t.Fatalf("%+v has more than %d cores", got, cores)
		}
		rate := func(s speed.Shape) float64 { return j.Facts.Speed(s, j.Model.StepSeconds(s)) }
		for i := range largest.Workers * largest.WorkerCores * largest.Servers * largest.ServerCores {
			n := func(limit int) (value int) {
				value, i = 1+i%limit, i/limit
				return value
			}
			s := speed.Shape{
				Workers: n(largest.Workers), WorkerCores: n(largest.WorkerCores),
				Servers: n(largest.Servers), ServerCores: n(largest.ServerCores),
			}
			if s.Cores() <= cores && rate(s) > rate(got)*(1+1e-6) {
				t.Fatalf("%+v is faster than %+v", s, got)
			}
		}
	}
}

// boundOf returns the lower bound of a ratio of speeds by a number of standard errors.
func boundOf(mean, standardError, factor float64) float64 {
	return math.Exp(mean - factor*standardError)
}
