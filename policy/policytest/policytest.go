// Package policytest generates views for the tests of policies and checks the rules that hold for
// all of them. View turns any bytes into a view, so it is usable for fuzz tests and for random
// views; Rules calls a policy and reports every broken rule.
package policytest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"courier/policy"
)

// Now is the time of all generated views.
var Now = time.Unix(1_000_000, 0).UTC()

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

// View builds a view from bytes. Numbers may be extreme: jobs without work, windows that have
// passed, empty curves, rates that fall or are not a number, and less capacity than the jobs hold.
func View(data []byte) *policy.ClusterView {
	s := &source{data}
	v := &policy.ClusterView{
		Slot:       time.Duration(s.next(5)) * time.Minute,
		Moments:    s.next(130),
		LastMoment: Now.Add(-time.Duration(s.next(200)) * time.Second),
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
	for i := range s.next(9) {
		v.Nodes = append(v.Nodes, policy.NodeView{Name: fmt.Sprint("node-", i), Units: s.next(17) - 1})
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

func (s *source) job(id string, isAdmitted bool) policy.ElasticJob {
	j := policy.ElasticJob{ID: id, Submitted: Now.Add(-time.Duration(s.next(100)) * time.Minute)}
	if deadline := s.next(200); deadline > 0 {
		j.Deadline = Now.Add(time.Duration((deadline-20)*(deadline-20)*s.next(60)) * time.Second)
	}
	options := 1
	if !isAdmitted {
		options = s.next(4)
	}
	for range options {
		j.Options = append(j.Options, policy.Option{Work: s.work(), Curve: s.curve()})
	}
	if isAdmitted {
		j.PausedUntil = Now.Add(time.Duration(s.next(100)-70) * time.Second)
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
	rate, isPredicted := 0.0, s.next(3) == 0
	for k := range s.next(8) {
		rate += float64(s.next(100)-10) / 10
		switch s.next(40) {
		case 0:
			rate = math.NaN()
		case 1:
			rate = math.Inf(1)
		}
		p := policy.CurvePoint{Units: 1 << k, Rate: rate}
		if isPredicted {
			p.Error = s.error()
		}
		c = append(c, p)
	}
	return c
}

// error returns the standard deviation of a predicted rate; 0 if the rate was measured.
func (s *source) error() float64 {
	switch n := s.next(20); n {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1)
	case 2:
		return -1
	case 3, 4, 5:
		return 0
	default:
		return float64(n) / 20
	}
}

// Rules fails a test if a decision breaks a rule: Check passes, the jobs hold at most the capacity,
// the view is unchanged, and the same view gives the same decision.
func Rules(t testing.TB, p policy.Policy, data []byte) policy.MoveDecision {
	t.Helper()
	v := View(data)
	d := p.Plan(v, Now)
	if err := policy.Check(v, Now, d); err != nil {
		t.Fatalf("broken rule: %v\nmoves: %v", err, d.Moves)
	}
	if again := p.Plan(View(data), Now); !reflect.DeepEqual(d, again) {
		t.Fatalf("two decisions for the same view:\n%v\n%v", d, again)
	}
	if fmt.Sprint(*v) != fmt.Sprint(*View(data)) {
		t.Fatal("the policy modified the view")
	}
	return d
}

// RandomViews checks the rules on 3,000 random views, which must lead to moves.
func RandomViews(t testing.TB, p policy.Policy) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	moves := 0
	for range 3000 {
		data := make([]byte, random.IntN(2000))
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		moves += len(Rules(t, p, data).Moves)
	}
	if moves < 3000 {
		t.Errorf("%d moves on 3000 views: do the views still contain jobs?", moves)
	}
}

// NewJob returns a job that runs 1, 1.8 and 3 iterations per second on 1, 2 and 4 units, and 2 on 8.
func NewJob(id string, work float64, window time.Duration, units int) policy.ElasticJob {
	return policy.ElasticJob{
		ID:       id,
		Deadline: Now.Add(window),
		Units:    units,
		Options: []policy.Option{{
			Work: work,
			Curve: policy.Curve{
				{Units: 1, Rate: 1}, {Units: 2, Rate: 1.8}, {Units: 4, Rate: 3}, {Units: 8, Rate: 2},
			},
		}},
	}
}

// NewView returns a cluster of one node with these jobs.
func NewView(units int, running, queue []policy.ElasticJob) *policy.ClusterView {
	return &policy.ClusterView{
		Nodes: []policy.NodeView{{Name: "a", Units: units}},
		Jobs:  running,
		Queue: queue,
		Slot:  time.Minute,
	}
}

// UnitsAfter returns the units that each job holds after a decision.
func UnitsAfter(v *policy.ClusterView, d policy.MoveDecision) map[string]int {
	held := map[string]int{}
	for _, j := range v.Jobs {
		held[j.ID] = j.Units
	}
	for _, m := range d.Moves {
		if m.Kind == policy.Refuse {
			continue
		}
		held[m.Job] = m.Units
	}
	return held
}
