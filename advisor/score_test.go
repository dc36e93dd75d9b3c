package advisor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// The score counts promises whose jobs began as advised: kept promises, broken promises, and
// promises of jobs that moved to another batch size. It ignores jobs that ran differently.
func TestAdvisor_CountsPromises(t *testing.T) {
	b, reg := bustest.New(t), prometheus.NewRegistry()
	startWith(t, b, Options{}, reg)
	promote(t, b)
	q := schemas.JobRequest{
		Model:      advisortest.Model,
		CPUs:       schemas.CPUs{2},
		BatchSizes: []int{16},
		Epochs:     10,
		SLO:        schemas.Duration(20 * time.Second),
		Nodes:      []string{"node-a"},
	}
	awaitRegressors(t, b)
	for job, tell := range map[string]func(*schemas.Started, *schemas.Ended){
		"kept":      func(*schemas.Started, *schemas.Ended) {},
		"broken":    func(_ *schemas.Started, e *schemas.Ended) { e.Outcome = schemas.EventFailed },
		"moved":     func(_ *schemas.Started, e *schemas.Ended) { e.BatchSize = 64 },
		"otherwise": func(s *schemas.Started, _ *schemas.Ended) { s.BatchSize = 64 },
	} {
		q.JobID = job
		if a, err := submit(t, b, q); err != nil || a.Decision != schemas.MeetsSLO {
			t.Fatalf("submit = %+v, %v, want a promise", a, err)
		}
		s, e := advisortest.StartedEvent(job, 1), advisortest.FinishedEvent(job, 1)
		tell(s, e)
		publish(t, b, s)
		e.EventID = schemas.EndedID(job, 1, e.Outcome)
		publish(t, b, e)
		await(t, "the end", func() bool { return status(t, b, job).EndedAt != nil })
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "courier_advisor_promises_total" {
			for _, m := range f.GetMetric() {
				got[fmt.Sprint(m.GetLabel())] = m.GetCounter().GetValue()
			}
		}
	}
	sum := 0.0
	for _, n := range got {
		sum += n
	}
	if len(got) != 2 || sum != 3 {
		t.Errorf("promises %v, want two kept and one broken", got)
	}
	var s schemas.Score
	if err := b.Request(within(t), schemas.SubjectJobScore, &schemas.ScoreRequest{}, &s); err != nil {
		t.Fatal(err)
	}
	if s.Promises.Jobs != 3 || s.Promises.Kept != 2 || len(s.Confidence) != 1 ||
		*s.Confidence[0].Confidence != schemas.DefaultConfidence || len(s.Models) != 1 ||
		s.Models[0].Name != advisortest.Model {
		t.Errorf("job.score = %+v, want two of three kept", s)
	}

	future := &schemas.ScoreRequest{Since: time.Now().Add(24 * time.Hour)}
	var refusal *schemas.Error
	err = b.Request(within(t), schemas.SubjectJobScore, future, &s)
	if !errors.As(err, &refusal) || refusal.Field != "since" {
		t.Errorf("job.score of a period that has not begun: error %v, want one about since", err)
	}
}
