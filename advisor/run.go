package advisor

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Run works until ctx ends. It first loads the newest snapshot of the state, and stores a snapshot
// at the end. These are its parts:
//
//	JOB stream ──► apply ─► re-predict ──► outbox ──► job.<id>.advice, job.<id>.risk
//	NODE stream ─► apply       ▲
//	job.*.alive ─► heartbeat   │ lock
//	clock ───────► silent? ────┤──► job.<id>.lost
//	champions ───► load, check ┘
//	job.submit, … (after the replay) ──► Decide ──► reply
//	queue ──► start next (after every event) ──► job.<id>.admitted, job.<id>.advice
//	clock ──► snapshots of the state, comparison with the server's clock
func (a *Advisor) Run(ctx context.Context) error {
	if a.restore(ctx) != nil {
		return nil // ctx has ended
	}
	sending, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		a.outbox.run(sending)
	}()
	err := a.runParts(ctx)

	a.outbox.close()
	if !a.bus.Connected() {
		abandon()
	}
	select {
	case <-sent:
	case <-time.After(drainTimeout):
		abandon()
		<-sent
	}
	a.lastSnapshot(ctx)
	return err
}

// runParts runs all parts until ctx ends or one of them fails.
func (a *Advisor) runParts(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{
		a.followJobs, a.followNodes, a.listenAlive, a.watchSilence, a.followRegressors, a.serve,
		a.keepQueue, a.keepSnapshots, a.keepClock,
	} {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}
