package advisor

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
)

// Regardless of the number of concurrent submissions and of the advisor, each gets its answer and
// is recorded once.
func TestAdvisor_AnswersAThousandConcurrentSubmissions(t *testing.T) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	promote(t, b)
	start(t, server.Connect(t))
	start(t, server.Connect(t))
	const jobs = 1000
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() {
			q := manyEpochs(fmt.Sprintf("job-%d", i), 100*time.Minute)
			if a, err := submit(t, b, q); err != nil || a.JobID != q.JobID {
				t.Errorf("submit %s = %+v, %v, want advice for this job", q.JobID, a, err)
			}
		})
	}
	all.Wait()
	last, err := b.LastSequence(within(t), schemas.StreamJob)
	if err != nil || last != jobs {
		t.Errorf("got %d events in the log, error %v; want %d", last, err, jobs)
	}
	await(t, "all jobs in the list", func() bool {
		seen := map[string]bool{}
		for after := ""; ; {
			var page schemas.JobList
			if err := b.Request(within(t), schemas.SubjectJobList, &schemas.JobListRequest{
				Limit: 300,
				After: after,
			}, &page); err != nil {
				return false // the advisor has not applied the event yet
			}
			for _, j := range page.Jobs {
				seen[j.JobID] = true
			}
			if after = page.Next; after == "" {
				return len(seen) == jobs
			}
		}
	})
}

// A request names nodes of the cluster. Without collectors no node is known, and a runner may run
// where no collector does.
func TestRequest_RefusesUnknownNodes(t *testing.T) {
	b := bustest.New(t)
	start(t, b)
	ask := func(newNodes bool, nodes ...string) error {
		q := schemas.JobRequest{
			Model: "m", CPUs: schemas.CPUs{1}, Epochs: 3, Nodes: nodes, NewNodes: newNodes,
		}
		return b.Request(within(t), schemas.SubjectJobPredict, &q, &schemas.Advice{})
	}
	if err := ask(false, "nowhere"); err != nil {
		t.Errorf("without collectors, predict with a node = %v, want advice", err)
	}
	sample := &schemas.Sample{
		Stamp: schemas.Stamp{EventID: "node-a/1", At: time.Now()}, Node: "node-a", Cores: 4, IntervalSeconds: 2,
	}
	if _, err := b.Publish(within(t), sample); err != nil {
		t.Fatal(err)
	}
	await(t, "the node to be known", func() bool { return ask(false, "nowhere") != nil })
	err := ask(false, sample.Node, "nowhere")
	var refusal *schemas.Error
	if !errors.As(err, &refusal) || refusal.Field != "nodes" ||
		!strings.Contains(refusal.Message, `node "nowhere"; known nodes: `+sample.Node) {
		t.Errorf("predict with an unknown node = %v, want an error that names it and the known nodes", err)
	}
	if err := ask(false, sample.Node); err != nil {
		t.Errorf("predict with a known node = %v, want advice", err)
	}
	if err := ask(true, "nowhere"); err != nil {
		t.Errorf("predict with a new node = %v, want advice", err)
	}
}
