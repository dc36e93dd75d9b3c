package advisor_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"courier/advisor"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// guarded starts two advisors with a policy, each with its own connection, and
// the fixture's regressors.
func guarded(t testing.TB, policy string) (b *bus.Bus, stop func()) {
	t.Helper()
	server := bustest.NewServer(t)
	b = server.Connect(t)
	promote(t, b)
	_, stop = startWith(t, server.Connect(t), advisor.Options{Admission: policy}, nil)
	_, _ = startWith(t, server.Connect(t), advisor.Options{Admission: policy}, nil)
	q := tenEpochs("", time.Minute)
	for range 20 { // each of the two
		await(t, "all regressors", func() bool { return len(predict(t, b, q).Regressors) == len(schemas.Targets()) })
	}
	return b, stop
}

// tenEpochs is a request for 7.6 s of work alone.
func tenEpochs(id string, slo time.Duration) schemas.JobRequest {
	return schemas.JobRequest{JobID: id, Model: model, CPUs: schemas.CPUs{2}, BatchSizes: []int{16}, Epochs: 10, SLO: schemas.Duration(slo), Nodes: []string{"node-a"}}
}

func verdict(t testing.TB, b *bus.Bus, q schemas.JobRequest) (schemas.Verdict, schemas.Advice) {
	t.Helper()
	a, err := submit(t, b, q)
	if err != nil || a.Admission == nil {
		t.Fatalf("submit %s = %+v, %v, want an admission", q.JobID, a, err)
	}
	return a.Admission.Verdict, a
}

func TestProtect_RefusesWhatBreaksAPromise(t *testing.T) {
	b, _ := guarded(t, schemas.AdmissionProtect)
	if v, _ := verdict(t, b, tenEpochs("old", 12*time.Second)); v != schemas.Admitted {
		t.Fatalf("the first job is %s", v)
	}
	publish(t, b, startedEvent("old", 1))
	await(t, "the first job to run", func() bool { return status(t, b, "old").State == schemas.StateRunning })

	q := tenEpochs("new", time.Minute)
	if a := predict(t, b, q); a.Admission == nil || a.Admission.Verdict != schemas.Refused {
		t.Errorf("predict tells %+v, want what submit will say", a.Admission)
	}
	v, a := verdict(t, b, q)
	if v != schemas.Refused || !slices.Equal(a.Admission.Breaks, []string{"old"}) || !slices.Contains(kinds(a.Menu), schemas.ChoiceStart) {
		t.Errorf("a job that breaks a promise is %s, breaks %v, menu %v", v, a.Admission.Breaks, kinds(a.Menu))
	}
	if s := status(t, b, "new"); s.State != schemas.StateRefused || s.Reason == "" {
		t.Errorf("status %+v, want refused with its reason", s)
	}
	short := tenEpochs("short", time.Minute)
	short.BatchSizes, short.Epochs = []int{64}, 1
	if v, a := verdict(t, b, short); v != schemas.Admitted {
		t.Errorf("a job that breaks nothing is %s: %s", v, a.Message)
	}
	unknown := tenEpochs("unknown", time.Minute)
	unknown.Model = "nobody-knows"
	if v, a := verdict(t, b, unknown); v != schemas.Refused {
		t.Errorf("a job that may take any time beside a promise is %s: %s", v, a.Message)
	}
}

// Two jobs of 20 s fit beside each other, a third breaks the promises to both:
// however many ask at once, and whichever of the two advisors, two are admitted
// to each node.
func TestProtect_AdmitsNoMoreThanFitAtOnce(t *testing.T) {
	b, _ := guarded(t, schemas.AdmissionProtect)
	const nodes, jobs = 40, 4
	admitted := make([]atomic.Int32, nodes)
	var all sync.WaitGroup
	for node := range nodes {
		for i := range jobs {
			all.Go(func() {
				q := tenEpochs(fmt.Sprintf("job-%d-%d", node, i), 20*time.Second)
				q.Nodes = []string{fmt.Sprintf("node-%d", node)}
				a, err := submit(t, b, q)
				if err != nil || a.Admission == nil {
					t.Errorf("submit = %+v, %v", a, err)
				} else if a.Admission.Verdict == schemas.Admitted {
					admitted[node].Add(1)
				}
			})
		}
	}
	all.Wait()
	for node := range nodes {
		if n := admitted[node].Load(); n != 2 {
			t.Errorf("%d jobs of %d were admitted to node %d, want 2", n, jobs, node)
		}
	}
}

// The queue starts the job with the earliest deadline first, goes on when an
// advisor dies, and forgets a job that is cancelled.
func TestQueue_StartsWhatFitsByDeadline(t *testing.T) {
	b, stop := guarded(t, schemas.AdmissionQueue)
	if v, _ := verdict(t, b, tenEpochs("old", 12*time.Second)); v != schemas.Admitted {
		t.Fatalf("the first job is %s", v)
	}
	publish(t, b, startedEvent("old", 1))
	await(t, "the first job to run", func() bool { return status(t, b, "old").State == schemas.StateRunning })

	v, a := verdict(t, b, tenEpochs("whenever", time.Hour))
	if v != schemas.Queued || a.Admission.Position != 1 || a.Admission.StartSeconds == nil || *a.Admission.StartSeconds < 5 || *a.Admission.StartSeconds > 8 {
		t.Errorf("the second job is %s: %+v", v, a.Admission)
	}
	for i, id := range []string{"soon", "never"} {
		if v, a := verdict(t, b, tenEpochs(id, time.Minute)); v != schemas.Queued || a.Admission.Position != 2+i {
			t.Errorf("%s is %s: %+v", id, v, a.Admission)
		}
	}
	var s schemas.JobStatus
	if err := b.Request(within(t), schemas.SubjectJobCancel, &schemas.JobCancelRequest{JobID: "never"}, &s); err != nil || s.State != schemas.StateCancelled {
		t.Errorf("cancel of a waiting job = %+v, %v", s, err)
	}
	if s := status(t, b, "soon"); s.State != schemas.StateQueued {
		t.Errorf("while the first runs, the state is %s, want queued", s.State)
	}
	stop()
	publish(t, b, finishedEvent("old", 1))
	await(t, "all to be admitted", func() bool {
		return status(t, b, "soon").State == schemas.StateSubmitted && status(t, b, "whenever").State == schemas.StateSubmitted
	})
	var order []string
	ctx := within(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamJob, Subjects: []string{schemas.JobSubject("*", schemas.EventAdvice)}}, func(r bus.Record) error {
			if a := r.Event.(*schemas.Advice); a.Action == schemas.ActionStart {
				order = append(order, a.JobID)
			}
			if len(order) == 2 {
				return errEnough
			}
			return nil
		})
	}()
	<-done
	if !slices.Equal(order, []string{"soon", "whenever"}) {
		t.Errorf("started %v, want the earlier deadline first", order)
	}
	if s := status(t, b, "never"); s.State != schemas.StateCancelled {
		t.Errorf("the cancelled job is %s", s.State)
	}
}

var errEnough = fmt.Errorf("enough was seen")
