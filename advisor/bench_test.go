package advisor_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"courier/advisor"
	"courier/advisor/cluster"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func benchRequest() schemas.JobRequest {
	return schemas.JobRequest{
		Model:      model,
		CPUs:       schemas.CPUs{2},
		BatchSizes: []int{4, 16, 32, 64},
		Epochs:     10,
		SLO:        schemas.Duration(10 * time.Second),
		Nodes:      []string{"node-a"},
	}
}

func BenchmarkDecide(b *testing.B) {
	r := regressors(b)
	q := &advisor.Question{Request: benchRequest().WithDefaults(), Nodes: []string{"node-a"}}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		advisor.Decide(q, r, now)
	}
}

// BenchmarkRequests compares requests with the minimum cost of a reply, over one TCP connection to
// one server. It compares job.predict with an echo service, and job.submit with a service that
// publishes the request to a stream, waits for the ack, and replies.
func BenchmarkRequests(b *testing.B) {
	server := bustest.NewServer(b)
	bus := server.Connect(b)
	start(b, bus)
	promote(b, bus)
	q := benchRequest()
	await(b, "all regressors", func() bool {
		var a schemas.Advice
		return bus.Request(within(b), schemas.SubjectJobPredict, &q, &a) == nil &&
			len(a.Regressors) == len(schemas.Targets())
	})
	nc, err := nats.Connect(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := js.CreateStream(within(b), jetstream.StreamConfig{
		Name:     "PLAIN",
		Subjects: []string{"plain.kept"},
	}); err != nil {
		b.Fatal(err)
	}
	serve := func(subject string, handle nats.MsgHandler) {
		if _, err := nc.Subscribe(subject, handle); err != nil {
			b.Fatal(err)
		}
	}
	serve("plain.echo", func(m *nats.Msg) { _ = m.Respond(m.Data) })
	serve("plain.keep", func(m *nats.Msg) {
		if _, err := js.Publish(b.Context(), "plain.kept", m.Data); err == nil {
			_ = m.Respond(m.Data)
		}
	})
	if err := nc.Flush(); err != nil {
		b.Fatal(err)
	}
	asker, err := nats.Connect(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer asker.Close()
	data, err := schemas.Marshal(&q)
	if err != nil {
		b.Fatal(err)
	}
	subjects := []string{
		"plain.echo", schemas.SubjectJobPredict, "plain.keep", schemas.SubjectJobSubmit,
	}
	times := map[string][]float64{}
	for b.Loop() {
		for _, subject := range subjects { // alternate, so that machine load affects all alike
			begin := time.Now()
			m, err := asker.Request(subject, data, 5*time.Second)
			if err != nil || m.Header.Get("Nats-Service-Error") != "" {
				b.Fatal(subject, err)
			}
			times[subject] = append(times[subject], float64(time.Since(begin).Microseconds()))
		}
	}
	median := func(subject string) float64 {
		slices.Sort(times[subject])
		return times[subject][len(times[subject])/2]
	}
	for _, s := range subjects {
		b.ReportMetric(median(s), fmt.Sprintf("µs/%s", s))
	}
	b.ReportMetric(median(schemas.SubjectJobPredict)/median("plain.echo"), "predict/echo")
	b.ReportMetric(median(schemas.SubjectJobSubmit)/median("plain.keep"), "submit/keep")
}

// BenchmarkAgain re-predicts a thousand running jobs, ten on each of a hundred nodes, with four
// batch sizes each.
func BenchmarkAgain(b *testing.B) {
	r, state, now := regressors(b), cluster.New(), time.Unix(1_790_000_000, 0).UTC()
	var jobs []*cluster.Job
	for n := range uint64(1000) {
		id := fmt.Sprintf("job-%04d", n)
		q := benchRequest().WithDefaults()
		q.JobID, q.Nodes = id, []string{fmt.Sprintf("node-%02d", n%100)}
		submitted := &schemas.Submitted{
			Request: q,
			Advice:  *advisor.Decide(advisor.Ask(state, q, now), r, now),
		}
		submitted.JobID, submitted.At = id, now
		state.Apply(submitted, 2*n+1, now)
		started := startedEvent(id, 1)
		started.Nodes, started.At = q.Nodes, now
		jobs = append(jobs, state.Apply(started, 2*n+2, now))
	}
	for b.Loop() {
		for _, j := range jobs {
			advisor.Decide(advisor.AskRunning(state, j, now), r, now)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/1000-jobs")
}

// BenchmarkDecideMany decides about 64 alternatives with nine co-located jobs.
func BenchmarkDecideMany(b *testing.B) {
	r := regressors(b)
	var sizes []int
	for n := range 64 {
		sizes = append(sizes, 4+n)
	}
	q := &advisor.Question{Request: benchRequest(), Nodes: []string{"n"}}
	q.Request.BatchSizes = sizes
	q.Request = q.Request.WithDefaults()
	for n := range 9 {
		q.Others = append(q.Others, member(fmt.Sprint("job-", n), 16, uint32(10+n), "n"))
	}
	b.ReportAllocs()
	for b.Loop() {
		advisor.Decide(q, r, time.Unix(0, 0))
	}
}

// BenchmarkDecideBroken decides about four alternatives with ten co-located jobs whose promises the
// job would break, including the menu.
func BenchmarkDecideBroken(b *testing.B) {
	r := regressors(b)
	q := &advisor.Question{Request: benchRequest().WithDefaults(), Nodes: []string{"n"}}
	for n := range 10 {
		m := member(fmt.Sprint("job-", n), 16, uint32(10+n), "n")
		m.Left, m.Confidence = 120*time.Second, 0.9
		q.Others = append(q.Others, m)
	}
	b.ReportAllocs()
	for b.Loop() {
		advisor.Decide(q, r, time.Unix(0, 0))
	}
	b.ReportMetric(float64(len(advisor.Decide(q, r, time.Unix(0, 0)).Menu)), "choices")
}
