package advisor_test

import (
	"fmt"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// The public score counts promises whose jobs ran as advised: kept, broken, and
// not those that ran otherwise.
func TestAdvisor_CountsPromises(t *testing.T) {
	b, reg := bustest.New(t), prometheus.NewRegistry()
	startMeasured(t, b, reg)
	promote(t, b)
	q := schemas.JobRequest{Model: model, CPUs: schemas.CPUs{2}, BatchSizes: []int{16}, Epochs: 10, SLO: schemas.Duration(20 * time.Second), Nodes: []string{"node-a"}}
	await(t, "all regressors", func() bool { return len(predict(t, b, q).Regressors) == len(schemas.Targets()) })
	for job, end := range map[string]func(*schemas.Ended){
		"kept":      func(*schemas.Ended) {},
		"broken":    func(e *schemas.Ended) { e.Outcome = schemas.EventFailed },
		"otherwise": func(e *schemas.Ended) { e.BatchSize = 64 },
	} {
		q.JobID = job
		if a, err := submit(t, b, q); err != nil || a.Decision != schemas.MeetsSLO {
			t.Fatalf("submit = %+v, %v, want a promise", a, err)
		}
		publish(t, b, startedEvent(job, 1))
		e := finishedEvent(job, 1)
		end(e)
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
	if len(got) != 2 || sum != 2 {
		t.Errorf("promises %v, want one kept and one broken", got)
	}
}
