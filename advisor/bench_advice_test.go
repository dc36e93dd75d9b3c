package advisor

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus/bustest"
	"courier/schemas"
)

// BenchmarkAdviceAfterEpoch measures the time from publishing an epoch to receiving the advice that
// it causes, between two connections to a real server. The epoch is stored, delivered and applied,
// the job is re-predicted with nine co-located jobs, and the advice is stored and delivered. The
// epochs of one job per node arrive in turn, and differ so much that all advice is published.
func BenchmarkAdviceAfterEpoch(b *testing.B) {
	for _, jobs := range []int{10, 1000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) { benchAdvice(b, jobs) })
	}
}

func benchAdvice(b *testing.B, jobs int) {
	const epochs = 100_000
	server := bustest.NewServer(b)
	served, client := server.Connect(b), server.Connect(b)
	startFitted(b, served)
	for n := range jobs {
		e := advisortest.StartedEvent(fmt.Sprint("job-", n), 1)
		e.Epochs, e.Nodes = epochs, []string{fmt.Sprint("node-", n/10)}
		publish(b, client, e)
	}
	type heard struct {
		cause uint64
		at    time.Time
	}
	advice := make(chan heard, 1<<16)
	listening := make(chan error, 1)
	ctx, cancel := context.WithCancel(b.Context())
	go func() {
		listening <- client.Listen(ctx, schemas.JobSubject("*", schemas.EventAdvice), func(e schemas.Event) {
			advice <- heard{e.(*schemas.Advice).CauseSequence, time.Now()}
		})
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-listening; err != nil {
			b.Error(err)
		}
	})
	last := schemas.JobStatusRequest{JobID: fmt.Sprint("job-", jobs-1)}
	await(b, "all jobs", func() bool {
		var s schemas.JobStatus
		return client.Request(within(b), schemas.SubjectJobStatus, &last, &s) == nil
	})

	var times []float64
	n := 0
	epoch := func() (begin time.Time, cause uint64) {
		node, number := n%(jobs/10), n/(jobs/10)
		e := advisortest.EpochEvent(fmt.Sprint("job-", 10*node), 1, uint32(number+1))
		e.Epochs, e.Nodes = epochs, []string{fmt.Sprint("node-", node)}
		e.DurationSeconds = []float64{1, 20, 55}[number%3] // the prediction is about 7.5
		n++
		return time.Now(), publish(b, client, e)
	}
	wait := func(cause uint64, deadline <-chan time.Time) (at time.Time, ok bool) {
		for {
			select {
			case h := <-advice:
				if h.cause == cause {
					return h.at, true
				}
			case <-deadline:
				return at, false
			}
		}
	}
	for ok := false; !ok; { // until the subscription is active
		_, cause := epoch()
		_, ok = wait(cause, time.After(time.Second))
	}
	for b.Loop() {
		begin, cause := epoch()
		at, ok := wait(cause, time.After(10*time.Second))
		if !ok {
			b.Fatalf("no advice after 10 s for epoch %d", n)
		}
		times = append(times, float64(at.Sub(begin).Microseconds())/1000)
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "p50-ms")
	b.ReportMetric(times[len(times)*99/100], "p99-ms")
	b.ReportMetric(times[len(times)-1], "max-ms")
}
