package bus_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// sharedLog is a log with samples of several nodes, which two consumers of one feed handle: one the
// even nodes and one the odd ones.
type sharedLog struct {
	t      *testing.T
	server *bustest.Server
	bus    *bus.Bus
	feed   *bus.Feed
	next   uint64 // number of the next sample

	mu      sync.Mutex
	handled map[string]int // calls of the handlers by event, without repeated batches
	changed chan struct{}  // of capacity 1
}

func newSharedLog(t *testing.T) *sharedLog {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	l := &sharedLog{
		t: t, server: server, bus: b, feed: b.NewFeed(schemas.StreamNode), next: 1,
		handled: map[string]int{}, changed: make(chan struct{}, 1),
	}
	t.Cleanup(l.feed.Close) // after the consumers, which are started later
	return l
}

// publish publishes samples of the nodes 0 to 3 in turn.
func (l *sharedLog) publish(count int) {
	l.t.Helper()
	var events []schemas.Event
	for range count {
		node := fmt.Sprintf("node-%d", l.next%4)
		events = append(events, &schemas.Sample{
			Stamp:           schemas.Stamp{EventID: schemas.SampleID(node, "boot", l.next), At: time.Now()},
			Node:            node,
			BootID:          "boot",
			Number:          l.next,
			IntervalSeconds: 2,
			Cores:           2,
		})
		l.next++
	}
	for _, e := range events {
		ctx := within(l.t)
		_, err := l.bus.Publish(ctx, e)
		for errors.Is(err, schemas.ErrUnavailable) && ctx.Err() == nil { // a server that just started
			_, err = l.bus.Publish(ctx, e)
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// consume starts the consumer of the even (0) or odd (1) nodes. before, if set, is called with each
// batch. The consumer ends with stop or the test.
func (l *sharedLog) consume(parity int, before func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- l.bus.ConsumeBatch(ctx, feedDurable(parity), bus.BatchOptions{
			MaxMessages: 100,
			MaxAge:      20 * time.Millisecond,
			Feed:        l.feed,
			Accept: func(subject string) bool {
				n, err := strconv.Atoi(strings.Split(subject, ".")[1][len("node-"):])
				return err == nil && n%2 == parity
			},
		}, func(ctx context.Context, batch bus.Batch) error {
			if before != nil {
				before(ctx)
			}
			l.count(&batch)
			return ctx.Err()
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			l.t.Error(err)
		}
	})
	l.t.Cleanup(stop)
	return stop
}

func feedDurable(parity int) schemas.Durable {
	d := nodeDurable()
	d.Name = fmt.Sprintf("%s-v1-s%d", d.Name, parity+1)
	return d
}

func (l *sharedLog) count(batch *bus.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range batch.Records {
		if id := r.Event.ID(); !batch.Redelivered || l.handled[id] == 0 {
			l.handled[id]++
		}
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// await waits until the handlers were called with a number of events.
func (l *sharedLog) await(events int) {
	l.t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		have := len(l.handled)
		l.mu.Unlock()
		if have >= events {
			return
		}
		select {
		case <-l.changed:
		case <-deadline:
			l.t.Fatalf("%d of %d events were handled", have, events)
		}
	}
}

// wantOnce fails the test unless each published event was handled once.
func (l *sharedLog) wantOnce() {
	l.t.Helper()
	l.await(int(l.next) - 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(l.handled)) {
		if n := l.handled[id]; n != 1 {
			l.t.Errorf("%s was handled %d times, want once", id, n)
		}
	}
}

// consumers returns the consumers of the stream at the server.
func (l *sharedLog) consumers() (names []string) {
	l.t.Helper()
	stream, err := outside(l.t, l.server.URL()).Stream(within(l.t), schemas.StreamNode)
	if err != nil {
		l.t.Fatal(err)
	}
	list := stream.ConsumerNames(within(l.t))
	for name := range list.Name() {
		names = append(names, name)
	}
	if list.Err() != nil {
		l.t.Fatal(list.Err())
	}
	return names
}

// awaitConsumers waits until the stream has a number of consumers, and publishes a sample of each
// node meanwhile.
func (l *sharedLog) awaitConsumers(want int) {
	l.t.Helper()
	for end := time.Now().Add(patience); len(l.consumers()) != want; {
		if time.Now().After(end) {
			l.t.Fatalf("the stream has the consumers %v, want %d", l.consumers(), want)
		}
		l.publish(4)
		l.await(int(l.next) - 1)
	}
}

// firstBatch consumes one batch of at most 100 accepted messages. If fail is set, it stays open.
func (l *sharedLog) firstBatch(parity int, accept func(string) bool, fail bool) (first bus.Batch) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(within(l.t))
	defer cancel()
	o := bus.BatchOptions{MaxMessages: 100, MaxAge: patience, Feed: l.feed, Accept: accept}
	err := l.bus.ConsumeBatch(ctx, feedDurable(parity), o,
		func(_ context.Context, batch bus.Batch) error {
			if first.Last == 0 {
				first = batch
			}
			cancel()
			if fail {
				return errors.New("a failure of the test")
			}
			return nil
		})
	if err != nil {
		l.t.Error(err)
	}
	return first
}

// A batch has as many accepted messages as without the others, and is the same when it is repeated.
// Its range is limited, also if no message is accepted.
func TestFeed_FillsBatchesWithAcceptedMessages(t *testing.T) {
	t.Parallel()
	l := newSharedLog(t)
	l.publish(400)
	even := func(subject string) bool { return strings.Contains("02", subject[len("node.node-"):][:1]) }
	none := func(string) bool { return false }
	for _, c := range []struct {
		name        string
		parity      int
		accept      func(string) bool
		fail        bool
		last        uint64
		records     int
		redelivered bool
	}{
		{"half of the messages", 0, even, true, 200, 100, false},
		{"half of the messages again", 0, even, false, 200, 100, true},
		{"no message", 1, none, false, 200, 0, false},
	} {
		got := l.firstBatch(c.parity, c.accept, c.fail)
		if got.First != 1 || got.Last != c.last || len(got.Records) != c.records ||
			got.Redelivered != c.redelivered {
			t.Errorf("%s: batch %d to %d with %d records, redelivered %v; want %+v",
				c.name, got.First, got.Last, len(got.Records), got.Redelivered, c)
		}
	}
}

func TestFeed_SharesOneConsumer(t *testing.T) {
	t.Parallel()
	l := newSharedLog(t)
	l.publish(1000)
	stop := []func(){l.consume(0, nil), l.consume(1, nil)}
	l.await(1000)
	l.awaitConsumers(1)
	l.wantOnce()

	stop[0]()
	stop[1]()
	l.feed.Close()
	if left := l.consumers(); len(left) > 0 {
		t.Errorf("the consumers %v are left", left)
	}
}

// A consumer that starts later, or again, gets the messages after its own position.
func TestFeed_ContinuesWhereEachConsumerEnded(t *testing.T) {
	t.Parallel()
	l := newSharedLog(t)
	stop := l.consume(0, nil)
	l.publish(1000)
	l.await(500)
	l.consume(1, nil)
	l.await(1000)
	stop()
	l.publish(1000)
	l.await(1500)
	l.consume(0, nil)
	l.wantOnce()
	l.awaitConsumers(1)
}

// A consumer that does not handle its messages gets a reader of its own, so that the other one goes
// on. It shares the reader again when it has caught up.
func TestFeed_ASlowConsumerDoesNotDelayTheOthers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long with the race detector; its goroutines meet in shorter tests, too")
	}
	l := newSharedLog(t)
	hold := make(chan struct{})
	l.consume(0, func(ctx context.Context) {
		select {
		case <-hold:
		case <-ctx.Done():
		}
	})
	l.consume(1, nil)
	for l.next < 60_000 { // more than the buffers of a consumer
		l.publish(2000)
	}
	l.await(int(l.next) / 2)
	close(hold)
	l.await(int(l.next) - 1)
	l.awaitConsumers(1)
	l.wantOnce()
}

func TestFeed_SurvivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	l := newSharedLog(t)
	l.consume(0, nil)
	l.consume(1, nil)
	for range 3 {
		l.publish(500)
		l.server.Stop()
		l.server.Restart(t)
		l.publish(500)
		l.await(int(l.next) - 1)
	}
	l.wantOnce()
}

// The server loses the consumer, and messages that it has sent do not arrive.
func TestFeed_SurvivesTheLossOfItsConsumer(t *testing.T) {
	t.Parallel()
	l := newSharedLog(t)
	l.consume(0, nil)
	l.consume(1, nil)
	js := outside(t, l.server.URL())
	for range 5 {
		l.publish(500)
		for _, name := range l.consumers() {
			err := js.DeleteConsumer(within(t), schemas.StreamNode, name)
			if err != nil && !strings.Contains(err.Error(), "not found") {
				t.Fatal(err)
			}
		}
		l.publish(500)
	}
	l.wantOnce()
}

// Another client takes messages of the consumer, which are not delivered again.
func TestFeed_ReadsTakenMessagesAgain(t *testing.T) {
	t.Parallel()
	l := newSharedLog(t)
	l.consume(0, nil)
	l.consume(1, nil)
	l.publish(100)
	l.await(100)
	l.awaitConsumers(1)
	c, err := outside(t, l.server.URL()).Consumer(within(t), schemas.StreamNode, l.consumers()[0])
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() {
		messages, err := c.Fetch(200, jetstream.FetchMaxWait(patience/4))
		if err == nil {
			for range messages.Messages() {
			}
		}
		taken <- err
	}()
	l.publish(1000)
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	l.wantOnce()
}

// The stream is created again, and assigns sequences that it assigned before.
func TestFeed_AfterAStreamReset(t *testing.T) {
	t.Parallel()
	for _, published := range []int{20, 200} { // fewer and more messages than before
		t.Run(strconv.Itoa(published), func(t *testing.T) {
			l := newSharedLog(t)
			stop := []func(){l.consume(0, nil), l.consume(1, nil)}
			l.publish(100)
			l.await(100)
			stop[0]()
			stop[1]()

			if err := outside(t, l.server.URL()).DeleteStream(within(t), schemas.StreamNode); err != nil {
				t.Fatal(err)
			}
			if err := l.bus.Prepare(within(t)); err != nil {
				t.Fatal(err)
			}
			l.publish(published)
			l.consume(0, nil)
			l.consume(1, nil)
			l.wantOnce()
		})
	}
}

// A writer of a shard has no durable: its lease shows that it runs.
func TestHasReader_KnowsTheHolderOfALease(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	d := feedDurable(0)
	wantReader := func(want bool) {
		t.Helper()
		got, err := b.HasReader(within(t), d)
		if err != nil || got != want {
			t.Errorf("HasReader() = %v, %v, want %v", got, err, want)
		}
	}
	wantReader(false)

	ctx, release := context.WithCancel(t.Context())
	held, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- b.Hold(ctx, d.Name, 300*time.Millisecond, func(ctx context.Context) error {
			close(held)
			<-ctx.Done()
			return nil
		})
	}()
	<-held
	wantReader(true)
	release()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	wantReader(false)
}
