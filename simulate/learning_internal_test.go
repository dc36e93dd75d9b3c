package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"courier/schemas"
	"courier/trainer"

	"github.com/google/go-cmp/cmp"
)

// simulateSeed is the seed of all scenarios of these tests, so that they have the same history.
const simulateSeed = 6

// simulatedWorld is the default world with a short warm-up and short jobs, so that fits are fast,
// also with the race detector.
func simulatedWorld() *World {
	w := DefaultWorld()
	w.WarmUp.JobsAtOnce = []int{1, 3}
	for i := range w.Families {
		w.Families[i].Epochs, w.Families[i].CPUs = []int{3}, [][]int{{2}, {2, 8}}
	}
	return w
}

// learningRules are the names of the rules with regressors.
var learningRules = []string{RuleCourier, RulePaper}

func newRule(name string, seed uint64) Rule { return NewRule(context.Background(), name, seed, 0) }

// fittedRules are the learning rules after a fit on the shared history, by name.
var fittedRules = sync.OnceValues(func() (map[string]Rule, error) {
	c := newRule(RuleCourier, simulateSeed).(*courierRule)
	p := newRule(RulePaper, simulateSeed).(*paperRule)
	for _, r := range simulatedWorld().History(simulateSeed) {
		c.add(r.Event, r.Sequence)
		p.add(r.Event, r.Sequence)
	}
	return map[string]Rule{RuleCourier: c, RulePaper: p}, errors.Join(c.fit(), p.fit())
})

// fittedRule returns a rule without a past; those that learn have fitted.
func fittedRule(t testing.TB, name string) Rule {
	t.Helper()
	fitted, err := fittedRules()
	if err != nil {
		t.Fatal(err)
	}
	switch r := NewRule(t.Context(), name, simulateSeed, 0).(type) {
	case *courierRule:
		r.regressors, r.isFitted = fitted[name].(*courierRule).regressors, true
		return r
	case *paperRule:
		*r = *fitted[name].(*paperRule)
		return r
	default:
		return r
	}
}

// recordedRule records the events before each answer of a rule, and the answers.
type recordedRule struct {
	Rule
	events []schemas.Event
	lines  []string // per submission
}

func (r *recordedRule) Apply(e schemas.Event, sequence uint64, at time.Time) {
	r.events = append(r.events, e)
	r.Rule.Apply(e, sequence, at)
}

func (r *recordedRule) Submit(q schemas.JobRequest, on NodeLoad, at time.Time) (*schemas.Advice, error) {
	a, err := r.Rule.Submit(q, on, at)
	line, failed := json.Marshal(struct {
		Events []schemas.Event
		Advice *schemas.Advice
	}{r.events, a})
	r.lines, r.events = append(r.lines, string(line)), nil
	if err == nil {
		err = failed
	}
	return a, err
}

// Two worlds have the same events up to an answer, and later differ in arrivals. Each rule but the oracle
// gives the same advice up to that answer.
func TestSimulate_NoRuleSeesTheFuture(t *testing.T) {
	if testing.Short() {
		t.Skip("only computes")
	}
	const same = 40
	a := NewScenario(simulatedWorld(), same+10, 0.95, simulateSeed)
	now := a.Jobs[same-1].At
	other := simulatedWorld()
	b := &Scenario{World: other, History: a.History, Jobs: slices.Clone(a.Jobs[:same])}
	for _, j := range other.Jobs(same+10, 0.95, simulateSeed+1)[same:] {
		j.At += now
		b.Jobs = append(b.Jobs, j)
	}
	for _, name := range []string{RuleCourier, RulePaper, RuleRandom, RuleLargest} {
		var played []*recordedRule
		for _, s := range []*Scenario{a, b} {
			r := &recordedRule{Rule: fittedRule(t, name)}
			if _, err := s.Play(t.Context(), r, nil); err != nil {
				t.Fatal(err)
			}
			played = append(played, r)
		}
		x, y := played[0].lines, played[1].lines
		if diff := cmp.Diff(x[:same], y[:same]); diff != "" {
			t.Errorf("%s: events or advice differ before the scenarios differ:\n%s", name, diff)
		}
		if x[len(x)-1] == y[len(y)-1] {
			t.Errorf("%s: the scenarios do not differ", name)
		}
	}
	var oracle [][]JobOutcome
	for _, s := range []*Scenario{a, b} {
		outcomes, err := s.Play(t.Context(), newRule(RuleOracle, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		oracle = append(oracle, outcomes[:same])
	}
	if reflect.DeepEqual(oracle[0], oracle[1]) {
		t.Error("the oracle does not see the future")
	}
}

// A repeated play gives the same result, including the regressors.
func TestSimulate_LearningRulesAreDeterministic(t *testing.T) {
	s := NewScenario(simulatedWorld(), 30, 0.95, simulateSeed)
	for _, name := range learningRules {
		var scores []SimulationScore
		for range 2 {
			outcomes, err := s.Play(t.Context(), fittedRule(t, name), nil)
			if err != nil {
				t.Fatal(err)
			}
			scores = append(scores, ScoreOf(name, outcomes))
		}
		if diff := cmp.Diff(scores[0], scores[1]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if scores[0].Accepted == 0 {
			t.Errorf("%s accepted none of %d jobs", name, scores[0].Submitted)
		}
	}
}

// A fit is due at the first submission, and again after exactly refit finished jobs.
func TestLearner_IsDue(t *testing.T) {
	for refit, want := range map[int][]bool{
		0: {true, false, false, false, false},
		2: {true, false, true, false, true},
	} {
		l := learner{refit: refit, past: trainer.NewPast()}
		for i, due := range want {
			if got := l.isDue(); got != due {
				t.Errorf("refit %d, after %d finished jobs: due = %v, want %v", refit, i, got, due)
			}
			if l.isDue() {
				l.fitted()
			}
			e := &schemas.Ended{Outcome: schemas.EventFinished}
			e.EventID, e.JobID = fmt.Sprint("job-", i), fmt.Sprint("job-", i)
			l.add(e, uint64(i+1))
		}
	}
}

func TestChoosePoint(t *testing.T) {
	fast := predictedCandidate{jobCandidate{512, 4}, 50, 0.90}
	middle := predictedCandidate{jobCandidate{128, 4}, 99, 0.94}
	slow := predictedCandidate{jobCandidate{64, 4}, 200, 0.96}
	const meets, refused = schemas.MeetsSLO, schemas.BestEffort
	type list = []predictedCandidate
	few, many := predictedCandidate{jobCandidate{64, 2}, 90, 0.96}, predictedCandidate{jobCandidate{64, 8}, 80, 0.96}
	poor := predictedCandidate{jobCandidate{128, 8}, 80, 0.93}
	for _, c := range []struct {
		name     string
		all      list
		slo      float64
		decision schemas.Decision
		want     predictedCandidate
	}{
		{"the most accurate within the SLO", list{slow, middle, fast}, 100, meets, middle},
		{"the order says nothing", list{fast, slow, middle}, 100, meets, middle},
		{"exactly the SLO is within", list{slow, fast}, 200, meets, slow},
		{"none within: a refusal with the fastest", list{slow, fast, middle}, 49, refused, fast},
		{"as accurate: the faster", list{few, many}, 100, meets, many},
		{"a faster one that is less accurate", list{middle, poor}, 100, meets, middle},
	} {
		if decision, got := choosePoint(c.all, c.slo); decision != c.decision || got != c.want {
			t.Errorf("%s: %s %+v, want %s %+v", c.name, decision, got, c.decision, c.want)
		}
	}
}
