package decide_test

import (
	"fmt"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

func BenchmarkDecide(b *testing.B) {
	r := advisortest.Regressors(b)
	q := &decide.Question{Request: advisortest.Request().WithDefaults(), Nodes: []string{"node-a"}}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		decide.Decide(q, r, now)
	}
}

// BenchmarkAgain re-predicts a thousand running jobs, ten on each of a hundred nodes, with four
// batch sizes each.
func BenchmarkAgain(b *testing.B) {
	r, state, now := advisortest.Regressors(b), cluster.New(), time.Unix(1_790_000_000, 0).UTC()
	var jobs []*cluster.Job
	for n := range uint64(1000) {
		id := fmt.Sprintf("job-%04d", n)
		q := advisortest.Request().WithDefaults()
		q.JobID, q.Nodes = id, []string{fmt.Sprintf("node-%02d", n%100)}
		submitted := &schemas.Submitted{
			Request: q,
			Advice:  *decide.Decide(decide.Ask(state, q, now), r, now),
		}
		submitted.JobID, submitted.At = id, now
		state.Apply(submitted, 2*n+1, now)
		started := advisortest.StartedEvent(id, 1)
		started.Nodes, started.At = q.Nodes, now
		jobs = append(jobs, state.Apply(started, 2*n+2, now))
	}
	for b.Loop() {
		for _, j := range jobs {
			decide.Decide(decide.AskRunning(state, j, now), r, now)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/1000-jobs")
}

// BenchmarkDecideMany decides about 64 alternatives with nine co-located jobs.
func BenchmarkDecideMany(b *testing.B) {
	r := advisortest.Regressors(b)
	var sizes []int
	for n := range 64 {
		sizes = append(sizes, 4+n)
	}
	q := &decide.Question{Request: advisortest.Request(), Nodes: []string{"n"}}
	q.Request.BatchSizes = sizes
	q.Request = q.Request.WithDefaults()
	for n := range 9 {
		q.Others = append(q.Others, member(fmt.Sprint("job-", n), 16, uint32(10+n), "n"))
	}
	b.ReportAllocs()
	for b.Loop() {
		decide.Decide(q, r, time.Unix(0, 0))
	}
}

// BenchmarkDecideBroken decides about four alternatives with ten co-located jobs whose promises the
// job would break, including the menu.
func BenchmarkDecideBroken(b *testing.B) {
	r := advisortest.Regressors(b)
	q := &decide.Question{Request: advisortest.Request().WithDefaults(), Nodes: []string{"n"}}
	for n := range 10 {
		m := member(fmt.Sprint("job-", n), 16, uint32(10+n), "n")
		m.Left, m.Confidence = 120*time.Second, 0.9
		q.Others = append(q.Others, m)
	}
	b.ReportAllocs()
	for b.Loop() {
		decide.Decide(q, r, time.Unix(0, 0))
	}
	b.ReportMetric(float64(len(decide.Decide(q, r, time.Unix(0, 0)).Menu)), "choices")
}
