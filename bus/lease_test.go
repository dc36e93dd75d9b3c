package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// testTTL is long enough that a loaded machine renews the lease in time: it is lost after
// two thirds of the TTL without a renewal.
const testTTL = 6 * time.Second

func TestHold_OneAtATime(t *testing.T) {
	t.Parallel() // it mostly waits
	server := bustest.NewServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var at, turns atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		b := server.Connect(t)
		all.Go(func() {
			err := b.Hold(ctx, "test", testTTL, func(context.Context) error {
				if at.Add(1) > 1 {
					t.Error("two processes hold the lease at the same time")
				}
				defer at.Add(-1)
				turns.Add(1)
				if isHeld, err := b.IsHeld(ctx, "test"); !isHeld || err != nil {
					t.Errorf("IsHeld = %t, %v within Hold", isHeld, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if turns.Load() != 4 {
		t.Errorf("got the lease in %d of 4 processes, want all", turns.Load())
	}
	for _, name := range []string{"test", "never"} {
		if isHeld, err := server.Connect(t).IsHeld(ctx, name); isHeld || err != nil {
			t.Errorf("IsHeld(%s) = %t, %v, want a free lease", name, isHeld, err)
		}
	}
}

func TestHold_KeepsTheLeaseForLong(t *testing.T) {
	t.Parallel() // it mostly waits
	server := bustest.NewServer(t)
	first, second := server.Connect(t), server.Connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	revisions, err := outside(t, server.URL()).KeyValue(ctx, schemas.BucketLeases)
	must(t, err)
	watcher, err := revisions.Watch(ctx, "test", jetstream.UpdatesOnly())
	must(t, err)
	holds, taken := make(chan struct{}), make(chan struct{})
	renewed := make(chan struct{}) // closed after more than a TTL
	go func() {
		for range 1 + 5 { // the first write, and five renewals at a third of the TTL each
			<-watcher.Updates()
		}
		close(renewed)
	}()
	var all sync.WaitGroup
	all.Go(func() {
		_ = first.Hold(ctx, "test", testTTL, func(working context.Context) error {
			close(holds)
			select {
			case <-taken:
				t.Error("another process took the lease although its holder renews it")
			case <-working.Done():
				t.Error("the holder lost the lease although it renews it")
			case <-renewed:
			}
			return nil
		})
	})
	<-holds
	all.Go(func() {
		_ = second.Hold(ctx, "test", testTTL, func(context.Context) error { close(taken); return nil })
	})
	all.Wait()
	select {
	case <-taken:
	default:
		t.Error("the lease was not given back")
	}
}

// A service that stops finishes its batch. Until then no other process gets the lease.
func TestHold_KeepsTheLeaseUntilWorkReturns(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b := server.Connect(t)
	nc, err := nats.Connect(server.URL())
	must(t, err)
	defer nc.Close()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ending, end := context.WithCancel(ctx)
	err = b.Hold(ending, "test", testTTL, func(working context.Context) error {
		end()
		<-working.Done()
		renewals, err := nc.SubscribeSync("$KV." + schemas.BucketLeases + ".test")
		if err != nil {
			return err
		}
		for range 2 { // the first renewal may have begun before
			if _, err := renewals.NextMsgWithContext(ctx); err != nil {
				return fmt.Errorf("wait for the lease to be renewed: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHold_PassesOnWhenTheHolderIsCutOff(t *testing.T) {
	t.Parallel() // it mostly waits
	server := bustest.NewServer(t)
	first, second := server.Connect(t), server.Connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	holds := make(chan struct{})
	failed := errors.New("failed")
	var all sync.WaitGroup
	all.Go(func() {
		_ = first.Hold(ctx, "test", testTTL, func(working context.Context) error {
			close(holds)
			<-working.Done()
			return failed
		})
	})
	<-holds
	must(t, first.Close(ctx))
	work := func(context.Context) error { return failed }
	if err := second.Hold(ctx, "test", testTTL, work); !errors.Is(err, failed) {
		t.Errorf("Hold = %v, want the error of work", err)
	}
	cancel()
	all.Wait()
}
