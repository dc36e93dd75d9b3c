package simulate

import (
	"context"
	"encoding/json"
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

// fittedOnce returns regressors fitted by a method on the shared history.
var fittedOnce = map[trainer.FitMethod]func() (*Learner, error){
	trainer.MethodEvidence: sync.OnceValues(func() (*Learner, error) {
		return fitHistory(trainer.MethodEvidence)
	}),
	trainer.MethodFamilies: sync.OnceValues(func() (*Learner, error) {
		return fitHistory(trainer.MethodFamilies)
	}),
}

func fitHistory(method trainer.FitMethod) (*Learner, error) {
	l := NewLearner(context.Background(), method, simulateSeed, 0)
	for _, r := range simulatedWorld().History(simulateSeed) {
		l.add(r.Event, r.Sequence)
	}
	_, err := l.learn()
	return l, err
}

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

// learningRules returns the rules with fitted regressors.
func learningRules(t testing.TB) map[string]Rule {
	t.Helper()
	fitted := func(method trainer.FitMethod) *Learner {
		l, err := fittedOnce[method]()
		if err != nil {
			t.Fatal(err)
		}
		n := NewLearner(t.Context(), method, simulateSeed, 0)
		n.epochTime, n.startup, n.accuracy = l.epochTime, l.startup, l.accuracy
		return n
	}
	return map[string]Rule{
		RuleCourier: NewCourierRule(fitted(trainer.MethodEvidence), schemas.PromiseEach),
		RuleMean:    NewCourierRule(fitted(trainer.MethodEvidence), schemas.PromiseMean),
		RulePaper:   NewPaperRule(fitted(trainer.MethodFamilies)),
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

func (r *recordedRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	a, err := r.Rule.Submit(q, at)
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

// Two worlds have the same events up to an answer, and later differ in arrivals and speed. Each
// rule gives the same advice up to that answer.
func TestSimulate_NoRuleSeesTheFuture(t *testing.T) {
	if testing.Short() {
		t.Skip("only computes")
	}
	const same = 40
	a := NewScenario(simulatedWorld(), same+10, 0.95, simulateSeed)
	now := a.Jobs[same-1].At
	other := simulatedWorld()
	other.Drift = []NodeDrift{{AfterSeconds: now + 0.001, Factor: 3}}
	b := &Scenario{World: other, History: a.History, Jobs: slices.Clone(a.Jobs[:same])}
	for _, j := range other.Jobs(same+10, 0.95, simulateSeed+1)[same:] {
		j.At += now
		b.Jobs = append(b.Jobs, j)
	}
	for _, name := range Rules() {
		var first *recordedRule
		for _, s := range []*Scenario{a, b} {
			rule := NewRule(t.Context(), name, trainer.MethodEvidence, simulateSeed, 0)
			if known := learningRules(t)[name]; known != nil {
				rule = known
			}
			r := &recordedRule{Rule: rule}
			if name == RuleOracle || name == RuleInformed {
				break // Rules that see the world may differ.
			}
			if _, err := s.Play(t.Context(), r, nil); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = r
				continue
			}
			if diff := cmp.Diff(first.lines[:same], r.lines[:same]); diff != "" {
				t.Errorf("%s: events or advice differ before the scenarios differ:\n%s", name, diff)
			}
			if first.lines[len(first.lines)-1] == r.lines[len(r.lines)-1] {
				t.Errorf("%s: the scenarios do not differ", name)
			}
		}
	}
}

// A repeated play gives the same result, including the regressors.
func TestSimulate_LearningRulesAreDeterministic(t *testing.T) {
	s := NewScenario(simulatedWorld(), 30, 0.95, simulateSeed)
	for name := range learningRules(t) {
		var scores []SimulationScore
		for range 2 {
			outcomes, err := s.Play(t.Context(), learningRules(t)[name], nil)
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

// Regressors are fitted again after exactly this number of finished jobs.
func TestLearner_Refits(t *testing.T) {
	if testing.Short() {
		t.Skip("only computes")
	}
	l := NewLearner(t.Context(), trainer.MethodEvidence, 1, 2)
	s := NewScenario(simulatedWorld(), 0, 0.95, 1)
	for _, r := range s.History[:len(s.History)/3] { // enough for each target, but fast to fit
		l.add(r.Event, r.Sequence)
	}
	finished := func(id string) {
		e := &schemas.Ended{Outcome: schemas.EventFinished}
		e.EventID, e.JobID = id, id
		l.add(e, 1<<20)
	}
	for i, want := range []bool{true, false, false, true, false} {
		got, err := l.learn()
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("after %d finished jobs: fitted = %v, want %v", i, got, want)
		}
		if i > 0 {
			finished(string(rune('a' + i)))
		}
	}
}

func TestChoosePoint(t *testing.T) {
	fast := predictedCandidate{512, 4, 50, 0.90}
	middle := predictedCandidate{128, 4, 99, 0.94}
	slow := predictedCandidate{64, 4, 200, 0.96}
	for _, c := range []struct {
		name     string
		all      []predictedCandidate
		slo      float64
		decision schemas.Decision
		want     predictedCandidate
	}{
		{
			"the most accurate within the SLO",
			[]predictedCandidate{slow, middle, fast},
			100,
			schemas.MeetsSLO,
			middle,
		},
		{
			"the order says nothing",
			[]predictedCandidate{fast, slow, middle},
			100,
			schemas.MeetsSLO,
			middle,
		},
		{
			"exactly the SLO is within",
			[]predictedCandidate{slow, fast},
			200,
			schemas.MeetsSLO,
			slow,
		},
		{
			"none within: a refusal with the fastest",
			[]predictedCandidate{slow, fast, middle},
			49,
			schemas.BestEffort,
			fast,
		},
		{
			"as accurate: the faster",
			[]predictedCandidate{{64, 2, 90, 0.96}, {64, 8, 80, 0.96}},
			100,
			schemas.MeetsSLO,
			predictedCandidate{64, 8, 80, 0.96},
		},
		{
			"a faster one that is less accurate",
			[]predictedCandidate{middle, {128, 8, 80, 0.93}},
			100,
			schemas.MeetsSLO,
			middle,
		},
	} {
		if decision, got := choosePoint(c.all, c.slo); decision != c.decision || got != c.want {
			t.Errorf("%s: %s %+v, want %s %+v", c.name, decision, got, c.decision, c.want)
		}
	}
}

// BenchmarkSimulate plays 1,000 submissions of the default world with the rules that learn, without
// their fits.
func BenchmarkSimulate(b *testing.B) {
	s := NewScenario(DefaultWorld(), 1000, 0.95, simulateSeed)
	for name := range learningRules(b) {
		b.Run("rule="+name+"/submissions=1000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Play(b.Context(), learningRules(b)[name], nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "submissions/s")
		})
	}
}
