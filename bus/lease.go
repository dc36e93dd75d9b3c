package bus

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Hold calls work while this process alone holds a lease, again and again until
// ctx ends or work returns before its context ends: then it returns work's error.
// Other processes wait meanwhile.
//
// The context of work ends with ctx, or when the lease is lost. The lease is renewed
// three times per ttl until work returns, also after its context has ended: work may
// still have a batch to finish. Then the lease is given back. A lease is no proof of
// exclusion: what must not happen twice is written by compare-and-set all the same.
func (b *Bus) Hold(ctx context.Context, name string, ttl time.Duration, work func(ctx context.Context) error) error {
	l := &lease{bus: b, name: name, ttl: ttl, holder: rand.Text()}
	for {
		if err := l.take(ctx); err != nil {
			return nil // ctx has ended
		}
		lost, err := l.hold(ctx, work)
		if lost == nil {
			l.giveBack(ctx)
			return err
		}
		b.log.Warn("lease lost, taken again when it is free", "lease", name, "error", lost)
	}
}

// hold calls work and renews the lease until work returns. It returns the error of work,
// and why the lease was lost if that is what ended work.
func (l *lease) hold(ctx context.Context, work func(ctx context.Context) error) (lost, err error) {
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
		lost = nil // work has done what it had to do, or ctx ended
	}
	return lost, err
}

// errLeaseLost is why a batch in hand is given up: another process may write it now.
var errLeaseLost = errors.New("the lease is lost")

// heldKey is the context key of the context that ends when the lease of a work is lost.
type heldKey struct{}

// afterLoss calls f when the lease is lost under which ctx was made, if there is one.
// Unlike ctx, a lease outlives the end of its process's service.
func afterLoss(ctx context.Context, f func()) (stop func() bool) {
	held, ok := ctx.Value(heldKey{}).(context.Context)
	if !ok {
		return func() bool { return true }
	}
	return context.AfterFunc(held, f)
}

// lease is one process's view of a key.
type lease struct {
	bus      *Bus
	name     string
	ttl      time.Duration
	holder   string
	revision uint64
	sentAt   time.Time // when the last write that succeeded was sent: its ttl counts from then or later
}

// take waits until the lease is free and takes it. An error means that ctx ended.
func (l *lease) take(ctx context.Context) error {
	var seen uint64
	var since time.Time // this process's monotonic clock: clocks of others may differ
	for {
		held, revision, err := l.read(ctx)
		switch {
		case err != nil:
			l.bus.log.Debug("lease cannot be read yet", "lease", l.name, "error", err)
		case held.Holder == "" || held.Holder == l.holder || revision == seen && time.Since(since) >= max(l.ttl, time.Duration(held.TTLSeconds*float64(time.Second))):
			if err := l.write(ctx, l.holder, revision); err == nil {
				return nil
			}
		case revision != seen:
			seen, since = revision, time.Now()
		}
		if err := wait(ctx, l.ttl/10); err != nil {
			return err
		}
	}
}

// renew keeps the lease until ctx ends (nil), or it is lost.
func (l *lease) renew(ctx context.Context) error {
	tick := time.NewTicker(l.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		trying, cancel := context.WithTimeout(ctx, l.ttl/3)
		err := l.write(trying, l.holder, l.revision)
		cancel()
		switch {
		case err == nil:
		case errors.Is(err, schemas.ErrConflict):
			// An earlier write may have arrived although its answer did not.
			if held, revision, again := l.read(ctx); again == nil && held.Holder == l.holder {
				l.revision = revision
				continue
			}
			return err
		case ctx.Err() == nil && time.Since(l.sentAt) >= 2*l.ttl/3:
			return err // somebody may take it soon
		}
	}
}

// giveBack frees the lease, so that nobody has to wait for its end.
func (l *lease) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.ttl/3)
	defer cancel()
	if err := l.write(ctx, "", l.revision); err != nil {
		l.bus.log.Debug("lease not given back, it will run out", "lease", l.name, "error", err)
	}
}

func (l *lease) read(ctx context.Context) (held schemas.Lease, revision uint64, err error) {
	kv, err := l.bus.js.KeyValue(ctx, schemas.BucketLeases)
	if err != nil {
		return held, 0, fmt.Errorf("open bucket %s: %w", schemas.BucketLeases, unavailable(err))
	}
	entry, err := kv.Get(ctx, l.name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return held, 0, nil
	}
	if err != nil {
		return held, 0, fmt.Errorf("read lease %s: %w", l.name, unavailable(err))
	}
	if err := json.Unmarshal(entry.Value(), &held); err != nil {
		return held, 0, fmt.Errorf("read lease %s: %w", l.name, err)
	}
	return held, entry.Revision(), nil
}

// write makes holder the holder if the key still has the revision.
func (l *lease) write(ctx context.Context, holder string, revision uint64) error {
	kv, err := l.bus.js.KeyValue(ctx, schemas.BucketLeases)
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", schemas.BucketLeases, unavailable(err))
	}
	data, err := json.Marshal(schemas.Lease{Holder: holder, TTLSeconds: l.ttl.Seconds()})
	if err != nil {
		return err
	}
	sent := time.Now()
	next, err := kv.Update(ctx, l.name, data, revision)
	if taken(err) {
		return &schemas.Error{Code: schemas.CodeConflict, Message: "the lease " + l.name + " is another's"}
	}
	if err != nil {
		return fmt.Errorf("write lease %s: %w", l.name, unavailable(err))
	}
	l.revision, l.sentAt = next, sent
	return nil
}
