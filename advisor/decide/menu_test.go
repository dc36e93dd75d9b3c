package decide_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/decide"
	"courier/schemas"
)

func kinds(menu []schemas.Choice) []string {
	var all []string
	for _, c := range menu {
		all = append(all, c.Kind)
	}
	return all
}

// The running job needs 7.5 s of its 10 s. The new job with batch size 4 needs 1.5 s per epoch
// without other jobs, and each second of co-location delays the running job by one second.
func TestDecide_OffersChoicesThatBreakNoPromise(t *testing.T) {
	r := advisortest.Regressors(t)
	old := setting(16, 10)
	ask := func(change func(*schemas.JobRequest)) *schemas.Advice {
		q := &decide.Question{Request: request(change), JobID: "new", Nodes: []string{"n"},
			Others: []decide.Member{{
				JobID:      "old",
				Setting:    old,
				Left:       10 * time.Second,
				Confidence: 0.9,
			}}}
		return decide.Decide(q, r, time.Now())
	}
	a := ask(slo(time.Minute))
	if want := []string{
		schemas.ChoiceEpochs, schemas.ChoiceStart,
	}; !slices.Equal(kinds(a.Menu), want) {
		t.Fatalf("got menu %v, want %v", kinds(a.Menu), want)
	}
	if c := a.Menu[0]; c.Epochs != 1 || c.BatchSize != 4 {
		t.Errorf("fewer epochs: %+v, want one epoch of batch size 4", c)
	}
	if c := a.Menu[1]; math.Abs(c.StartSeconds-7.5) > 0.2 ||
		math.Abs(*c.PredictedSeconds-22.6) > 0.5 || math.Abs(*c.CPUSeconds-30.2) > 0.7 ||
		c.Epochs != 10 {
		t.Errorf("later start: %+v, want a start at 7.5 s and the end at 22.6 s", c)
	}
	shorter := ask(func(q *schemas.JobRequest) {
		q.SLO = schemas.Duration(time.Minute)
		q.Epochs = 1
	})
	if len(shorter.Menu) > 0 || shorter.Effects[0].BreaksSLO {
		t.Errorf("effects %+v and menu %+v of the offered choice, want no broken SLO and no menu",
			shorter.Effects,
			shorter.Menu)
	}
	if a := ask(slo(13 * time.Second)); !slices.Contains(kinds(a.Menu), schemas.ChoiceDeadline) ||
		slices.Contains(kinds(a.Menu), schemas.ChoiceStart) {
		t.Errorf("menu for a tight SLO: %v, want a later deadline and no later start",
			kinds(a.Menu))
	}
}

// The running job needs 7.5 s. A promise at risk that can still be kept is protected like a safe
// one. A promise that will probably be broken is not protected.
func TestDecide_ProtectsPromisesThatCanBeKept(t *testing.T) {
	old := setting(16, 10)
	for _, c := range []struct {
		left   time.Duration
		breaks bool
	}{{10 * time.Second, true}, {
		7630 * time.Millisecond, true,
	}, {7 * time.Second, false}, {time.Minute, false}} {
		q := &decide.Question{
			Request: request(slo(time.Minute)),
			JobID:   "new",
			Nodes:   []string{"n"},
			Others: []decide.Member{{
				JobID:      "old",
				Setting:    old,
				Left:       c.left,
				Confidence: 0.95,
				EpochsDone: 0,
			}},
		}
		e := decide.Decide(q, advisortest.Regressors(t), time.Now()).Effects[0]
		if e.BreaksSLO != c.breaks {
			t.Errorf("%s left, probability before %.3f, after %.3f: got breaks %v, want %v", c.left,
				*e.BeforeProbability, *e.AfterProbability, e.BreaksSLO, c.breaks)
		}
	}
}

func TestDecide_OffersChoicesThatKeepTheSLO(t *testing.T) {
	r := advisortest.Regressors(t)
	a := decide.Decide(&decide.Question{Request: request(slo(2 * time.Second))}, r, time.Now())
	if want := []string{
		schemas.ChoiceEpochs, schemas.ChoiceDeadline,
	}; a.Decision != schemas.BestEffort || !slices.Equal(kinds(a.Menu), want) {
		t.Fatalf("got decision %s with menu %v, want best_effort with %v", a.Decision, kinds(a.Menu), want)
	}
	for _, c := range a.Menu {
		q := request(func(q *schemas.JobRequest) {
			q.SLO, q.Epochs = schemas.Duration(2*time.Second), int(c.Epochs)
			if c.SLOSeconds > 0 {
				q.SLO = schemas.Duration(c.SLOSeconds * float64(time.Second))
			}
		})
		if again := decide.Decide(&decide.Question{Request: q}, r, time.Now()); again.Decision != schemas.MeetsSLO {
			t.Errorf("choice %+v: got decision %s, want a promise", c, again.Decision)
		}
	}
}

// More CPUs than requested are never offered; fewer are offered if they help. In the fixture the
// number of jobs slows down a co-located job, not the number of processes, so fewer CPUs do not
// help.
func TestDecide_OffersFewerCPUs(t *testing.T) {
	q := &decide.Question{Request: request(func(q *schemas.JobRequest) {
		q.CPUs = schemas.CPUs{2}
		q.BatchSizes = []int{16, 64}
		q.SLO = schemas.Duration(time.Second)
	})}
	a := decide.Decide(q, advisortest.Regressors(t), time.Now())
	if slices.Contains(kinds(a.Menu), schemas.ChoiceCPUs) {
		t.Errorf("menu offers fewer CPUs, which are slower: %+v", a.Menu)
	}
}

// The menu holds exactly the Pareto-optimal choices.
func TestDecide_OffersParetoOptimalChoices(t *testing.T) {
	q := &decide.Question{Request: request(func(q *schemas.JobRequest) {
		q.CPUs = schemas.CPUs{1, 2}
	})}
	a := decide.Decide(q, advisortest.Regressors(t), time.Now())
	beats := func(time, cost, accuracy float64, c *schemas.Choice) bool {
		return time <= *c.PredictedSeconds && cost <= *c.CPUSeconds &&
			accuracy >= *c.PredictedAccuracy
	}
	on := map[[2]uint32]bool{}
	for i := range a.Menu {
		c := &a.Menu[i]
		on[[2]uint32{c.BatchSize, c.CPUs}] = true
		for k := range a.Menu {
			if b := &a.Menu[k]; k != i && beats(*b.PredictedSeconds, *b.CPUSeconds,
				*b.PredictedAccuracy, c) {
				t.Errorf("choice %+v dominates choice %+v, want no dominated choice", b, c)
			}
		}
	}
	for _, alt := range a.Alternatives {
		beaten := slices.ContainsFunc(a.Menu, func(c schemas.Choice) bool {
			return *c.PredictedSeconds <= *alt.PredictedSeconds &&
				*c.CPUSeconds <= *alt.CPUSeconds && *c.PredictedAccuracy >= *alt.PredictedAccuracy
		})
		if !on[[2]uint32{alt.BatchSize, alt.CPUs}] && !beaten {
			t.Errorf("batch size %d on %d CPUs is Pareto-optimal but not on the menu",
				alt.BatchSize, alt.CPUs)
		}
	}
	if len(a.Menu) < 3 {
		t.Errorf("menu %+v, want a choice between three batch sizes", a.Menu)
	}
	free := &decide.Question{Request: request(func(q *schemas.JobRequest) {
		q.Epochs, q.MaxEpochs = 0, 10
	})}
	if a := decide.Decide(free, advisortest.Regressors(t), time.Now()); len(a.Menu) < 6 ||
		!slices.ContainsFunc(a.Menu, func(c schemas.Choice) bool {
			return c.Epochs < 5
		}) {
		t.Errorf("menu with open epochs: %+v, want choices with fewer epochs too", a.Menu)
	}
}
