package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Feed reads a stream for several ConsumeBatch of one process, each of which accepts a part of the
// messages: the writers of the shards of a cluster. Consumers with nearly the same position share a
// reader, so that the server delivers each message once to the process. A consumer that is far
// behind, or slower than the others, has a reader of its own until it has caught up.
//
// Nothing is acknowledged: a reader starts after the position of its consumers, which their intents
// record. A message that was lost on its way is read again, at the latest when gather finds a gap.
type Feed struct {
	bus    *Bus
	stream string

	mu      sync.Mutex
	readers []*feedReader
	running sync.WaitGroup // goroutines of readers
}

const (
	feedChunk    = 512              // messages that are passed on together
	feedBytes    = 256 << 10        // after which a chunk ends
	feedBuffer   = 256              // chunks that a consumer may be behind its reader: more than a batch
	feedNear     = 50_000           // messages between two consumers that may share a reader
	feedPatience = 3 * time.Second  // for a full buffer, until its consumer gets its own reader
	feedSilence  = 5 * time.Second  // without messages, until a reader checks its position
	feedUnused   = 30 * time.Second // until the server deletes the consumer of a killed process
)

// NewFeed returns a feed of a stream. Close it after the calls of ConsumeBatch have returned.
func (b *Bus) NewFeed(stream string) *Feed { return &Feed{bus: b, stream: stream} }

// Close waits until all readers have ended.
func (f *Feed) Close() { f.running.Wait() }

// feedReader reads the messages for some taps with a consumer of its own. The feed's mutex guards it.
type feedReader struct {
	feed    *Feed
	taps    []*tap
	joining []*tap      // get the messages from the next start on
	last    logPosition // of the last message that all taps have
	restart context.CancelFunc
	stop    context.CancelFunc
}

// attach returns a source of the messages after a position.
func (f *Feed) attach(after logPosition) *tap {
	t := &tap{feed: f, chunks: make(chan []*nats.Msg, feedBuffer), closed: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.readers {
		if isNear(r.last, after) {
			r.joining = append(r.joining, t)
			if after.sequence < r.last.sequence {
				r.last = after
			}
			r.restart()
			return t
		}
	}
	f.start(t, after)
	return t
}

func isNear(a, b logPosition) bool {
	return max(a.sequence, b.sequence)-min(a.sequence, b.sequence) <= feedNear
}

// start starts a reader for a tap. The caller holds the mutex.
func (f *Feed) start(t *tap, after logPosition) {
	ctx, stop := context.WithCancel(context.Background()) // ends with the last tap
	r := &feedReader{feed: f, joining: []*tap{t}, last: after, restart: func() {}, stop: stop}
	f.readers = append(f.readers, r)
	f.running.Go(func() { r.run(ctx) })
}

// detach removes a tap, and ends its reader if it was the last one. The caller holds the mutex.
func (f *Feed) detach(t *tap) {
	is := func(other *tap) bool { return other == t }
	f.readers = slices.DeleteFunc(f.readers, func(r *feedReader) bool {
		r.taps, r.joining = slices.DeleteFunc(r.taps, is), slices.DeleteFunc(r.joining, is)
		if len(r.taps)+len(r.joining) > 0 {
			return false
		}
		r.stop()
		return true
	})
}

// run reads until the last tap is detached.
func (r *feedReader) run(ctx context.Context) {
	b := r.feed.bus
	for attempt := 0; ctx.Err() == nil; attempt++ {
		reading, restart := context.WithCancel(ctx)
		last, hasRead, err := r.read(reading, r.begin(restart))
		isRestart := reading.Err() != nil
		restart()
		if isRestart || hasRead {
			attempt = 0
		}
		if err == nil || isRestart {
			continue
		}
		b.log.Warn("a stream is read again after a failure",
			"stream", r.feed.stream, "after", last.sequence, "error", err)
		_ = sleep(ctx, retryAfter(min(attempt, 1))) // ctx is checked above
	}
}

// begin admits the joining taps and returns the position to read from.
func (r *feedReader) begin(restart context.CancelFunc) logPosition {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	r.taps, r.joining = append(r.taps, r.joining...), nil
	r.restart = restart
	return r.last
}

// read passes on the messages after a position, until ctx ends or a message was lost.
func (r *feedReader) read(
	ctx context.Context, last logPosition,
) (_ logPosition, hasRead bool, err error) {
	consumer, err := r.feed.create(ctx, last)
	if err != nil {
		return last, false, err
	}
	name := consumer.CachedInfo().Name
	defer r.feed.delete(name)
	p, err := r.feed.bus.newPuller(schemas.Durable{Stream: r.feed.stream, Name: name}, pullMessages)
	if err != nil {
		return last, false, err
	}
	defer p.close()

	for delivered := uint64(0); ; {
		chunk, err := nextChunk(ctx, p)
		if err != nil || ctx.Err() != nil {
			return last, hasRead, err
		}
		if len(chunk) == 0 {
			if err := r.feed.checkTail(ctx, consumer, last); err != nil {
				return last, hasRead, err
			}
			continue
		}
		first, end := chunk[0].Reply, chunk[len(chunk)-1].Reply
		if n := deliverySequence(first); n != delivered+1 || deliverySequence(end) != n+uint64(len(chunk))-1 {
			return last, hasRead, errMessageLost
		}
		delivered = deliverySequence(end)
		position, err := parseAckSubject(end)
		if err != nil {
			return last, hasRead, err
		}
		if !r.pass(ctx, chunk, position) {
			return last, hasRead, nil
		}
		last, hasRead = position, true
	}
}

// errMessageLost reports that the connection dropped messages of a consumer.
var errMessageLost = errors.New("a message was lost on its way")

// create creates a consumer of the messages after a position, or of all messages if the stream was
// reset since then. In that case gather detects the reset by the times of the messages.
func (f *Feed) create(ctx context.Context, after logPosition) (jetstream.Consumer, error) {
	config := jetstream.ConsumerConfig{
		AckPolicy:         jetstream.AckNonePolicy,
		DeliverPolicy:     jetstream.DeliverAllPolicy,
		InactiveThreshold: feedUnused,
		MemoryStorage:     true,
		Replicas:          1,
	}
	if after.sequence > 0 {
		stored, err := f.bus.nextStored(ctx, f.stream, after.sequence)
		if err != nil {
			return nil, err
		}
		isReset := stored == nil || stored.Sequence == after.sequence &&
			!after.at.IsZero() && !stored.Time.Equal(after.at)
		if !isReset {
			config.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
			config.OptStartSeq = after.sequence + 1
		}
	}
	consumer, err := f.bus.js.CreateConsumer(ctx, f.stream, config)
	if err != nil {
		return nil, fmt.Errorf("create a consumer of %s: %w", f.stream, unavailable(err))
	}
	return consumer, nil
}

// delete deletes a consumer, which the server would do later.
func (f *Feed) delete(consumer string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = f.bus.js.DeleteConsumer(ctx, f.stream, consumer)
}

// checkTail returns an error if a consumer has delivered messages after the last one that arrived.
func (f *Feed) checkTail(ctx context.Context, c jetstream.Consumer, last logPosition) error {
	info, err := c.Info(ctx)
	if err != nil {
		return fmt.Errorf("inspect a consumer of %s: %w", f.stream, unavailable(err))
	}
	if info.NumPending == 0 && info.Delivered.Consumer > 0 && info.Delivered.Stream > last.sequence {
		return errMessageLost
	}
	return nil
}

// nextChunk waits for a message, and returns it with those that have arrived. It returns none after
// feedSilence.
func nextChunk(ctx context.Context, p *puller) ([]*nats.Msg, error) {
	var chunk []*nats.Msg
	deadline := time.Now().Add(feedSilence)
	for size := 0; len(chunk) < feedChunk && size < feedBytes; {
		msg, err := p.next(ctx, deadline)
		if msg == nil || err != nil {
			return chunk, err
		}
		if chunk == nil {
			chunk = make([]*nats.Msg, 0, feedChunk)
		}
		chunk = append(chunk, msg)
		size += len(msg.Data)
		deadline = time.Time{} // the others have arrived already
	}
	return chunk, nil
}

// deliverySequence returns the number of a message among those of its consumer, from the subject that
// acknowledges it: see parseAckSubject. It is 0 if there is none.
func deliverySequence(ack string) uint64 {
	tokens := strings.Split(ack, ".")
	at := 6
	if len(tokens) > 9 {
		at = 8
	}
	if len(tokens) <= at {
		return 0
	}
	n, _ := strconv.ParseUint(tokens[at], 10, 64)
	return n
}

// pass sends a chunk to all taps. It reports whether the reader may go on.
func (r *feedReader) pass(ctx context.Context, chunk []*nats.Msg, end logPosition) bool {
	r.feed.mu.Lock()
	taps := slices.Clone(r.taps)
	r.feed.mu.Unlock()
	keepsUp := true
	for _, t := range taps {
		keepsUp = keepsUp && len(t.chunks) == 0
		if !t.send(ctx, chunk, len(taps) > 1) {
			if ctx.Err() != nil {
				return false
			}
			r.split(t)
		}
	}

	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if ctx.Err() != nil {
		return false // a tap that needs earlier messages has joined
	}
	r.last = end
	if keepsUp {
		r.merge()
	}
	return true
}

// split gives a tap that is slower than the others a reader of its own.
func (r *feedReader) split(t *tap) {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if slices.Contains(r.taps, t) {
		r.feed.bus.log.Info("a slow consumer is separated from the others", "stream", r.feed.stream)
		r.taps = slices.DeleteFunc(r.taps, func(other *tap) bool { return other == t })
		r.feed.start(t, r.last)
	}
}

// merge takes over the taps of readers that are a little ahead. Their taps drop the messages that
// they have already. The caller holds the mutex.
func (r *feedReader) merge() {
	r.feed.readers = slices.DeleteFunc(r.feed.readers, func(other *feedReader) bool {
		if other == r || other.last.sequence < r.last.sequence || !isNear(r.last, other.last) {
			return false
		}
		r.taps = append(r.taps, append(other.taps, other.joining...)...)
		other.taps, other.joining = nil, nil
		other.stop()
		return true
	})
}

// tap is the source of one ConsumeBatch.
type tap struct {
	feed   *Feed
	chunks chan []*nats.Msg
	closed chan struct{}
	rest   []*nats.Msg // of the current chunk
}

// send passes a chunk on. If others wait, it gives up after feedPatience.
func (t *tap) send(ctx context.Context, chunk []*nats.Msg, othersWait bool) bool {
	select {
	case t.chunks <- chunk:
		return true
	default:
	}
	var expired <-chan time.Time
	if othersWait {
		timer := time.NewTimer(feedPatience)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case t.chunks <- chunk:
		return true
	case <-t.closed:
		return true // nobody needs it
	case <-ctx.Done():
	case <-expired:
	}
	return false
}

// next implements source.
func (t *tap) next(ctx context.Context, deadline time.Time) (*nats.Msg, error) {
	if ctx.Err() != nil || len(t.rest) == 0 && !t.await(ctx, deadline) {
		return nil, nil
	}
	msg := t.rest[0]
	t.rest = t.rest[1:]
	return msg, nil
}

// await reports whether a chunk arrives before the deadline and the end of ctx.
func (t *tap) await(ctx context.Context, deadline time.Time) bool {
	select {
	case t.rest = <-t.chunks:
		return true
	default:
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case t.rest = <-t.chunks:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// hasMore implements source. After the end of its context, a batch ends with what it has: the rest
// follows the recorded position.
func (t *tap) hasMore() bool { return false }

// close implements source.
func (t *tap) close() {
	close(t.closed)
	t.feed.mu.Lock()
	defer t.feed.mu.Unlock()
	t.feed.detach(t)
}
