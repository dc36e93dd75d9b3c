package policy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/cost"
	"courier/policy/deadline"
	"courier/policy/elasticflow"
	"courier/policy/fit"
	"courier/policy/quality"
)

// guarded are all policies with the rules above them.
var guarded = map[string]policy.Policy{
	"cost":                  policy.Guard(cost.Policy{}),
	"deadline":              policy.Guard(deadline.ForNode()),
	"deadline on a cluster": policy.Guard(deadline.ForCluster()),
	"edf":                   policy.Guard(policy.EDF()),
	"elasticflow":           policy.Guard(elasticflow.Policy{}),
	"fit.Node":              policy.Guard(fit.Node{}),
	"jct":                   policy.Guard(policy.JCT()),
	"quality":               policy.Guard(quality.New(quality.Options{})),
}

const nodeCores = 64

// nodeViewOf builds a node from bytes: running jobs with promises by probability or by exact rates,
// fixed jobs, jobs that have just moved, and at most one arrival. They may hold more than there is.
func nodeViewOf(data []byte) *policy.View {
	s := &source{data}
	v := &policy.View{Now: now, Units: s.next(nodeCores + 1), Cores: nodeCores}
	for i := range 1 + s.next(6) {
		j := s.job(fmt.Sprint("job-", i), true)
		j.IsFixed, j.HasMoved, j.EpochsSinceMove = s.next(8) == 0, s.next(2) == 1, s.next(8)
		if s.next(2) == 0 {
			j.Confidence = 0.9
		}
		for k := range j.Options[0].Curve {
			j.Options[0].Curve[k].Chance = float64(s.next(40)) / 40
		}
		if s.next(3) > 0 {
			j.Losses = &policy.Losses{Largest: 1, First: 1}
			for range s.next(5) {
				r := policy.LossReport{Seconds: float64(s.next(9)), Loss: float64(s.next(50)) / 50, CPURatio: 0.1}
				j.Losses.Reports = append(j.Losses.Reports, r)
			}
		}
		v.Jobs = append(v.Jobs, j)
	}
	if s.next(2) == 1 {
		v.Queue = []policy.Job{s.job("arrival", false)}
	}
	return v
}

// checkGuarded fails a test if the moves of a guarded policy break a rule, and returns their number.
func checkGuarded(t testing.TB, name string, p policy.Policy, data []byte) int {
	t.Helper()
	v := nodeViewOf(data)
	moves := p.Plan(v)
	if again := p.Plan(nodeViewOf(data)); !reflect.DeepEqual(moves, again) {
		t.Fatalf("%s: two plans for the same view:\n%v\n%v", name, moves, again)
	}
	if textOf(v) != textOf(nodeViewOf(data)) {
		t.Fatalf("%s: the policy modified the view", name)
	}
	before, after, resized := 0, 0, 0
	held := unitsAfter(v, moves)
	for _, units := range held {
		after += units
	}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		before += j.Units
		if held[j.ID] != j.Units {
			resized++
			checkChange(t, name, v, j, held[j.ID])
		}
	}
	if after > max(v.Units, before) || held["arrival"] > 0 && after > v.Units {
		t.Fatalf("%s: the jobs hold %d of %d units, before %d", name, after, v.Units, before)
	}
	return resized
}

// textOf returns all of a view as text; numbers may be NaN.
func textOf(v *policy.View) string {
	text := fmt.Sprint(v.Units, v.Queue)
	for _, j := range v.Jobs {
		if losses := j.Losses; losses != nil {
			j.Losses = nil
			text += fmt.Sprint(*losses)
		}
		text += fmt.Sprint(j)
	}
	return text
}

// checkChange fails a test if a change of the units of a running job breaks a rule.
func checkChange(t testing.TB, name string, v *policy.View, j *policy.Job, units int) {
	t.Helper()
	curve := j.Options[0].Curve
	isOnCurve := slices.ContainsFunc(curve, func(p policy.CurvePoint) bool { return p.Units == units })
	change := math.Abs(float64(units - j.Units))
	switch {
	case j.IsFixed:
		t.Fatalf("%s: the fixed job %s moves", name, j.ID)
	case !isOnCurve:
		t.Fatalf("%s: %s gets %d units, which are not on its curve", name, j.ID, units)
	case change < 0.2*float64(j.Units) && change < 0.05*nodeCores:
		t.Fatalf("%s: %s moves by %g units of %d", name, j.ID, change, j.Units)
	case units > j.Units:
		return
	}
	isSaved := slices.ContainsFunc(curve, func(p policy.CurvePoint) bool {
		return p.Units > units && j.KeepsDeadline(v, p.Units)
	})
	if !j.KeepsDeadline(v, units) && isSaved {
		t.Fatalf("%s: %s lends units that would keep its deadline", name, j.ID)
	}
}

func FuzzGuard(f *testing.F) {
	f.Add([]byte("some jobs of a node that have moved, with promises and losses, and an arrival"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, p := range guarded {
			checkGuarded(t, name, p, data)
		}
	})
}

func TestGuard_KeepsTheRulesWithEveryPolicy(t *testing.T) {
	for name, p := range guarded {
		random := rand.New(rand.NewPCG(5, 6))
		moves := 0
		for range 3000 {
			moves += checkGuarded(t, name, p, randomBytes(random, 50+random.IntN(400)))
		}
		if moves < 300 {
			t.Errorf("%s: %d moves on 3000 nodes: the test shows nothing", name, moves)
		}
	}
}

// A job that changed lately gives up units only for a deadline, an arrival or a node that is too full.
func TestGuard_LetsJobsSettle(t *testing.T) {
	for _, test := range []struct {
		name        string
		since, want int // epochs since the last move; units of the first job
		change      func(v *policy.View)
	}{
		{"lately", 2, 4, func(*policy.View) {}},
		{"long ago", 3, 1, func(*policy.View) {}},
		{"lately, and the node is too full", 2, 2, func(v *policy.View) { v.Units-- }},
		{"lately, and another job is late", 2, 1, func(v *policy.View) {
			v.Jobs[1].Deadline = now.Add(time.Minute)
		}},
	} {
		jobs := []policy.Job{newJob("long", 600, 0, 4), newJob("short", 90, 0, 1)}
		jobs[0].Deadline, jobs[1].Deadline = time.Time{}, time.Time{}
		jobs[0].HasMoved, jobs[0].EpochsSinceMove = true, test.since
		v := newView(5, jobs, nil)
		test.change(v)
		if got := unitsAfter(v, policy.Guard(policy.JCT()).Plan(v)); got["long"] != test.want {
			t.Errorf("moved %s: units %v, want %d for the long job", test.name, got, test.want)
		}
	}
}

// On a node that is too full, a job that needs fewer units yields, although the other job is late in any case.
func TestGuard_LetsJobsYieldToAFullNode(t *testing.T) {
	for name, p := range guarded {
		jobs := []policy.Job{newJob("patient", 600, 10*time.Hour, 2), newJob("late", 600, time.Minute, 1)}
		v := newView(2, jobs, nil)
		if got := unitsAfter(v, p.Plan(v)); got["patient"]+got["late"] > 2 {
			t.Errorf("%s: units %v, want at most 2", name, got)
		}
	}
}

// Between two rounds either no share changes, or one changes enough to be worth a move.
func TestGuard_LeavesSharesThatHardlyChange(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	p := policy.Guard(quality.New(quality.Options{}))
	kept, moved := 0, 0
	for range 200 {
		v := &policy.View{Now: now}
		for i := range 2 + random.IntN(5) {
			fall := policy.LossReport{Seconds: 1, Loss: 1 - random.Float64()/2, CPURatio: 0.5}
			v.Jobs = append(v.Jobs, policy.Job{ID: fmt.Sprint(i), Losses: &policy.Losses{
				Largest: 1, Reports: []policy.LossReport{{Seconds: 1, Loss: 1, CPURatio: 0.5}, fall},
			}})
		}
		for round := range 10 {
			moves, isEnough := p.Plan(v), round == 0
			for _, m := range moves {
				j := &v.Jobs[slices.IndexFunc(v.Jobs, func(j policy.Job) bool { return j.ID == m.Job })]
				change := math.Abs(m.Share - j.Share)
				isEnough = isEnough || change >= 0.05 || change >= 0.2*j.Share
				j.Share = m.Share
			}
			switch {
			case len(moves) == 0:
				kept++
			case isEnough:
				moved++
			default:
				t.Fatalf("moves %+v: no change is worth a move", moves)
			}
			for i := range v.Jobs {
				v.Jobs[i].Losses.Reports[1].Loss += 0.1 * (random.Float64() - 0.5)
			}
		}
	}
	if kept < 100 || moved < 100 {
		t.Errorf("%d rounds kept their shares and %d moved them: the test shows nothing", kept, moved)
	}
}

// Fifty like jobs move at most once each in an hour without arrivals, although predictions scatter by 10 %.
// The hour begins ten minutes after the jobs have started with two units each.
func TestGuard_LeavesASteadyClusterAlone(t *testing.T) {
	const jobs, start, epochs = 50, 20, 140 // of 30 s
	for name, p := range guarded {
		random := rand.New(rand.NewPCG(7, 8))
		v := &policy.View{Now: now, Units: 150, Cores: 150}
		left := make([]float64, jobs) // seconds on one unit
		for i := range jobs {
			left[i] = 4 * 3600 * (1 + random.Float64())
			v.Jobs = append(v.Jobs, policy.Job{
				ID: fmt.Sprint(i), Units: 2, Options: []policy.Option{{Work: 1}}, Epochs: 1000,
				Losses: &policy.Losses{Largest: 1, First: 1},
			})
			if i%2 == 0 {
				v.Jobs[i].Deadline, v.Jobs[i].Confidence = now.Add(9*time.Hour), 0.95
			}
		}
		moves := 0
		for n := range epochs {
			v.Now = now.Add(time.Duration(n) * 30 * time.Second)
			for i := range v.Jobs {
				j := &v.Jobs[i]
				predictScattered(v, j, left[i], n, random)
				left[i] -= 30 * math.Pow(float64(j.Units), 0.8)
				j.EpochsSinceMove++
			}
			held := unitsAfter(v, p.Plan(v))
			for i := range v.Jobs {
				if j := &v.Jobs[i]; held[j.ID] != j.Units {
					j.Units, j.HasMoved, j.EpochsSinceMove = held[j.ID], true, 0
					if n >= start {
						moves++
					}
				}
			}
		}
		most := jobs
		if name == "elasticflow" {
			most = 2 * jobs // a baseline, which the advisor does not offer
		}
		t.Logf("%s: %d moves", name, moves)
		if moves > most {
			t.Errorf("%s: %d moves of %d jobs in an hour, want at most %d", name, moves, jobs, most)
		}
	}
}

// predictScattered sets the prediction and the curve of a job that has work left after an epoch.
func predictScattered(v *policy.View, j *policy.Job, left float64, epoch int, random *rand.Rand) {
	scatter := math.Exp(0.1 * random.NormFloat64())
	var curve policy.Curve
	for _, units := range []int{1, 2, 4} {
		rate := scatter * math.Pow(float64(units), 0.8) / left
		chance := 1.0
		if !j.Deadline.IsZero() {
			slack := math.Log(rate*j.Deadline.Sub(v.Now).Seconds()) / 0.1
			chance = 0.5 * math.Erfc(-slack/math.Sqrt2)
		}
		curve = append(curve, policy.CurvePoint{Units: units, Rate: rate / 1.2, MeanRate: rate, Chance: chance})
	}
	j.Options[0].Curve = curve
	r := policy.LossReport{
		Seconds: 30, CPURatio: float64(j.Units) / 150,
		Loss: math.Exp(-float64(epoch)/300) * math.Exp(0.02*random.NormFloat64()),
	}
	j.Losses.Reports = append(j.Losses.Reports[max(0, len(j.Losses.Reports)+1-quality.MaxReports):], r)
}
