package shares_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"
)

// wideNode is a node on which a change from 10 to 11 CPUs is too small to matter.
var wideNode = schemas.Hardware{Cores: 40, CPUModel: "x", Speed: 1e9}

var wideCPUs = schemas.CPUs{10, 11, 20}

// fitWide fits regressors for wideCPUs on wideNode.
var fitWide = advisortest.FitShared(
	wideNode, []uint32{10, 11, 20}, []float64{0, 10, 11, 20, 21, 22, 30, 31, 40, 50, 60}, 80,
)

var (
	wideOnce       sync.Once
	wideRegressors decide.Regressors
)

// ruleView is a node with random elastic jobs, barred moves, foreign work and an arriving job.
type ruleView struct {
	*elasticCluster
	shares *shares.Pool
	barred map[string][]uint32
	cpus   map[string]uint32 // current, by job
	next   func(limit int) int
}

// newRuleView builds a view from bytes; zeros follow the last byte.
func newRuleView(t testing.TB, data []byte) *ruleView {
	t.Helper()
	wideOnce.Do(func() { wideRegressors = advisortest.Load(t, fitWide) })
	v := &ruleView{
		elasticCluster: newElasticClusterOf(t, wideNode, wideRegressors, wideCPUs),
		barred:         map[string][]uint32{},
		cpus:           map[string]uint32{},
		next: func(limit int) int {
			if len(data) == 0 {
				return 0
			}
			n := int(data[0]) % limit
			data = data[1:]
			return n
		},
	}
	for i := range 1 + v.next(4) {
		v.addJob(fmt.Sprint("job-", i))
	}
	v.shares = shares.PoolOf(v.Cluster, "node-a", v.now)
	v.shares.Objective = shares.Objectives()[v.next(4)]
	if taken := v.next(12); taken < 8 { // by other work
		v.shares.Capacity -= taken
	}
	return v
}

func (v *ruleView) addJob(id string) {
	cpus := uint32(wideCPUs[v.next(3)])
	v.run(id, time.Duration(500+20*v.next(250))*time.Second, cpus)
	v.cpus[id] = cpus
	if done := uint32(3 * v.next(250)); done > 0 {
		e := advisortest.EpochEvent(id, 1, done)
		e.At, e.DurationSeconds, e.Nodes = v.now, 15/float64(cpus), []string{"node-a"}
		e.CPUs, e.Epochs, e.NodeCores = cpus, 1000, wideNode.Cores
		v.apply(e)
	}
	if to := uint32(wideCPUs[v.next(3)]); v.next(3) == 0 && to != cpus {
		v.barred[id] = []uint32{to}
		v.apply(movedEvent(id, schemas.MoveUndone, cpus, to, v.now))
	}
}

// probabilities returns the probability of meeting the SLO with other CPUs, and with the current ones.
func (v *ruleView) probabilities(q *decide.Question, to uint32) (after, before float64) {
	from := q.Self.Setting.CPUs
	a := shares.DecideMove(q, schemas.PlannedMove{FromCPUs: from, ToCPUs: to}, v.r, v.now)
	of := func(cpus uint32) float64 {
		alt := a.Running(16, cpus)
		if alt == nil || alt.Probability == nil || alt.Extrapolated {
			return 0
		}
		return *alt.Probability
	}
	return of(to), of(from)
}

// checkChange fails a test if a change of a running job breaks a rule above all policies (resource
// policies, section 1.3).
func (v *ruleView) checkChange(q *decide.Question, to uint32) {
	v.t.Helper()
	id, from := q.JobID, v.cpus[q.JobID]
	if !slices.Contains(wideCPUs, int(to)) || to == from {
		v.t.Errorf("%s: %d→%d CPUs of %v", id, from, to, wideCPUs) // rule 2: it is never stopped
	}
	if slices.Contains(v.barred[id], to) {
		v.t.Errorf("%s: %d→%d CPUs, although that is barred", id, from, to) // rule 5
	}
	change := math.Abs(float64(to) - float64(from)) // rule 4
	if change < 0.2*float64(from) && change < 0.05*float64(wideNode.Cores) {
		v.t.Errorf("%s: %d→%d CPUs is too small a change", id, from, to)
	}
	if to > from {
		return
	}
	after, before := v.probabilities(q, to) // rule 3
	if wanted := q.Request.Confidence; before >= wanted && after < wanted {
		v.t.Errorf("%s: %d→%d CPUs lowers the probability from %g to %g, want %g",
			id, from, to, before, after, wanted)
	}
}

// checkPlan checks the plan for the running jobs, and returns the number of moves.
func (v *ruleView) checkPlan() int {
	v.t.Helper()
	planned := v.shares.Plan(v.r, v.now)
	after, held, total := map[string]uint32{}, 0, 0
	for id, n := range v.cpus {
		after[id], held = n, held+int(n)
	}
	for _, p := range planned {
		id := p.Question.JobID
		if after[id] != v.cpus[id] {
			v.t.Errorf("%s moves twice", id)
		}
		after[id] = p.Move.ToCPUs
		v.checkChange(p.Question, p.Move.ToCPUs)
	}
	for _, n := range after {
		total += int(n)
	}
	if total > max(v.shares.Capacity, held) {
		v.t.Errorf("%d CPUs of %d, before %d", total, v.shares.Capacity, held)
	}
	return len(planned)
}

// checkAdmission checks the admission of a new job, and returns the number of its loans.
func (v *ruleView) checkAdmission() int {
	v.t.Helper()
	q := v.request("new", time.Duration(200+20*v.next(250))*time.Second)
	v.shares.IsFixed = v.next(4) == 0
	advice := v.shares.Admit(decide.Ask(v.Cluster, q, v.now), v.r, v.now)
	if advice == nil {
		return 0
	}
	free := v.shares.Capacity
	for _, n := range v.cpus {
		free -= int(n)
	}
	loans := advice.Admission.Loans
	if v.shares.IsFixed && len(loans) > 0 {
		v.t.Errorf("loans %v, although the running jobs keep their CPUs", loans)
	}
	for _, l := range loans {
		at := slices.IndexFunc(v.shares.Jobs, func(e shares.Share) bool {
			return e.Question.JobID == l.JobID
		})
		if l.FromCPUs != v.cpus[l.JobID] || l.ToCPUs >= l.FromCPUs {
			v.t.Errorf("loan %+v of a job with %d CPUs", l, v.cpus[l.JobID])
		}
		v.checkChange(v.shares.Jobs[at].Question, l.ToCPUs)
		free += int(l.FromCPUs) - int(l.ToCPUs)
	}
	if int(advice.Chosen.CPUs) > free {
		v.t.Errorf("%d CPUs for the new job, %d are free with %v", advice.Chosen.CPUs, free, loans)
	}
	for _, e := range advice.Effects {
		if e.BreaksSLO {
			v.t.Errorf("the new job breaks the promise to %s", e.JobID)
		}
	}
	return len(loans)
}

// Whatever runs on a node, plans and admissions keep the rules above all policies.
func TestPlan_KeepsTheRulesOfAllPolicies(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 9))
	moves, loans := 0, 0
	for range 3000 {
		data := make([]byte, 40)
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		v := newRuleView(t, data)
		moves += v.checkPlan()
		loans += v.checkAdmission()
		if t.Failed() {
			t.Fatalf("broken with %q", data)
		}
	}
	if moves < 500 || loans < 20 {
		t.Errorf("%d moves and %d loans in 3,000 plans: the test shows nothing", moves, loans)
	}
}

func FuzzNodeShares(f *testing.F) {
	f.Add([]byte("some elastic jobs with and without slack, and a new one"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := newRuleView(t, data)
		v.checkPlan()
		v.checkAdmission()
	})
}
