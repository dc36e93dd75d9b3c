package advisor

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkRequests compares requests with the minimum cost of a reply, over one TCP connection to
// one server. It compares job.predict with an echo service, and job.submit with a service that
// publishes the request to a stream, waits for the ack, and replies.
func BenchmarkRequests(b *testing.B) {
	server := bustest.NewServer(b)
	bus := server.Connect(b)
	startFitted(b, bus)
	q := advisortest.Request()
	nc, js := connect(b, server.URL())
	if _, err := js.CreateStream(within(b), jetstream.StreamConfig{
		Name:     "PLAIN",
		Subjects: []string{"plain.kept"},
	}); err != nil {
		b.Fatal(err)
	}
	serve(b, nc, "plain.echo", func(m *nats.Msg) { _ = m.Respond(m.Data) })
	fixed := predict(b, bus, q)
	serve(b, nc, "plain.answer", func(m *nats.Msg) {
		var asked schemas.JobRequest
		if schemas.DecodeRequest(m.Data, &asked) != nil {
			return
		}
		if data, err := schemas.Marshal(&fixed); err == nil {
			_ = m.Respond(data)
		}
	})
	serve(b, nc, "plain.keep", func(m *nats.Msg) {
		if _, err := js.Publish(b.Context(), "plain.kept", m.Data); err == nil {
			_ = m.Respond(m.Data)
		}
	})
	asker, _ := connect(b, server.URL())
	data, err := schemas.Marshal(&q)
	if err != nil {
		b.Fatal(err)
	}
	subjects := []string{
		"plain.echo", "plain.answer", schemas.SubjectJobPredict, "plain.keep", schemas.SubjectJobSubmit,
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
	b.ReportMetric(median("plain.answer")/median("plain.echo"), "answer/echo")
	b.ReportMetric(median(schemas.SubjectJobSubmit)/median("plain.keep"), "submit/keep")
}

// serve answers requests on a subject.
func serve(b *testing.B, nc *nats.Conn, subject string, handle nats.MsgHandler) {
	b.Helper()
	_, err := nc.Subscribe(subject, handle)
	if err = errors.Join(err, nc.Flush()); err != nil {
		b.Fatal(err)
	}
}
