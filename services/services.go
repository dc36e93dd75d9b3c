package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Grace is the maximum time for all parts together to stop.
const Grace = 10 * time.Second

// Signals returns a context that ends at the first SIGINT or SIGTERM; a second
// one ends the process at once with status 130.
func Signals(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		<-signals
		os.Exit(130)
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// Part is a component of a process. Run works until its context ends.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Group is a set of parts that stop together.
type Group []Part

// Run starts the groups and works until ctx ends or a part returns. Then it stops the groups in
// reverse order and waits for each. It returns the first error of a part. A part that returns
// before its context ends counts as an error. All groups together have the time grace to stop; 0: Grace.
func Run(ctx context.Context, log *slog.Logger, grace time.Duration, groups ...Group) error {
	first := make(chan error, 1)
	report := func(err error) {
		select {
		case first <- err:
		default:
		}
	}
	var all []*running
	for _, g := range groups {
		// The group is stopped in reverse order, not when ctx ends.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r := &running{cancel: cancel}
		for _, p := range g {
			r.parts = append(r.parts, p.Name)
			r.wait.Go(func() {
				err := p.Run(own)
				switch {
				case err != nil && !errors.Is(err, context.Canceled):
					report(fmt.Errorf("%s: %w", p.Name, err))
				case own.Err() == nil:
					report(fmt.Errorf("%s stopped unexpectedly", p.Name))
				}
			})
		}
		all = append(all, r)
	}
	var failure error
	select {
	case <-ctx.Done():
		log.Debug("stopping")
	case failure = <-first:
	}
	grace = cmp.Or(grace, Grace)
	deadline := time.After(grace)
	for _, r := range slices.Backward(all) {
		if !r.stop(deadline) {
			return errors.Join(failure, fmt.Errorf("%v did not stop within %s", r.parts, grace))
		}
	}
	if failure == nil {
		select {
		case failure = <-first: // A part failed while it stopped.
		default:
		}
	}
	return failure
}

// running is a group that was started.
type running struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
	parts  []string
}

// stop ends the context of the group and waits for its parts. It reports whether they ended by the
// deadline.
func (r *running) stop(deadline <-chan time.Time) bool {
	r.cancel()
	done := make(chan struct{})
	go func() {
		r.wait.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-deadline:
		return false
	}
}
