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
// Others wait meanwhile. The context of work ends with the lease, which is renewed
// thrice per ttl and given back at the end; it says when to stop, and is no proof:
// what must not happen twice is written by compare-and-set all the same.
func (b *Bus) Hold(ctx context.Context, name string, ttl time.Duration, work func(ctx context.Context) error) error {
	l := &lease{bus: b, name: name, ttl: ttl, holder: rand.Text()}
	for {
		if err := l.take(ctx); err != nil {
			return nil // ctx has ended
		}
		working, cancel := context.WithCancelCause(ctx)
		renewed := make(chan error, 1)
		go func() {
			renewed <- l.renew(working)
			cancel(errLeaseLost)
		}()
		err := work(working)
		lost := working.Err() != nil && ctx.Err() == nil
		cancel(nil)
		if cause := <-renewed; lost && cause != nil {
			b.log.Warn("lease lost, taken again when it is free", "lease", name, "error", cause)
			continue
		}
		l.giveBack(ctx)
		return err
	}
}

// errLeaseLost is why the context of work ended, where another may do it now.
var errLeaseLost = errors.New("the lease is lost")

// lease is one process's view of a key.
type lease struct {
	bus      *Bus
	name     string
	ttl      time.Duration
	holder   string
	revision uint64
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
	last := time.Now()
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
			last = time.Now()
		case errors.Is(err, schemas.ErrConflict):
			// An earlier write may have arrived although its answer did not.
			if held, revision, again := l.read(ctx); again == nil && held.Holder == l.holder {
				l.revision, last = revision, time.Now()
				continue
			}
			return err
		case ctx.Err() == nil && time.Since(last) >= 2*l.ttl/3:
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
	next, err := kv.Update(ctx, l.name, data, revision)
	if taken(err) {
		return &schemas.Error{Code: schemas.CodeConflict, Message: "the lease " + l.name + " is another's"}
	}
	if err != nil {
		return fmt.Errorf("write lease %s: %w", l.name, unavailable(err))
	}
	l.revision = next
	return nil
}
