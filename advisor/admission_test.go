package advisor

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// startWithPolicy starts two advisors with a policy and the regressors of the fixture, each with
// its own connection.
func startWithPolicy(t testing.TB, policy string) (b *bus.Bus, stop func()) {
	t.Helper()
	server := bustest.NewServer(t)
	b = server.Connect(t)
	promote(t, b)
	_, stop = startWith(t, server.Connect(t), Options{Policy: Policy{Admission: policy}}, nil)
	_, _ = startWith(t, server.Connect(t), Options{Policy: Policy{Admission: policy}}, nil)
	for range 20 { // both advisors must have loaded the regressors
		awaitRegressors(t, b)
	}
	return b, stop
}

// manyEpochs requests 750 s of work without co-located jobs. Compared with it the duration of the
// test is negligible.
func manyEpochs(id string, slo time.Duration) schemas.JobRequest {
	return schemas.JobRequest{
		JobID: id, Model: advisortest.Model, CPUs: schemas.CPUs{2}, BatchSizes: []int{16}, Epochs: 1000,
		SLO: schemas.Duration(slo), Nodes: []string{"node-a"},
	}
}

// manyStarted is the start event of a job of manyEpochs.
func manyStarted(job string) *schemas.Started {
	e := silentFor(job, time.Hour)
	e.Epochs = 1000
	return e
}

// awaitRunning waits until both advisors know that a job runs: any of them answers a request.
func awaitRunning(t testing.TB, b *bus.Bus, job string) {
	t.Helper()
	for range 20 {
		await(t, job+" to run", func() bool {
			return status(t, b, job).State == schemas.StateRunning
		})
	}
}

func verdict(t testing.TB, b *bus.Bus, q schemas.JobRequest) (schemas.Verdict, schemas.Advice) {
	t.Helper()
	a, err := submit(t, b, q)
	if err != nil || a.Admission == nil {
		t.Fatalf("submit %s = %+v, %v, want an admission", q.JobID, a, err)
	}
	return a.Admission.Verdict, a
}

func TestProtect_RefusesAJobThatBreaksAPromise(t *testing.T) {
	b, _ := startWithPolicy(t, schemas.AdmissionProtect)
	if v, _ := verdict(t, b, manyEpochs("old", 20*time.Minute)); v != schemas.Admitted {
		t.Fatalf("verdict for the first job: got %s, want admitted", v)
	}
	publish(t, b, manyStarted("old"))
	awaitRunning(t, b, "old")

	q := manyEpochs("new", 100*time.Minute)
	if a := predict(t, b, q); a.Admission == nil || a.Admission.Verdict != schemas.Refused {
		t.Errorf("predict returns admission %+v, want a refusal as from submit", a.Admission)
	}
	v, a := verdict(t, b, q)
	if v != schemas.Refused || a.Action != schemas.ActionRefuse || !slices.Equal(a.Admission.Breaks, []string{"old"}) ||
		!slices.Contains(kindsOf(a.Menu), schemas.ChoiceStart) {
		t.Errorf("verdict = %s, breaks %v, menu %v; want refused, breaks old, start on the menu",
			v, a.Admission.Breaks,
			kindsOf(a.Menu))
	}
	if s := status(t, b, "new"); s.State != schemas.StateRefused || s.Reason == "" {
		t.Errorf("status %+v, want refused with its reason", s)
	}
	short := manyEpochs("short", 100*time.Minute)
	short.BatchSizes, short.Epochs = []int{64}, 1
	if v, a := verdict(t, b, short); v != schemas.Admitted {
		t.Errorf("verdict = %s: %s; want admitted, because the job breaks nothing", v, a.Message)
	}
	unknown := manyEpochs("unknown", 100*time.Minute)
	unknown.Model = "nobody-knows"
	if v, a := verdict(t, b, unknown); v != schemas.Refused {
		t.Errorf("verdict = %s: %s; want refused, because the co-located model is unknown",
			v, a.Message)
	}
}

// Two jobs of 2000 s fit on a node together; a third breaks both promises. Regardless of the number
// of concurrent requests and of the advisor that answers, two jobs are admitted to each node.
func TestProtect_AdmitsOnlyJobsThatFitConcurrently(t *testing.T) {
	b, _ := startWithPolicy(t, schemas.AdmissionProtect)
	const nodes, jobs = 40, 4
	admitted := make([]atomic.Int32, nodes)
	var all sync.WaitGroup
	for node := range nodes {
		for i := range jobs {
			all.Go(func() {
				q := manyEpochs(fmt.Sprintf("job-%d-%d", node, i), 2000*time.Second)
				q.Nodes = []string{fmt.Sprintf("node-%d", node)}
				a, err := submit(t, b, q)
				if err != nil || a.Admission == nil {
					t.Errorf("submit = %+v, %v, want an admission", a, err)
				} else if a.Admission.Verdict == schemas.Admitted {
					admitted[node].Add(1)
				}
			})
		}
	}
	all.Wait()
	for node := range nodes {
		if n := admitted[node].Load(); n != 2 {
			t.Errorf("got %d of %d jobs admitted to node %d, want 2", n, jobs, node)
		}
	}
}

// The queue starts the job with the earliest deadline first, continues when an advisor crashes, and
// drops a cancelled job.
func TestQueue_StartsFittingJobsByDeadline(t *testing.T) {
	b, stop := startWithPolicy(t, schemas.AdmissionQueue)
	if v, _ := verdict(t, b, manyEpochs("old", 20*time.Minute)); v != schemas.Admitted {
		t.Fatalf("verdict for the first job: got %s, want admitted", v)
	}
	publish(t, b, manyStarted("old"))
	awaitRunning(t, b, "old")

	v, a := verdict(t, b, manyEpochs("whenever", 100*time.Hour))
	if v != schemas.Queued || a.Action != schemas.ActionWait || a.Admission.Position != 1 ||
		a.Admission.StartSeconds == nil ||
		*a.Admission.StartSeconds < 500 || *a.Admission.StartSeconds > 800 {
		t.Errorf("verdict for the second job = %s, %+v; want queued first, to start in 500 to 800 s",
			v, a.Admission)
	}
	for i, id := range []string{"soon", "never"} {
		if v, a := verdict(t, b, manyEpochs(id, 100*time.Minute)); v != schemas.Queued ||
			a.Admission.Position != 2+i {
			t.Errorf("verdict for %s = %s, %+v; want queued at %d", id, v, a.Admission, 2+i)
		}
	}
	var s schemas.JobStatus
	if err := b.Request(within(t), schemas.SubjectJobCancel,
		&schemas.JobCancelRequest{JobID: "never"}, &s); err != nil ||
		s.State != schemas.StateCancelled {
		t.Errorf("cancel of a queued job = %+v, %v, want cancelled", s, err)
	}
	if s := status(t, b, "soon"); s.State != schemas.StateQueued {
		t.Errorf("state while the first job runs: %s, want queued", s.State)
	}
	stop()
	publish(t, b, advisortest.FinishedEvent("old", 1))
	await(t, "all to be admitted", func() bool {
		return status(t, b, "soon").State == schemas.StateSubmitted &&
			status(t, b, "whenever").State == schemas.StateSubmitted
	})
	want := []string{"soon", "whenever"}
	for stream, event := range map[string]string{
		schemas.StreamJob:    schemas.EventAdmitted,
		schemas.StreamAdvice: schemas.EventAdvice,
	} {
		order := started(t, b, stream, schemas.JobSubject("*", event), len(want))
		if !slices.Equal(order, want) {
			t.Errorf("%s in %s: %v, want the earlier deadline first", event, stream, order)
		}
	}
	if s := status(t, b, "never"); s.State != schemas.StateCancelled {
		t.Errorf("state of the cancelled job = %s, want cancelled", s.State)
	}
}

// A job that waits for a node holds back only jobs that would run on it. A later job for another node is
// admitted at once, or as soon as that node is free, also if nothing is known about its time.
func TestQueue_WaitsForItsOwnNodes(t *testing.T) {
	b, _ := startWithPolicy(t, schemas.AdmissionQueue)
	on := func(node, id string, slo time.Duration) schemas.JobRequest {
		q := manyEpochs(id, slo)
		q.Nodes, q.NewNodes = []string{node}, true
		return q
	}
	begin := func(node, id string) {
		t.Helper()
		if v, _ := verdict(t, b, on(node, id, 20*time.Minute)); v != schemas.Admitted {
			t.Fatalf("verdict for %s on %s: got %s, want admitted", id, node, v)
		}
		e := manyStarted(id)
		e.Nodes = []string{node}
		publish(t, b, e)
		awaitRunning(t, b, id)
	}
	begin("node-a", "old-a")
	if v, _ := verdict(t, b, on("node-a", "waits-a", 100*time.Minute)); v != schemas.Queued {
		t.Fatalf("verdict for a second job on node-a: got %s, want queued", v)
	}
	begin("node-b", "old-b")
	for node, want := range map[string]uint32{"node-a": 2, "node-b": 1} {
		unknown := on(node, "unknown-"+node, 200*time.Minute)
		unknown.Model = "nobody-knows"
		if v, a := verdict(t, b, unknown); v != schemas.Queued || uint32(a.Admission.Position) != want {
			t.Errorf("verdict for a job on %s = %s, %+v; want queued at %d", node, v, a.Admission, want)
		}
	}
	end := advisortest.FinishedEvent("old-b", 1)
	end.Nodes = []string{"node-b"}
	publish(t, b, end)
	await(t, "the job on node-b to be admitted", func() bool {
		return status(t, b, "unknown-node-b").State == schemas.StateSubmitted
	})
	for _, id := range []string{"waits-a", "unknown-node-a"} {
		if s := status(t, b, id); s.State != schemas.StateQueued {
			t.Errorf("state of %s: %s, want queued until node-a is free", id, s.State)
		}
	}
}

// started returns the jobs of the first n admissions on a subject, in order.
func started(t *testing.T, b *bus.Bus, stream, subject string, n int) (jobs []string) {
	t.Helper()
	o := bus.FollowOptions{Stream: stream, Subjects: []string{subject}}
	err := b.Follow(within(t), o, func(r bus.Record) error {
		switch e := r.Event.(type) {
		case *schemas.JobAdmitted:
			jobs = append(jobs, e.JobID)
		case *schemas.Advice:
			if e.Action == schemas.ActionStart {
				jobs = append(jobs, e.JobID)
			}
		}
		if len(jobs) == n {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("follow %s: %v", subject, err)
	}
	return jobs
}

var errEnough = errors.New("all expected events were received")

// kinds returns the kinds of choices.
func kindsOf(menu []schemas.Choice) []string {
	var all []string
	for _, c := range menu {
		all = append(all, c.Kind)
	}
	return all
}
