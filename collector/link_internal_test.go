package collector

import (
	"context"
	"errors"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

func TestJob_BeatsWhereTheBusIs(t *testing.T) {
	b := bustest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	connecting := make(chan struct{})
	l := connect(ctx, func(context.Context) (*bus.Bus, error) { <-connecting; return b, nil }, t.TempDir(), quiet)
	j := &job{link: l, result: JobResult{JobID: "a", Run: 3}}
	j.beat() // no bus yet: nobody hears it, nothing waits
	close(connecting)
	if _, err := l.await(ctx); err != nil {
		t.Fatal(err)
	}
	heard := make(chan schemas.Event, 16)
	listening := make(chan error, 1)
	go func() {
		listening <- b.Listen(ctx, schemas.JobSubject("a", schemas.EventAlive), func(e schemas.Event) {
			select {
			case heard <- e:
			default:
			}
		})
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case e := <-heard:
			if e.Validate() != nil || e.(*schemas.Alive).Run != 3 || e.ID() == "a/3/alive/1" {
				t.Errorf("heard %+v, want a valid heartbeat of run 3, and not the first", e)
			}
			done = true
		case <-tick.C:
			j.beat() // until the listener listens
		case <-ctx.Done():
			t.Fatal("no heartbeat was heard")
		}
	}
	cancel()
	if err := <-listening; err != nil {
		t.Error(err)
	}
	l.wait()
}

func TestLink_SaysWhyThereIsNoBus(t *testing.T) {
	broken := errors.New("no such address")
	l := connect(t.Context(), func(context.Context) (*bus.Bus, error) { return nil, broken }, t.TempDir(), quiet)
	if _, err := l.await(t.Context()); !errors.Is(err, broken) {
		t.Errorf("await() = %v, want %v", err, broken)
	}
	l.watch(t.Context(), "a") // ends by itself
	l.wait()

	ctx, cancel := context.WithCancel(t.Context())
	l = connect(ctx, func(ctx context.Context) (*bus.Bus, error) { <-ctx.Done(); return nil, ctx.Err() }, t.TempDir(), quiet)
	asking, stop := context.WithTimeout(ctx, time.Millisecond)
	defer stop()
	if _, err := l.await(asking); !errors.Is(err, schemas.ErrUnavailable) {
		t.Errorf("await() = %v, want unavailable", err)
	}
	cancel()
	l.wait()

	if l = connect(t.Context(), nil, t.TempDir(), quiet); l.err == nil {
		t.Error("connect() without a way = no error, want one")
	}
}
