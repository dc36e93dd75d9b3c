package decide_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

var testContext = context.Background()

func request(change func(*schemas.JobRequest)) schemas.JobRequest {
	q := schemas.JobRequest{
		Model:      advisortest.Model,
		CPUs:       schemas.CPUs{2},
		BatchSizes: []int{4, 16, 64},
		Epochs:     10,
	}
	if change != nil {
		change(&q)
	}
	return q.WithDefaults()
}

// setting is that of jobs on two CPUs of node n.
func setting(batch, epochs uint32) schemas.Setting {
	return schemas.Setting{
		Model: advisortest.Model, BatchSize: batch, CPUs: 2, Epochs: epochs, Nodes: []string{"n"},
	}
}

func slo(d time.Duration) func(*schemas.JobRequest) {
	return func(q *schemas.JobRequest) { q.SLO = schemas.Duration(d) }
}

// On two CPUs without other jobs, ten epochs take 15 s with batch size 4, 7.5 s with 16 and 5.6 s
// with 64. A smaller batch is more accurate.
func TestDecide(t *testing.T) {
	r := advisortest.Regressors(t)
	beside := []decide.Member{{
		JobID:   "other",
		Setting: setting(4, 1000),
	}}
	for _, c := range []struct {
		name     string
		q        decide.Question
		r        decide.Regressors
		decision schemas.Decision
		batch    uint32
	}{
		{
			"time for the most accurate",
			decide.Question{Request: request(slo(20 * time.Second))}, r, schemas.MeetsSLO, 4,
		},
		{
			"the most accurate of those in time",
			decide.Question{Request: request(slo(10 * time.Second))}, r, schemas.MeetsSLO, 16,
		},
		{
			"only the fastest is in time",
			decide.Question{Request: request(slo(6 * time.Second))}, r, schemas.MeetsSLO, 64,
		},
		{
			"none is in time", decide.Question{Request: request(slo(2 * time.Second))}, r,
			schemas.BestEffort, 64,
		},
		{
			"a neighbour doubles the time",
			decide.Question{
				Request: request(slo(20 * time.Second)),
				Nodes:   []string{"n"},
				Others:  beside,
			},
			r, schemas.MeetsSLO, 16,
		},
		{
			"a neighbour elsewhere does not",
			decide.Question{
				Request: request(slo(20 * time.Second)),
				Nodes:   []string{"m"},
				Others:  beside,
			},
			r, schemas.MeetsSLO, 4,
		},
		{
			"time that has passed is gone",
			decide.Question{Request: request(slo(20 * time.Second)), Elapsed: 10 * time.Second},
			r, schemas.MeetsSLO, 16,
		},
		{
			"no SLO, accuracy alone",
			decide.Question{Request: request(func(q *schemas.JobRequest) {
				q.Weights = &schemas.Weights{Accuracy: 1}
			})},
			r, schemas.Weighted, 4,
		},
		{
			"no SLO, time alone",
			decide.Question{Request: request(func(q *schemas.JobRequest) {
				q.Weights = &schemas.Weights{Time: 1}
			})},
			r, schemas.Weighted, 64,
		},
		{
			"more CPUs are faster",
			decide.Question{Request: request(func(q *schemas.JobRequest) {
				q.CPUs = schemas.CPUs{1, 2}
				q.SLO = schemas.Duration(16 * time.Second)
			})},
			r, schemas.MeetsSLO, 4,
		},
		{
			"nothing is known", decide.Question{Request: request(slo(time.Minute))},
			decide.Regressors{}, schemas.Exploring, 64,
		},
		{
			"only times are known", decide.Question{Request: request(slo(time.Minute))},
			decide.Regressors{EpochTime: r.EpochTime}, schemas.Exploring, 64,
		},
		{
			"an unknown model",
			decide.Question{Request: request(func(q *schemas.JobRequest) {
				q.Model = "new"
				q.SLO = schemas.Duration(time.Minute)
			})},
			r, schemas.Exploring, 64,
		},
		{
			"more epochs than any job had",
			decide.Question{Request: request(func(q *schemas.JobRequest) {
				q.Epochs = 60
				q.SLO = schemas.Duration(70 * time.Second)
			})},
			r, schemas.MeetsSLO, 16,
		},
		{
			"beyond what was measured",
			decide.Question{Request: request(func(q *schemas.JobRequest) {
				q.BatchSizes = []int{256}
				q.SLO = schemas.Duration(time.Minute)
			})},
			r, schemas.Exploring, 256,
		},
	} {
		a := decide.Decide(&c.q, c.r, time.Unix(1_790_000_000, 0).UTC())
		if a.Decision != c.decision || a.Chosen.BatchSize != c.batch {
			t.Errorf("%s: Decide = %s %d, want %s %d", c.name, a.Decision, a.Chosen.BatchSize,
				c.decision, c.batch)
		}
		if want := len(c.q.Request.BatchSizes) * len(c.q.Request.CPUs); len(a.Alternatives) != want {
			t.Errorf("%s: got %d alternatives, want %d", c.name, len(a.Alternatives), want)
		}
		for _, alt := range a.Alternatives {
			if alt.Reason == "" {
				t.Errorf("%s: alternative with batch size %d has no reason, want one",
					c.name, alt.BatchSize)
			}
		}
	}
}

func TestDecide_PredictsTheTruthOfTheFixture(t *testing.T) {
	a := decide.Decide(&decide.Question{Request: request(slo(10 * time.Second))}, advisortest.Regressors(t),
		time.Now())
	for _, alt := range a.Alternatives {
		seconds := 10 * advisortest.TrueSeconds(float64(alt.BatchSize), 2, 1)
		if got := *alt.PredictedSeconds; math.Abs(got-seconds) > 0.03*seconds {
			t.Errorf("batch %d: %.2f s, want %.2f s", alt.BatchSize, got, seconds)
		}
		if got, want := *alt.PredictedAccuracy, advisortest.TrueAccuracy(float64(alt.BatchSize), 10); math.Abs(
			got-want,
		) > 0.01 {
			t.Errorf("batch %d: accuracy %.4f, want %.4f", alt.BatchSize, got, want)
		}
		if alt.UpperBoundSeconds == nil || *alt.UpperBoundSeconds < *alt.PredictedSeconds ||
			alt.Probability == nil {
			t.Errorf("batch %d: bound %v, probability %v; want a probability and a bound above the time",
				alt.BatchSize, alt.UpperBoundSeconds,
				alt.Probability)
		}
	}
}

// Between measured batch sizes the upper bound is wider, by the error measured on held-out levels.
func TestDecide_WidensBoundsBetweenLevels(t *testing.T) {
	q := &decide.Question{Request: request(func(q *schemas.JobRequest) {
		q.SLO = schemas.Duration(time.Minute)
		q.BatchSizes = []int{16, 32, 64}
	})}
	a := decide.Decide(q, advisortest.Regressors(t), time.Now())
	width := func(i int) float64 {
		return *a.Alternatives[i].UpperBoundSeconds / *a.Alternatives[i].PredictedSeconds
	}
	if !(width(1) > width(0) && width(1) > width(2)) || a.Alternatives[1].Extrapolated {
		t.Errorf("ratios of bound to prediction are %.4f, %.4f and %.4f, want the largest between two levels",
			width(0), width(1), width(2))
	}
}

func TestDecide_WithoutRegressorsHasNoFigures(t *testing.T) {
	a := decide.Decide(&decide.Question{Request: request(slo(time.Minute))},
		decide.Regressors{}, time.Now())
	data, err := schemas.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		"predicted_seconds", "predicted_accuracy", "probability", "upper_bound",
	} {
		if strings.Contains(string(data), field) {
			t.Errorf("advice without regressors has field %s: %s", field, data)
		}
	}
	if !strings.Contains(a.Message, "run it with batch size 64") {
		t.Errorf("message %q does not name an epoch to run", a.Message)
	}
}

func TestDecide_RunningJob(t *testing.T) {
	r := advisortest.Regressors(t)
	running := func(batch uint32, done uint32, elapsed time.Duration) *decide.Question {
		self := &decide.Member{
			Setting:    setting(batch, 10),
			EpochsDone: done,
		}
		return &decide.Question{
			Request: request(slo(12 * time.Second)),
			Elapsed: elapsed,
			Self:    self,
			Nodes:   []string{"n"},
		}
	}
	for _, c := range []struct {
		name     string
		q        *decide.Question
		action   schemas.Action
		decision schemas.Decision
		batch    uint32
		seconds  float64
	}{
		{
			"on its way", running(16, 5, 4*time.Second), schemas.ActionKeep, schemas.MeetsSLO, 16,
			3.75,
		},
		{
			"keeps what meets the SLO, though smaller is more accurate",
			running(64, 5, time.Second), schemas.ActionKeep, schemas.MeetsSLO, 64, 2.8,
		},
		{
			"too slow: a larger batch saves it", running(4, 2, 3*time.Second), schemas.ActionBatch,
			schemas.MeetsSLO, 16, 6,
		},
		{
			"nothing saves it", running(4, 2, 10*time.Second), schemas.ActionBatch,
			schemas.BestEffort, 64, 4.5,
		},
		{"all done", running(16, 10, 8*time.Second), schemas.ActionKeep, schemas.MeetsSLO, 16, 0},
	} {
		a := decide.Decide(c.q, r, time.Now())
		if a.Action != c.action || a.Decision != c.decision || a.Chosen.BatchSize != c.batch ||
			math.Abs(*a.Chosen.PredictedSeconds-c.seconds) > 0.15 {
			t.Errorf("%s: Decide = %s %s batch %d in %.2f s, want %s %s batch %d in %.2f s",
				c.name, a.Action, a.Decision, a.Chosen.BatchSize, *a.Chosen.PredictedSeconds,
				c.action, c.decision, c.batch, c.seconds)
		}
	}
}

func TestDecide_PredictsTheEffectOnOtherJobs(t *testing.T) {
	other := setting(16, 10)
	q := &decide.Question{Request: request(slo(time.Minute)), JobID: "new", Nodes: []string{"n"},
		Others: []decide.Member{{
			JobID:      "old",
			Setting:    other,
			Left:       10 * time.Second,
			Confidence: 0.9,
		}}}
	a := decide.Decide(q, advisortest.Regressors(t), time.Now())
	if len(a.Effects) != 1 {
		t.Fatalf("got effects %+v, want one", a.Effects)
	}
	if e := a.Effects[0]; e.JobID != "old" || !e.BreaksSLO || math.Abs(e.BeforeSeconds-7.5) > 0.2 ||
		math.Abs(e.AfterSeconds-15) > 0.4 {
		t.Errorf("got effect %+v, want old from 7.5 s to 15 s, breaking its SLO", e)
	}
}

// A job whose SLO has passed, and a job without events for an hour, have probability 0 and finite
// figures.
func TestDecide_PromisesNothingAfterTheDeadline(t *testing.T) {
	for _, c := range []struct {
		name    string
		elapsed time.Duration
		self    *decide.Member
	}{
		{"asked too late", time.Hour, nil},
		{"runs still", 13 * time.Second, &decide.Member{EpochsDone: 9}},
		{"has never reported", time.Hour, &decide.Member{Since: time.Hour}},
	} {
		q := &decide.Question{
			Request: request(slo(12 * time.Second)),
			Elapsed: c.elapsed,
			Self:    c.self,
			Nodes:   []string{"n"},
		}
		if c.self != nil {
			c.self.Setting = setting(16, 10)
		}
		a := decide.Decide(q, advisortest.Regressors(t), time.Now())
		if a.Decision != schemas.BestEffort || a.Chosen.Probability == nil ||
			*a.Chosen.Probability != 0 {
			t.Errorf("%s: got decision %s with %+v, want best_effort and probability 0", c.name, a.Decision,
				a.Chosen)
		}
		if !strings.Contains(a.Message, ", but the SLO ended ") {
			t.Errorf("%s: message %q does not say that the SLO has ended", c.name, a.Message)
		}
		for _, alt := range a.Alternatives {
			if s := *alt.PredictedSeconds; !(s >= 0) || math.IsInf(s, 0) {
				t.Errorf("%s: predicted seconds of batch size %d = %g, want finite and at least 0",
					c.name, alt.BatchSize, s)
			}
		}
	}
}

// A job with one batch size is promised its time although no accuracy was ever measured. With several
// batch sizes, or a target, the accuracy decides, and nothing is promised.
func TestDecide_PromisesATimeWithoutAccuracies(t *testing.T) {
	r := advisortest.Load(t, fittedOnOne)
	r.Accuracy = nil
	c := cluster.New()
	now := time.Unix(1_790_000_000, 0).UTC()
	c.Apply(advisortest.SampleOf("node-a", advisortest.Small, func(s *schemas.Sample) { s.At = now }), 1, now)
	for _, tc := range []struct {
		name    string
		batches []int
		change  func(*schemas.JobRequest)
		want    schemas.Decision
	}{
		{"one batch size", []int{16}, func(q *schemas.JobRequest) {}, schemas.MeetsSLO},
		{"with several CPUs", []int{16}, func(q *schemas.JobRequest) { q.CPUs = schemas.CPUs{1, 2} }, schemas.MeetsSLO},
		{"too late", []int{16}, func(q *schemas.JobRequest) { q.SLO = schemas.Duration(time.Second) },
			schemas.BestEffort},
		{"several", []int{16, 64}, func(q *schemas.JobRequest) {}, schemas.Exploring},
		{"a target", []int{16}, func(q *schemas.JobRequest) { q.TargetAccuracy = .5 }, schemas.Exploring},
		{"free epochs", []int{16}, func(q *schemas.JobRequest) { q.Epochs, q.MaxEpochs = 0, 20 }, schemas.Exploring},
	} {
		q := advisortest.Request()
		q.BatchSizes = tc.batches
		tc.change(&q)
		a := decide.Decide(decide.Ask(c, q.WithDefaults(), now), r, now)
		if a.Decision != tc.want {
			t.Errorf("%s: got %s (%s), want %s", tc.name, a.Decision, a.Message, tc.want)
		}
		if strings.Contains(a.Message, "accuracy") == (tc.want != schemas.Exploring) {
			t.Errorf("%s: the message is %q, want the accuracy mentioned only if it is needed", tc.name, a.Message)
		}
	}
}

// The effect of a new job on one that lends it CPUs counts from the time with all of its CPUs.
func TestDecide_CountsALoanAsAnEffect(t *testing.T) {
	lender := setting(16, 10)
	q := &decide.Question{
		Request: request(nil),
		Nodes:   []string{"n"},
		Others:  []decide.Member{{JobID: "old", Setting: lender, Left: 12 * time.Second, Confidence: 0.9}},
	}
	r := advisortest.Regressors(t)
	alone := decide.Decide(q, r, time.Now()).Effects[0]
	loans := []schemas.Loan{{JobID: "old", FromCPUs: 2, ToCPUs: 1}}
	lent := decide.Decide(q.WithLoans(loans, 0), r, time.Now()).Effects[0]
	if lent.BeforeSeconds != alone.BeforeSeconds || !lent.BreaksSLO {
		t.Errorf("before the loan: %g s, want %g; breaks the SLO: %t, want true",
			lent.BeforeSeconds, alone.BeforeSeconds, lent.BreaksSLO)
	}
}

// What a job has done of its first epoch shortens its time, as in each later epoch.
func TestDecide_CountsTheFirstEpochInProgress(t *testing.T) {
	at := func(since time.Duration) float64 {
		running := setting(16, 10)
		q := &decide.Question{
			Request: request(nil), Nodes: []string{"n"}, Self: &decide.Member{Setting: running, Since: since},
		}
		return *decide.Decide(q, advisortest.Regressors(t), time.Now()).Running(16, 2).PredictedSeconds
	}
	startup := time.Duration(advisortest.TrueStartup * float64(time.Second))
	begin, within := at(startup), at(startup+300*time.Millisecond)
	if math.Abs(begin-within-0.3) > 0.05 {
		t.Errorf("at the start of the first epoch %.2f s, 0.3 s later %.2f s; want 0.3 s less", begin, within)
	}
}
