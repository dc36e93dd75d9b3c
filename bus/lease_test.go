package bus_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus/bustest"
)

const testTTL = 300 * time.Millisecond

func TestHold_OneAtATime(t *testing.T) {
	server := bustest.NewServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var at, turns atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		b := server.Connect(t)
		all.Go(func() {
			err := b.Hold(ctx, "test", testTTL, func(context.Context) error {
				if at.Add(1) > 1 {
					t.Error("two hold the lease at once")
				}
				defer at.Add(-1)
				turns.Add(1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if turns.Load() != 4 {
		t.Errorf("%d of 4 had their turn", turns.Load())
	}
}

func TestHold_KeepsTheLeaseForLong(t *testing.T) {
	server := bustest.NewServer(t)
	first, second := server.Connect(t), server.Connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	holds, taken := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = first.Hold(ctx, "test", testTTL, func(working context.Context) error {
			close(holds)
			select {
			case <-taken:
				t.Error("taken from a holder that renews it")
			case <-working.Done():
				t.Error("lost by a holder that renews it")
			case <-time.After(4 * testTTL):
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
		t.Error("the lease was not handed on")
	}
}

func TestHold_IsTakenFromWhoIsCutOff(t *testing.T) {
	server := bustest.NewServer(t)
	first, second := server.Connect(t), server.Connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	holds := make(chan struct{})
	died := errors.New("died")
	var all sync.WaitGroup
	all.Go(func() {
		_ = first.Hold(ctx, "test", testTTL, func(working context.Context) error {
			close(holds)
			<-working.Done()
			return died
		})
	})
	<-holds
	if err := first.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := second.Hold(ctx, "test", testTTL, func(context.Context) error { return died }); !errors.Is(err, died) {
		t.Errorf("Hold = %v, want the work's own error", err)
	}
	cancel()
	all.Wait()
}
