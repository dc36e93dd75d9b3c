package advisor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
)

// gatedLog is an event log that blocks each publish until a test releases it.
type gatedLog struct {
	mu    sync.Mutex
	fails int // number of publishes of warnings that fail first
	sent  []string
	gate  chan struct{} // each publish receives one value; closed: none blocks
}

func (p *gatedLog) publish(ctx context.Context, e schemas.Event) (uint64, error) {
	select {
	case <-p.gate:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, is := e.(*schemas.Risk); is && p.fails > 0 {
		p.fails--
		return 0, &schemas.Error{Code: schemas.CodeUnavailable}
	}
	p.sent = append(p.sent, e.ID())
	return uint64(len(p.sent)), nil
}

func (p *gatedLog) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

func adviceFor(job string, cause uint64) *schemas.Advice {
	a := &schemas.Advice{CauseSequence: cause}
	a.JobID, a.EventID = job, schemas.AdviceID(job, cause)
	return a
}

func riskFor(job string, cause uint64) *schemas.Risk {
	r := &schemas.Risk{CauseSequence: cause}
	r.JobID, r.EventID = job, schemas.RiskID(job, cause)
	return r
}

func newTestOutbox(p *gatedLog) *outbox {
	return newOutbox(p.publish, newMetrics(nil), slog.New(slog.DiscardHandler))
}

// While publishing blocks, the newest advice of each job is kept; a closed outbox sends it before
// it ends.
func TestOutbox_KeepsTheNewestAdviceOfEachJob(t *testing.T) {
	p := &gatedLog{gate: make(chan struct{})}
	close(p.gate)
	o := newTestOutbox(p)
	for cause := range uint64(5) {
		o.addAdvice(adviceFor("a", cause))
		o.addAdvice(adviceFor("b", 10+cause))
	}
	o.close()
	o.run(t.Context())
	want := []string{schemas.AdviceID("a", 4), schemas.AdviceID("b", 14)}
	if got := slices.Sorted(slices.Values(p.all())); !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

// While an advice is being published, the next advice of the same job waits, so that the log has
// them in order.
func TestOutbox_SendsTheAdviceOfAJobInOrder(t *testing.T) {
	p := &gatedLog{gate: make(chan struct{})}
	o := newTestOutbox(p)
	o.addAdvice(adviceFor("a", 1))
	next := func(want schemas.Event) {
		t.Helper()
		if _, e := o.next(); e == nil || e.ID() != want.ID() {
			t.Fatalf("next message %v, want %s", e, want.ID())
		}
	}
	next(adviceFor("a", 1))
	o.addAdvice(adviceFor("a", 2))
	o.addAdvice(adviceFor("b", 3))
	next(adviceFor("b", 3)) // while advice 1 of a is being sent
	o.sent("a", false)
	next(adviceFor("a", 2))
}

// All warnings of a job are sent in order, also if NATS is unavailable at first.
func TestOutbox_SendsEveryWarningInOrder(t *testing.T) {
	p := &gatedLog{gate: make(chan struct{}), fails: 2}
	close(p.gate)
	o := newTestOutbox(p)
	want := map[string][]string{}
	for cause := range uint64(100) {
		job := fmt.Sprint("job-", cause%3)
		o.expectRisk()
		o.addRisk(riskFor(job, cause))
		o.addAdvice(adviceFor(job, cause))
		want[job] = append(want[job], schemas.RiskID(job, cause))
	}
	if n := o.unsentRisks(); n != 100 {
		t.Errorf("got %d unsent warnings, want 100", n)
	}
	o.close()
	o.run(t.Context())
	for job, all := range want {
		got := slices.DeleteFunc(p.all(), func(id string) bool { return !slices.Contains(all, id) })
		if !slices.Equal(got, all) || o.unsentRisks() != 0 {
			t.Errorf("warnings of %s: sent %v, want %v", job, got, all)
		}
	}
}

// Beyond the bound the outbox drops advice.
func TestOutbox_DropsAdviceBeyondTheBound(t *testing.T) {
	o := newTestOutbox(&gatedLog{gate: make(chan struct{})})
	for n := range uint64(maxUnsent + 1000) {
		o.addAdvice(adviceFor(fmt.Sprint("job-", n), n))
	}
	if len(o.jobs) != maxUnsent || len(o.order) != maxUnsent {
		t.Errorf("got %d jobs, %d in the order; want %d each", len(o.jobs), len(o.order), maxUnsent)
	}
}

// If too many warnings are unsent, addRisk blocks until the outbox ends.
func TestOutbox_BlocksWhileTooManyWarningsAreUnsent(t *testing.T) {
	p := &gatedLog{gate: make(chan struct{})}
	o := newTestOutbox(p)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { o.run(ctx) })
	added := make(chan uint64, maxUnsent+2)
	all.Go(func() {
		for n := range uint64(maxUnsent + 2) {
			o.addRisk(riskFor("a", n))
			added <- n
		}
	})
	for range maxUnsent {
		<-added
	}
	select {
	case n := <-added:
		t.Errorf("warning %d was added to a full outbox, want addRisk to block", n)
	default:
	}
	p.gate <- struct{}{} // one warning is published, so that one more can be added
	if n := <-added; n != maxUnsent {
		t.Errorf("warning %d was added next, want %d", n, maxUnsent)
	}
	cancel()
	all.Wait()
}

// A cancelled context ends publishes that get no ack.
func TestOutbox_EndsWithItsContext(t *testing.T) {
	o := newTestOutbox(&gatedLog{gate: make(chan struct{})})
	o.addAdvice(adviceFor("a", 1))
	o.expectRisk()
	o.addRisk(riskFor("a", 1))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); o.run(ctx) }()
	cancel()
	<-ended
	if o.unsentRisks() != 1 {
		t.Error("a warning counts as sent, but was not published")
	}
}

// A stopping advisor publishes the unsent advice first.
func TestAdvisor_PublishesUnsentAdviceBeforeItStops(t *testing.T) {
	b := bustest.New(t)
	a, stop := startWith(t, b, Options{}, nil)
	for n := range uint64(200) {
		advice := adviceFor(fmt.Sprint("job-", n), 1)
		advice.At, advice.Decision = time.Now().UTC(), schemas.Exploring
		advice.Chosen = &schemas.Alternative{BatchSize: 1, CPUs: 1, Epochs: 1}
		a.outbox.addAdvice(advice)
	}
	stop()
	last := schemas.JobSubject("job-199", schemas.EventAdvice)
	records, err := b.Last(within(t), schemas.StreamAdvice, last)
	if err != nil || len(records) != 1 || a.outbox.unsentRisks() != 0 {
		t.Errorf("last advice in the log: got %+v, error %v; want one", records, err)
	}
}
