package advisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// patience is the timeout of conditions in tests. It only guards against hanging.
const patience = 5 * time.Minute

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start runs an advisor until the test ends, and returns when it answers requests.
func start(t testing.TB, b *bus.Bus) *Advisor {
	t.Helper()
	a, _ := startWith(t, b, Options{}, nil)
	return a
}

// startWith is like start, with options and metrics. The returned function stops the advisor before the
// test ends.
func startWith(t testing.TB, b *bus.Bus, o Options, reg prometheus.Registerer) (a *Advisor, stop func()) {
	t.Helper()
	o.Check = cmp.Or(o.Check, 20*time.Millisecond)
	a = New(b, o, slog.New(slog.DiscardHandler), reg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("advisor ended with %v", err)
		}
	})
	t.Cleanup(stop)
	await(t, "the advisor to answer", func() bool { return a.Ready() == nil })
	return a, stop
}

// await waits for a condition.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

func submit(t testing.TB, b *bus.Bus, q schemas.JobRequest) (schemas.Advice, error) {
	var a schemas.Advice
	err := b.Request(within(t), schemas.SubjectJobSubmit, &q, &a)
	return a, err
}

func status(t testing.TB, b *bus.Bus, id string) schemas.JobStatus {
	t.Helper()
	var s schemas.JobStatus
	if err := b.Request(within(t), schemas.SubjectJobStatus, &schemas.JobStatusRequest{JobID: id},
		&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func publish(t testing.TB, b *bus.Bus, e schemas.Event) uint64 {
	t.Helper()
	sequence, err := b.Publish(within(t), e)
	if err != nil {
		t.Fatal(err)
	}
	return sequence
}

// silentFor returns the start event of a job that counts as lost after the given silence.
func silentFor(job string, long time.Duration) *schemas.Started {
	e := advisortest.StartedEvent(job, 1)
	e.HeartbeatSeconds = long.Seconds()
	return e
}

func TestAdvisor_ExploresOnAnEmptySystem(t *testing.T) {
	b := bustest.New(t)
	start(t, b)
	a, err := submit(t, b, schemas.JobRequest{
		Model: advisortest.Model, CPUs: schemas.CPUs{2}, Epochs: 3, SLO: schemas.Duration(time.Minute),
	})
	if err != nil || a.Decision != schemas.Exploring || a.JobID == "" || len(a.Alternatives) != 4 {
		t.Fatalf("submit = %+v, %v, want exploring with 4 alternatives", a, err)
	}
	if s := status(t, b, a.JobID); s.State != schemas.StateSubmitted || s.DeadlineAt == nil ||
		s.BatchSize != 512 {
		t.Errorf("status = %+v, want submitted with a deadline and batch size 512", s)
	}
}

func TestAdvisor_RepeatedSubmitReturnsTheFirstAdvice(t *testing.T) {
	b := bustest.New(t)
	q := schemas.JobRequest{
		JobID:  "mlp-1",
		Model:  advisortest.Model,
		CPUs:   schemas.CPUs{2},
		Epochs: 3,
		Labels: map[string]string{"a": "b"},
	}
	start(t, b)
	first, err := submit(t, b, q)
	if err != nil {
		t.Fatal(err)
	}
	start(t, b) // a second advisor, which reads the job from the log
	for range 6 {
		again, err := submit(t, b, q)
		if err != nil || !again.At.Equal(first.At) {
			t.Fatalf("second submit = %+v, %v, want the first advice, of %s", again, err, first.At)
		}
		q.User, q.Nodes, q.NewNodes = "eva", []string{"node-a"}, true // as a runner names its own
	}
	q.Epochs = 4
	if _, err := submit(t, b, q); !errors.Is(err, schemas.ErrConflict) {
		t.Errorf("submit with another body = %v, want conflict", err)
	}
}

func TestAdvisor_NamesTheInvalidField(t *testing.T) {
	b := bustest.New(t)
	start(t, b)
	_, err := submit(t, b, schemas.JobRequest{
		Model:      advisortest.Model,
		CPUs:       schemas.CPUs{2},
		Epochs:     3,
		BatchSizes: []int{-4},
	})
	var refusal *schemas.Error
	if !errors.As(err, &refusal) || refusal.Code != schemas.CodeInvalid ||
		refusal.Field != "batch_sizes" {
		t.Errorf("submit = %v, want invalid batch_sizes", err)
	}
	var s schemas.JobStatus
	if err := b.Request(within(t), schemas.SubjectJobStatus,
		&schemas.JobStatusRequest{JobID: "nobody"}, &s); !errors.Is(err, schemas.ErrNotFound) {
		t.Errorf("status of an unknown job = %v, want not_found", err)
	}
}

// promote publishes the regressors of the fixture as champions.
func promote(t testing.TB, b *bus.Bus) {
	t.Helper()
	promoteFitted(t, b, advisortest.Fitted)
}

// promoteFitted makes the regressors of a fixture the champions.
func promoteFitted(t testing.TB, b *bus.Bus, fit advisortest.Fitting) {
	t.Helper()
	all, err := fit()
	if err != nil {
		t.Fatal(err)
	}
	if err := advisortest.Promote(within(t), b, all); err != nil {
		t.Fatal(err)
	}
}

// awaitRegressors waits until an advisor answers a request with all regressors.
func awaitRegressors(t testing.TB, b *bus.Bus) {
	t.Helper()
	await(t, "all regressors", func() bool {
		return len(predict(t, b, advisortest.Request()).Regressors) == len(schemas.Targets())
	})
}

// startFitted starts an advisor with the regressors of the fixture.
func startFitted(t testing.TB, b *bus.Bus) {
	t.Helper()
	start(t, b)
	promote(t, b)
	awaitRegressors(t, b)
}

func predict(t testing.TB, b *bus.Bus, q schemas.JobRequest) schemas.Advice {
	t.Helper()
	var a schemas.Advice
	if err := b.Request(within(t), schemas.SubjectJobPredict, &q, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAdvisor_RepredictsRunningJobs(t *testing.T) {
	b := bustest.New(t)
	startFitted(t, b)
	q := schemas.JobRequest{ // the SLO exceeds any duration of the test
		JobID: "mlp-1", Model: advisortest.Model, CPUs: schemas.CPUs{2}, BatchSizes: []int{4, 16, 64},
		Epochs: 10, SLO: schemas.Duration(time.Hour), Nodes: []string{"node-a"},
	}
	if _, err := submit(t, b, q); err != nil {
		t.Fatal(err)
	}
	given := make(chan *schemas.Advice, 16)
	ctx, cancel := context.WithCancel(within(t))
	done := make(chan error, 1)
	go func() {
		o := bus.FollowOptions{
			Stream:   schemas.StreamAdvice,
			Subjects: []string{schemas.JobSubject("mlp-1", schemas.EventAdvice)},
		}
		done <- b.Follow(ctx, o, func(r bus.Record) error {
			given <- r.Event.(*schemas.Advice)
			return nil
		})
	}()
	var advice []*schemas.Advice
	var causes []uint64
	for _, e := range []schemas.Event{ // sequentially, because a newer advice replaces an unsent one
		silentFor("mlp-1", time.Hour), advisortest.EpochEvent("mlp-1", 1, 1), silentFor("other", time.Hour),
		advisortest.FinishedEvent("other", 1),
	} {
		causes = append(causes, publish(t, b, e))
		select {
		case a := <-given:
			advice = append(advice, a)
		case <-ctx.Done():
			t.Fatalf("got no advice after %s, want one", e.ID())
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// Ten epochs of 0.75 s; nine; nine with a co-located job, twice as slow; nine without it.
	for i, want := range []float64{7.5, 6.75, 13.5, 6.75} {
		a := advice[i]
		if a.EventID != schemas.AdviceID("mlp-1", causes[i]) || a.Chosen.PredictedSeconds == nil {
			t.Fatalf("advice %d has ID %s, want cause %d", i, a.EventID, causes[i])
		}
		if got := *a.Chosen.PredictedSeconds; got < 0.95*want || got > 1.05*want {
			t.Errorf("advice %d: %.2f s left, want %.2f s", i, got, want)
		}
	}
	await(t, "the predicted end", func() bool {
		return status(t, b, "mlp-1").PredictedEndAt != nil
	})
	publish(t, b, advisortest.FinishedEvent("mlp-1", 1))
	await(t, "the end", func() bool { return status(t, b, "mlp-1").State == schemas.StateFinished })
	if s := status(t, b, "mlp-1"); s.MetSLO == nil || !*s.MetSLO {
		t.Errorf("got status %+v, want met", s)
	}
}

func TestAdvisor_RefusesADamagedRegressor(t *testing.T) {
	b := bustest.New(t)
	startFitted(t, b)
	before := predict(t, b, advisortest.Request()).Regressors
	champion, revision, err := b.Champion(within(t), schemas.TargetEpochTime)
	if err != nil {
		t.Fatal(err)
	}
	model, err := b.Artifact(within(t), champion.ModelDigest)
	if err != nil {
		t.Fatal(err)
	}
	half := champion
	if half.ModelDigest, err = b.PutArtifact(within(t), model[:len(model)/2]); err != nil {
		t.Fatal(err)
	}
	if _, err := b.SetChampion(within(t), half, revision); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(within(t))
	err = b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamRegressor}, func(r bus.Record) error {
		if e, ok := r.Event.(*schemas.Rejected); ok {
			if e.ModelDigest != half.ModelDigest || e.Reason == "" {
				t.Errorf("rejected = %+v, want %.12s with a reason", e, half.ModelDigest)
			}
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := predict(t, b, advisortest.Request()).Regressors; fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("digests after a truncated regressor: %v, want %v", got, before)
	}
}

// In a NATS cluster a server may know the champion before its files.
func TestAdvisor_WaitsForTheFilesOfARegressor(t *testing.T) {
	b := bustest.New(t)
	promote(t, b)
	champion, _, err := b.Champion(within(t), schemas.TargetEpochTime)
	if err != nil {
		t.Fatal(err)
	}
	file, err := b.Artifact(within(t), champion.ModelDigest)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.DropArtifact(within(t), champion.ModelDigest); err != nil {
		t.Fatal(err)
	}
	start(t, b)
	if _, err := b.PutArtifact(within(t), file); err != nil {
		t.Fatal(err)
	}
	awaitRegressors(t, b)
}

func TestAdvisor_Cancel(t *testing.T) {
	b := bustest.New(t)
	start(t, b)
	publish(t, b, silentFor("mlp-1", time.Hour))
	await(t, "the job", func() bool {
		var l schemas.JobList
		return b.Request(within(t), schemas.SubjectJobList,
			&schemas.JobListRequest{State: "running"}, &l) == nil && len(l.Jobs) == 1
	})
	var s schemas.JobStatus
	for range 2 { // a repetition has no effect
		if err := b.Request(within(t), schemas.SubjectJobCancel, &schemas.JobCancelRequest{
			JobID:  "mlp-1",
			Reason: "wrong data",
		}, &s); err != nil || s.State != schemas.StateCancelled || s.Reason != "wrong data" {
			t.Fatalf("cancel = %+v, %v, want cancelled with its reason", s, err)
		}
	}
	publish(t, b, advisortest.StartedEvent("mlp-2", 1))
	publish(t, b, advisortest.FinishedEvent("mlp-2", 1))
	await(t, "the second job's end", func() bool {
		return b.Request(within(t), schemas.SubjectJobCancel,
			&schemas.JobCancelRequest{JobID: "mlp-2"}, &s) != nil && errors.Is(b.Request(within(t),
			schemas.SubjectJobCancel, &schemas.JobCancelRequest{JobID: "mlp-2"}, &s), schemas.ErrConflict)
	})
}
