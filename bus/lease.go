package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"courier/schemas"
)

// Hold waits for a lease and calls work while this process holds it. It returns the error of
// work. If the lease is lost, it waits for the lease and calls work again. It returns nil if
// ctx ends while it waits.
//
// The context of work ends with ctx, or when the lease is lost. Until work returns, Hold renews
// the lease three times per ttl, also after the end of ctx, so that work can finish its batch.
// Then it gives the lease back. A lease does not prove exclusion: writes that must not happen
// twice need a compare-and-set as well.
func (b *Bus) Hold(
	ctx context.Context, name string, ttl time.Duration, work func(ctx context.Context) error,
) error {
	l := &lease{bus: b, name: name, ttl: ttl, holder: rand.Text()}
	for {
		if err := l.acquire(ctx); err != nil {
			return nil // ctx has ended
		}

		lost, err := l.holdWhile(ctx, work)
		if lost == nil {
			l.giveBack(ctx)
			return err
		}
		b.log.Warn("lease lost, waiting for it", "lease", name, "error", lost)
	}
}

// IsHeld reports whether a process holds a lease. A process that has crashed counts as the holder until
// another one acquires the lease.
func (b *Bus) IsHeld(ctx context.Context, name string) (bool, error) {
	l := &lease{bus: b, name: name}
	held, _, err := l.read(ctx)
	return held.Holder != "", err
}

// holdWhile calls work and renews the lease until work returns. It returns the error of work and,
// if the loss of the lease has ended work, the reason of the loss.
func (l *lease) holdWhile(ctx context.Context, work func(ctx context.Context) error) (lost, err error) {
	held, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	done := make(chan error, 1)
	renewing, stop := context.WithCancel(held)
	defer stop()
	go func() {
		err := l.renew(renewing)
		if err != nil {
			end()
		}
		done <- err
	}()

	working, cancel := context.WithCancel(context.WithValue(ctx, heldKey{}, held))
	defer cancel()
	defer context.AfterFunc(held, cancel)()
	err = work(working)
	ended := working.Err() != nil && ctx.Err() == nil
	stop()
	if lost = <-done; !ended {
		lost = nil // work has finished, or ctx has ended
	}
	return lost, err
}

// errLeaseLost cancels the current batch: another process may write it now.
var errLeaseLost = errors.New("the lease is lost")

type heldKey struct{}

// afterLoss calls f when the lease of ctx is lost, but never if ctx does not come from Hold.
func afterLoss(ctx context.Context, f func()) (stop func() bool) {
	held, ok := ctx.Value(heldKey{}).(context.Context)
	if !ok {
		return func() bool { return true }
	}
	return context.AfterFunc(held, f)
}

type lease struct {
	bus      *Bus
	name     string
	ttl      time.Duration
	holder   string
	revision uint64
	sentAt   time.Time // of the last successful write: the lease holds for ttl from then
}

// acquire waits until the lease is free and acquires it. An error means that ctx ended.
func (l *lease) acquire(ctx context.Context) error {
	var seen uint64
	var seenAt time.Time // by the monotonic clock: the clocks of other machines may differ
	for {
		held, revision, err := l.read(ctx)
		heldTTL := time.Duration(held.TTLSeconds * float64(time.Second))
		expired := revision == seen && time.Since(seenAt) >= max(l.ttl, heldTTL)
		switch {
		case err != nil:
			l.bus.log.Debug("lease cannot be read yet", "lease", l.name, "error", err)
		case held.Holder == "" || held.Holder == l.holder || expired:
			if err := l.write(ctx, l.holder, revision); err == nil {
				return nil
			}
		case revision != seen:
			seen, seenAt = revision, time.Now()
		}
		if err := Sleep(ctx, l.ttl/10); err != nil {
			return err
		}
	}
}

// renew renews the lease until ctx ends. If the lease is lost, it returns the reason.
func (l *lease) renew(ctx context.Context) error {
	tick := time.NewTicker(l.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		attempt, cancel := context.WithTimeout(ctx, l.ttl/3)
		err := l.write(attempt, l.holder, l.revision)
		cancel()
		switch {
		case err == nil:
		case errors.Is(err, schemas.ErrConflict):
			// The answer to an earlier successful write may have been lost.
			held, revision, readErr := l.read(ctx)
			if readErr == nil && held.Holder == l.holder {
				l.revision = revision
				continue
			}
			return err
		case ctx.Err() == nil && time.Since(l.sentAt) >= 2*l.ttl/3:
			return err // another process may take it soon
		}
	}
}

func (l *lease) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.ttl/3)
	defer cancel()
	if err := l.write(ctx, "", l.revision); err != nil {
		l.bus.log.Debug("lease not given back, it will expire", "lease", l.name, "error", err)
	}
}

func (l *lease) read(ctx context.Context) (held schemas.Lease, revision uint64, err error) {
	revision, err = l.bus.readKey(ctx, schemas.BucketLeases, l.name, &held)
	return held, revision, err
}

// write sets the holder. The error matches schemas.ErrConflict if the key has another revision.
func (l *lease) write(ctx context.Context, holder string, revision uint64) error {
	sent := time.Now()
	value := schemas.Lease{Holder: holder, TTLSeconds: l.ttl.Seconds()}
	next, err := l.bus.writeKey(ctx, schemas.BucketLeases, l.name, value, revision)
	if err != nil {
		return err
	}
	l.revision, l.sentAt = next, sent
	return nil
}
