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
	"courier/policy/deadline"
	"courier/policy/elasticflow"
)

// policies are all policies with this interface, by name.
var policies = map[string]policy.Policy{
	"deadline":    deadline.ForCluster(),
	"edf":         policy.EDF(),
	"elasticflow": elasticflow.Policy{},
	"jct":         policy.JCT(),
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("an ordinary view of a cluster, with nodes, running jobs and a queue of others"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, p := range policies {
			checkRules(t, name, p, data)
		}
	})
}

// Each policy keeps the rules on 1,000 random views, which lead to moves.
func TestPolicies_KeepTheRulesOnRandomViews(t *testing.T) {
	for name, p := range policies {
		random := rand.New(rand.NewPCG(1, 2))
		moves := 0
		for range 1000 {
			moves += len(checkRules(t, name, p, randomBytes(random, random.IntN(2000))))
		}
		if moves < 1000 {
			t.Errorf("%s: %d moves on 1000 views: do the views still contain jobs?", name, moves)
		}
	}
}

// No move takes units from a job that would have met its deadline and then cannot (rule 3 of all
// policies). Only the deadline policy keeps the rule, as far as triage and margins let it: triage gives
// up a job to save others. For running jobs, the planner of the advisor keeps the rule. The others
// ignore deadlines or plan as published: a test that none of them keeps the rule shows that the views
// are tight.
func TestPolicies_BreakPromises(t *testing.T) {
	for name, p := range policies {
		broken := brokenOnRandomViews(t, name, p)
		if keepsRule := name == "deadline"; (broken == 0) != keepsRule {
			t.Errorf("%s: %d promises are broken, want none: %v", name, broken, keepsRule)
		}
	}
}

func randomBytes(random *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.IntN(256))
	}
	return data
}

// now is the time of all generated views.
var now = time.Unix(1_000_000, 0).UTC()

// source reads numbers from bytes; zeros follow the last byte.
type source struct{ data []byte }

func (s *source) next(limit int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % limit
}

// viewOf builds a view from bytes. Numbers may be extreme: jobs without work, windows that have
// passed, empty curves, rates that fall or are not a number, and less capacity than the jobs hold.
func viewOf(data []byte) *policy.View {
	s := &source{data}
	v := &policy.View{
		Now:        now,
		Slot:       time.Duration(s.next(5)) * time.Minute,
		Moments:    s.next(130),
		LastMoment: now.Add(-time.Duration(s.next(200)) * time.Second),
		Pause: policy.Pause{
			Base:         time.Duration(s.next(10)) * time.Second,
			PerDoubling:  2 * time.Second,
			Restart:      47 * time.Second,
			RestartEvery: s.next(61),
			Charge: []policy.Charge{
				policy.ChargeAll, policy.ChargeRounds, policy.ChargeChanged, policy.ChargeNone,
			}[s.next(4)],
		},
	}
	for range s.next(9) {
		v.Units += s.next(16)
	}
	for i := range s.next(40) {
		v.Jobs = append(v.Jobs, s.job(fmt.Sprint("job-", i), true))
	}
	for i := range s.next(20) {
		v.Queue = append(v.Queue, s.job(fmt.Sprint("queued-", i), false))
	}
	v.Recent = slices.Clone(v.Queue)
	return v
}

func (s *source) job(id string, isAdmitted bool) policy.Job {
	j := policy.Job{ID: id, Submitted: now.Add(-time.Duration(s.next(100)) * time.Minute)}
	if deadline := s.next(200); deadline > 0 {
		j.Deadline = now.Add(time.Duration((deadline-20)*(deadline-20)*s.next(60)) * time.Second)
	}
	options := 1
	if !isAdmitted {
		options = s.next(4)
	}
	for range options {
		j.Options = append(j.Options, policy.Option{Work: s.work(), Curve: s.curve()})
	}
	if isAdmitted {
		j.PausedUntil = now.Add(time.Duration(s.next(100)-70) * time.Second)
		if c := j.Options[0].Curve; len(c) > 0 && s.next(2) == 1 {
			j.Units = c[s.next(len(c))].Units
		}
	}
	return j
}

func (s *source) work() float64 {
	switch s.next(30) {
	case 0:
		return 0
	case 1:
		return math.Inf(1)
	case 2:
		return math.NaN()
	case 3:
		return -1
	case 4:
		return 1e300
	}
	return float64(s.next(256)*s.next(256)) * 10
}

func (s *source) curve() policy.Curve {
	var c policy.Curve
	rate := 0.0
	for k := range s.next(8) {
		rate += float64(s.next(100)-10) / 10
		switch s.next(40) {
		case 0:
			rate = math.NaN()
		case 1:
			rate = math.Inf(1)
		}
		c = append(c, policy.CurvePoint{Units: 1 << k, Rate: rate})
	}
	return c
}

// checkRules fails a test if a decision breaks a rule: checkMoves passes, the view is unchanged, and the
// same view gives the same decision.
func checkRules(t testing.TB, name string, p policy.Policy, data []byte) []policy.Move {
	t.Helper()
	v := viewOf(data)
	moves := p.Plan(v)
	if err := checkMoves(v, moves); err != nil {
		t.Fatalf("%s: broken rule: %v\nmoves: %v", name, err, moves)
	}
	if again := p.Plan(viewOf(data)); !reflect.DeepEqual(moves, again) {
		t.Fatalf("%s: two decisions for the same view:\n%v\n%v", name, moves, again)
	}
	if fmt.Sprint(*v) != fmt.Sprint(*viewOf(data)) {
		t.Fatalf("%s: the policy modified the view", name)
	}
	return moves
}

// newJob returns a job that runs 1, 1.8 and 3 iterations per second on 1, 2 and 4 units, and 2 on 8.
func newJob(id string, work float64, window time.Duration, units int) policy.Job {
	return policy.Job{
		ID:       id,
		Deadline: now.Add(window),
		Units:    units,
		Options: []policy.Option{{
			Work: work,
			Curve: policy.Curve{
				{Units: 1, Rate: 1}, {Units: 2, Rate: 1.8}, {Units: 4, Rate: 3}, {Units: 8, Rate: 2},
			},
		}},
	}
}

// newView returns a cluster of one node with these jobs.
func newView(units int, running, queue []policy.Job) *policy.View {
	return &policy.View{
		Now:   now,
		Units: units,
		Jobs:  running,
		Queue: queue,
		Slot:  time.Minute,
	}
}

// unitsAfter returns the units that each job holds after a decision.
func unitsAfter(v *policy.View, moves []policy.Move) map[string]int {
	held := map[string]int{}
	for _, j := range v.Jobs {
		held[j.ID] = j.Units
	}
	for _, m := range moves {
		if m.Kind == policy.Admit || m.Kind == policy.Resize {
			held[m.Job] = m.Units
		}
	}
	return held
}

// brokenPromises returns the jobs of which a decision breaks rule 3 of all policies: they would meet
// their deadline with the units that they held, a move lowers these, and the deadline cannot be met
// any more, neither with the remaining units nor at the fastest rate from the next moment on. Jobs
// with predicted rates do not count, because each policy smooths those in its own way.
func brokenPromises(v *policy.View, moves []policy.Move) []string {
	held := unitsAfter(v, moves)
	var broken []string
	for i := range v.Jobs {
		j := &v.Jobs[i]
		if held[j.ID] < j.Units && isMeasured(j) && meets(v, j, j.Units, false) &&
			!meets(v, j, held[j.ID], true) && !canCatchUp(v, j, held[j.ID]) {
			broken = append(broken, j.ID)
		}
	}
	return broken
}

// isMeasured reports whether a job has work, a deadline, and only valid rates.
func isMeasured(j *policy.Job) bool {
	o := &j.Options[0]
	isInvalid := slices.ContainsFunc(o.Curve, func(p policy.CurvePoint) bool {
		return math.IsInf(p.Rate, 0) || math.IsNaN(p.Rate)
	})
	return !isInvalid && !j.Deadline.IsZero() && o.Work > 0 && !math.IsInf(o.Work, 1)
}

// meets reports whether a job meets its deadline with a constant number of units.
func meets(v *policy.View, j *policy.Job, units int, isChanged bool) bool {
	rate := j.Options[0].Curve.Rate(units)
	if !(rate > 0) {
		return false
	}
	wait := max(0, j.PausedUntil.Sub(now).Seconds())
	if isChanged {
		wait = max(wait, v.Pause.Seconds(units, true, v.Pause.Restarts(v.Moments)))
	}
	return wait+j.Options[0].Work/rate <= j.Deadline.Sub(now).Seconds()
}

// canCatchUp reports whether a job meets its deadline if it holds some units for a slot, and then runs
// at its fastest rate.
func canCatchUp(v *policy.View, j *policy.Job, units int) bool {
	fastest := policy.CurvePoint{}
	for _, p := range j.Options[0].Curve {
		if p.Units <= v.Units && p.Rate > fastest.Rate {
			fastest = p
		}
	}
	slot := v.Slot.Seconds()
	pause := v.Pause.Seconds(units, true, v.Pause.Restarts(v.Moments))
	done := j.Options[0].Curve.Rate(units) * max(0, slot-pause)
	if !(fastest.Rate > 0) {
		return false
	}
	wait := slot + v.Pause.Seconds(fastest.Units, true, v.Pause.Restarts(v.Moments+1))
	return wait+(j.Options[0].Work-done)/fastest.Rate <= j.Deadline.Sub(now).Seconds()
}

// tightView builds a view whose running jobs fit, and most of which just meet their deadline with the
// units that they hold. A new job may be queued.
func tightView(data []byte) *policy.View {
	s := &source{data}
	v := newView(s.next(8), nil, nil)
	v.Slot = time.Duration(s.next(5)) * time.Minute
	v.Pause.Charge = policy.ChargeNone
	for i := range 1 + s.next(8) {
		units := 1 << s.next(3)
		j := newJob(fmt.Sprint("job-", i), 0, time.Duration(1+s.next(60))*time.Minute, units)
		o := &j.Options[0]
		o.Work = o.Curve.Rate(units) * j.Deadline.Sub(now).Seconds() * float64(50+s.next(60)) / 100
		v.Jobs = append(v.Jobs, j)
		v.Units += units
	}
	if s.next(2) == 1 {
		window := time.Duration(1+s.next(60)) * time.Minute
		work := window.Seconds() * float64(s.next(300)) / 100
		v.Queue = append(v.Queue, newJob("queued", work, window, 0))
	}
	return v
}

// brokenOnRandomViews returns how many promises a policy breaks on 10,000 random tight views, on which
// it must lower jobs.
func brokenOnRandomViews(t testing.TB, name string, p policy.Policy) (broken int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	lowered := 0
	for range 10_000 {
		v := tightView(randomBytes(random, 40))
		moves := p.Plan(v)
		broken += len(brokenPromises(v, moves))
		held := unitsAfter(v, moves)
		for _, j := range v.Jobs {
			if held[j.ID] < j.Units {
				lowered++
			}
		}
	}
	if lowered < 1000 {
		t.Errorf("%s: %d lowered jobs on 10000 views: the test shows nothing", name, lowered)
	}
	return broken
}
