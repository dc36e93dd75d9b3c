package runner

import (
	"context"
	"errors"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

func TestJob_SendsHeartbeats(t *testing.T) {
	b := bustest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	connecting := make(chan struct{})
	dial := func(context.Context) (*bus.Bus, error) { <-connecting; return b, nil }
	c := connect(ctx, dial, t.TempDir(), quiet)
	j := &job{conn: c, result: Result{JobID: "a", Run: 3}}
	j.sendHeartbeat(ctx) // it is dropped, because the bus is not connected
	close(connecting)
	if _, err := c.await(ctx); err != nil {
		t.Fatal(err)
	}
	received := make(chan schemas.Event, 16)
	listening := make(chan error, 1)
	go func() {
		listening <- b.Listen(ctx, schemas.JobSubject("a", schemas.EventAlive), func(e schemas.Event) {
			select {
			case received <- e:
			default:
			}
		})
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case e := <-received:
			if e.Validate() != nil || e.(*schemas.Alive).Run != 3 || e.ID() == "a/3/alive/1" {
				t.Errorf("received %+v, want the second or a later heartbeat of run 3", e)
			}
			done = true
		case <-tick.C:
			j.sendHeartbeat(ctx) // until the listener is subscribed
		case <-ctx.Done():
			t.Fatal("no heartbeat was received")
		}
	}
	cancel()
	if err := <-listening; err != nil {
		t.Error(err)
	}
	c.tasks.Wait()
}

func TestConnection_ReturnsTheReasonOfAFailure(t *testing.T) {
	broken := errors.New("no such address")
	fail := func(context.Context) (*bus.Bus, error) { return nil, broken }
	c := connect(t.Context(), fail, t.TempDir(), quiet)
	if _, err := c.await(t.Context()); !errors.Is(err, broken) {
		t.Errorf("await() = %v, want %v", err, broken)
	}
	c.subscribe(t.Context(), "a") // returns, because there is no bus
	c.tasks.Wait()

	ctx, cancel := context.WithCancel(t.Context())
	hang := func(ctx context.Context) (*bus.Bus, error) { <-ctx.Done(); return nil, ctx.Err() }
	c = connect(ctx, hang, t.TempDir(), quiet)
	asking, stop := context.WithTimeout(ctx, time.Millisecond)
	defer stop()
	if _, err := c.await(asking); !errors.Is(err, schemas.ErrUnavailable) {
		t.Errorf("await() = %v, want unavailable", err)
	}
	cancel()
	c.tasks.Wait()

	if c = connect(t.Context(), nil, t.TempDir(), quiet); c.err == nil {
		t.Error("connect() without a dial function succeeded")
	}
}

// A job that waited for its loans without heartbeats has contact when NATS has its start.
func TestJob_HasContactByItsStart(t *testing.T) {
	b := bustest.New(t)
	dial := func(context.Context) (*bus.Bus, error) { return b, nil }
	setting := schemas.Setting{Model: "m", BatchSize: 8, CPUs: 1, Nodes: []string{"n"}}
	j := &job{conn: connect(t.Context(), dial, t.TempDir(), quiet), result: Result{JobID: "a", Run: 1}}
	if _, err := j.conn.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	j.contact.Arrived(begin.Add(-2 * schemas.Silence))
	e := &schemas.Started{JobStamp: j.stamp(schemas.StartedID("a", 1)), Setting: setting, NodeCores: 2}
	if isPublished, err := j.claim(t.Context(), e); !isPublished || err != nil {
		t.Fatalf("claim = %v, %v, want a start that is published", isPublished, err)
	}
	if j.contact.lastAt.Before(begin) {
		t.Errorf("last contact at %s, want since the start of the job at %s", j.contact.lastAt, begin)
	}
}
