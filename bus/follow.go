package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Follow delivers the events of a stream in order, one at a time: first the stored ones, then
// new ones as they arrive. It returns nil when ctx ends or Until is reached, and the error of
// the handler if that fails. A message that cannot be decoded becomes a dead letter. When the
// connection is back after an outage, Follow continues at its position.
func (b *Bus) Follow(ctx context.Context, o FollowOptions, handle func(Record) error) error {
	follow := b.follow
	if b.canListen(&o) {
		delivered := &recentIDs{}
		follow = func(ctx context.Context, o *FollowOptions, handle func(Record) error) error {
			return b.followLatest(ctx, o, delivered, handle)
		}
	}
	for {
		err := follow(ctx, &o, handle)
		if ctx.Err() != nil {
			return nil
		}
		if o.storedOnly && errors.Is(err, schemas.ErrForbidden) {
			return err // a service that follows goes on when its rights have changed
		}
		var h handlerError
		if errors.As(err, &h) {
			return fmt.Errorf("follow %s: %w", o.Stream, h.error)
		}
		if errors.Is(err, errEndReached) {
			return nil
		}
		if errors.Is(err, errLastDelivered) {
			continue
		}
		b.log.Debug("follow again", "stream", o.Stream, "from", o.From, "error", err)
		if Sleep(ctx, retryDelay) != nil {
			return nil
		}
	}
}

// Read delivers the stored messages of a stream as Follow does, and returns. The error is the
// handler's, or ctx's if that ended before. CaughtUp is not called.
func (b *Bus) Read(ctx context.Context, o FollowOptions, handle func(Record) error) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	complete := false
	o.storedOnly = true
	o.CaughtUp = func() { complete = true; stop() }
	if err := b.Follow(reading, o, handle); err != nil {
		return err
	}
	if !complete && (o.Until == 0 || ctx.Err() != nil) {
		return fmt.Errorf("read %s: %w", o.Stream, unavailable(ctx.Err()))
	}
	return nil
}

// errLastDelivered ends a consumer of the last message per subject, before one of every message.
var errLastDelivered = errors.New("the last message of each subject was delivered")

var errEndReached = errors.New("the last sequence was reached")

func (b *Bus) follow(ctx context.Context, o *FollowOptions, handle func(Record) error) error {
	consumer, err := b.orderedConsumer(ctx, o)
	if err != nil {
		return unavailable(err)
	}
	defer b.deleteConsumer(o.Stream, consumer)
	if consumer.CachedInfo().NumPending == 0 {
		o.caughtUp()
	}

	// Two missed heartbeats show that the server of the consumer is gone.
	it, err := consumer.Messages(jetstream.PullHeartbeat(pingInterval))
	if err != nil {
		return unavailable(err)
	}
	stop := context.AfterFunc(ctx, it.Stop)
	defer stop()
	defer it.Stop()
	for {
		msg, err := it.Next()
		if err != nil {
			return err
		}
		if err := b.handleMessage(ctx, o, msg, handle); err != nil {
			return err
		}
	}
}

// handleMessage passes the events of one message to handle, and moves o past the message. It
// returns errEndReached or errLastDelivered if the consumer has delivered all selected messages.
func (b *Bus) handleMessage(
	ctx context.Context, o *FollowOptions, msg jetstream.Msg, handle func(Record) error,
) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("read the position of a message in %s: %w", o.Stream, err)
	}
	sequence := meta.Sequence.Stream
	if o.Until > 0 && sequence > o.Until {
		return errEndReached
	}
	if !o.selects(msg.Subject()) {
		o.advance(meta)
		return nil
	}

	// The goroutine that waits for the ack of this message answers a request: it goes first.
	runtime.Gosched()
	if o.undecoded != nil {
		o.undecoded(storedMessage{msg.Subject(), sequence, msg.Data(), meta.Timestamp})
	} else if err := b.handleEvents(ctx, o.Stream, msg, meta, handle); err != nil {
		return err
	}

	if o.advance(meta) && len(o.Subjects) > 1 {
		return errLastDelivered
	}
	if sequence == o.Until {
		return errEndReached
	}
	return nil
}

func (b *Bus) handleEvents(
	ctx context.Context, stream string, msg jetstream.Msg, meta *jetstream.MsgMetadata, handle func(Record) error,
) error {
	position := Record{Subject: msg.Subject(), Sequence: meta.Sequence.Stream, StoredAt: meta.Timestamp}
	records, err := b.appendRecords(ctx, nil, stream, "follower", msg.Data(), position)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := handle(r); err != nil {
			return handlerError{err}
		}
	}
	return nil
}

// orderedConsumer creates the consumer that delivers the rest of o. A request to a server that stops or
// starts may have no answer, so the caller has to repeat it.
func (b *Bus) orderedConsumer(ctx context.Context, o *FollowOptions) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	if o.New && o.From == 0 { // fixed once, so that a reconnect loses no message
		stream, err := b.stream(ctx, o.Stream)
		if err != nil {
			return nil, err
		}
		o.From = stream.CachedInfo().State.LastSeq + 1
	}
	cfg := jetstream.OrderedConsumerConfig{
		FilterSubjects:    o.serverFilters(),
		DeliverPolicy:     jetstream.DeliverAllPolicy,
		InactiveThreshold: orphanAge,
	}
	switch {
	case o.From > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, o.From
	case o.LastPerSubject:
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	}
	ctx, done := b.permissions.watch(ctx, b.api+"CONSUMER.CREATE."+o.Stream+".>")
	c, err := b.js.OrderedConsumer(ctx, o.Stream, cfg)
	return c, done(err)
}

// orphanAge is the time after which the server deletes the consumer of a crashed follower.
const orphanAge = 30 * time.Second

// deleteConsumer deletes a consumer before the server does so after orphanAge.
func (b *Bus) deleteConsumer(stream string, consumer jetstream.Consumer) {
	if !b.Connected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := b.js.DeleteConsumer(ctx, stream, consumer.CachedInfo().Name); err != nil {
		b.log.Debug("consumer not deleted", "stream", stream, "error", err)
	}
}

// FollowOptions selects the messages to deliver.
type FollowOptions struct {
	Stream         string
	Subjects       []string // filters, in which * matches any token; empty: the whole stream
	From           uint64   // first sequence; 0: the oldest message
	Until          uint64   // last sequence; 0: no end
	LastPerSubject bool     // of the stored messages, deliver only the last of each subject
	New            bool     // deliver no stored messages

	Progress func(sequence uint64) // called after every message, also after filtered ones
	CaughtUp func()                // called once, after the messages stored at the start

	storedOnly bool                // deliver no messages published after the start
	undecoded  func(storedMessage) // gets the messages instead of the handler
}

// serverFilters are the filters that the server applies. For several filters with wildcards
// the server walks over all subjects of a block per message (2.14, LoadNextMsgMulti), and each
// job has its own subjects. In that case the server sends all messages, and selects filters
// them.
func (o *FollowOptions) serverFilters() []string {
	if len(o.Subjects) > 1 && !o.LastPerSubject {
		return nil
	}
	return o.Subjects
}

// selects reports whether a subject matches one of several filters. The server applies a single one.
func (o *FollowOptions) selects(subject string) bool {
	matches := func(filter string) bool { return subjectMatches(filter, subject) }
	return len(o.Subjects) < 2 || slices.ContainsFunc(o.Subjects, matches)
}

// subjectMatches reports whether a subject has the tokens of a filter; * matches any token.
func subjectMatches(filter, subject string) bool {
	for {
		want, filterRest, moreFilter := strings.Cut(filter, ".")
		have, subjectRest, moreSubject := strings.Cut(subject, ".")
		if want != "*" && want != have || moreFilter != moreSubject {
			return false
		}
		if !moreFilter {
			return true
		}
		filter, subject = filterRest, subjectRest
	}
}

// advance moves the options past a message. lastDelivered: the last one per subject was delivered.
func (o *FollowOptions) advance(meta *jetstream.MsgMetadata) (lastDelivered bool) {
	o.From = meta.Sequence.Stream + 1
	if o.Progress != nil {
		o.Progress(meta.Sequence.Stream)
	}
	if meta.NumPending > 0 {
		return false
	}
	o.caughtUp()
	lastDelivered = o.LastPerSubject
	o.LastPerSubject = false
	return lastDelivered
}

func (o *FollowOptions) caughtUp() {
	if o.CaughtUp != nil {
		o.CaughtUp()
		o.CaughtUp = nil
	}
}

type handlerError struct{ error }
