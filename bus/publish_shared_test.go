package bus_test

import (
	"context"
	"fmt"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

// sampleOfOwnNode is a sample on its own subject.
func sampleOfOwnNode(number uint64) *schemas.Sample {
	s := sample(number)
	s.Node = fmt.Sprintf("node-%d", number)
	return s
}

// Only one event per subject is the first, regardless of the duplicate window.
func TestPublishOnce_StoresOneEventPerSubject(t *testing.T) {
	t.Parallel()
	b := bustest.NewServer(t).Connect(t)
	sequence, first, err := b.PublishOnce(within(t), sample(1))
	if err != nil || !first {
		t.Fatalf("PublishOnce = first %v, %v, want the first", first, err)
	}
	again, first, err := b.PublishOnce(within(t), sample(2))
	if err != nil || first || again != sequence {
		t.Errorf(
			"PublishOnce with another identity = %d, first %v, %v, want %d and not the first",
			again,
			first,
			err,
			sequence,
		)
	}
}

// Events that this Bus published are delivered as the same value. An event that another process
// stored under the same identity is decoded, even while this Bus keeps an event of that
// identity.
func TestFollow_ReusesPublishedEvents(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	mine, other := server.Connect(t), server.Connect(t)
	ctx, cancel := context.WithCancel(within(t))
	records, live, ended := make(chan bus.Record, 3), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- mine.Follow(ctx, bus.FollowOptions{
			Stream:         schemas.StreamNode,
			ReusePublished: true,
			CaughtUp:       func() { close(live) },
		}, func(r bus.Record) error {
			records <- r
			return nil
		})
	}()
	<-live
	theirs := sampleOfOwnNode(1)
	theirs.Cores = 16
	if _, first, err := other.PublishOnce(within(t), theirs); err != nil || !first {
		t.Fatalf("PublishOnce = first %v, %v, want the first", first, err)
	}
	late := sampleOfOwnNode(1) // the same identity with a different body
	if _, first, err := mine.PublishOnce(within(t), late); err != nil || first {
		t.Fatalf("PublishOnce of a duplicate = first %v, %v, want a duplicate", first, err)
	}
	own := sampleOfOwnNode(2)
	if _, first, err := mine.PublishOnce(within(t), own); err != nil || !first {
		t.Fatalf("PublishOnce = first %v, %v, want the first", first, err)
	}
	if r := <-records; r.Event.(*schemas.Sample).Cores != 16 || r.Sequence != 1 {
		t.Errorf("first record = %+v, want the sample of the other process with 16 cores", r.Event)
	}
	if r := <-records; r.Event != schemas.Event(own) || r.Sequence != 2 {
		t.Errorf("second record = %p, want the published value %p", r.Event, own)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, first, err := mine.PublishOnce(within(t), sampleOfOwnNode(3)); err != nil || !first {
		t.Errorf("PublishOnce without a follower = first %v, %v, want the first", first, err)
	}
}
