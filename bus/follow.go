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

// Record is an event and its position in the log.
type Record struct {
	Event    schemas.Event
	Subject  string
	Sequence uint64    // in its stream
	StoredAt time.Time // by the server's clock
}

// withEvent returns the record with an event of the message at its position.
func (r Record) withEvent(e schemas.Event) Record {
	if s, ok := e.(interface{ SetSequence(uint64) }); ok {
		s.SetSequence(r.Sequence)
	}
	r.Event = e
	return r
}

// FollowOptions selects the messages to deliver.
type FollowOptions struct {
	Stream         string
	Subjects       []string // filters, in which * matches any token; empty: the whole stream
	From           uint64   // first sequence; 0: the oldest message
	Until          uint64   // last sequence; 0: no end
	LastPerSubject bool     // of the stored messages, deliver only the last of each subject
	New            bool     // deliver no stored messages

	// ReusePublished delivers the events that this Bus publishes by PublishOnce as the
	// published values, instead of decoding them. At most one follower of a Bus may set it.
	ReusePublished bool

	Progress func(sequence uint64) // called after every message, also after filtered ones
	CaughtUp func()                // called once, after the messages stored at the start

	storedOnly bool // deliver no messages published after the start
}

// Follow delivers the events of a stream in order, one at a time: first the stored ones, then
// new ones as they arrive. It returns nil when ctx ends or Until is reached, and the error of
// the handler if that fails. A message that cannot be decoded becomes a dead letter. When the
// connection is back after an outage, Follow continues at its position.
func (b *Bus) Follow(ctx context.Context, o FollowOptions, handle func(Record) error) error {
	if o.ReusePublished {
		defer b.published.enable()()
	}
	follow := b.follow
	if b.canListen(&o) {
		delivered := map[string]bool{}
		follow = func(ctx context.Context, o *FollowOptions, handle func(Record) error) error {
			return b.followLatest(ctx, o, delivered, handle)
		}
	}
	for {
		err := follow(ctx, &o, handle)
		if ctx.Err() != nil {
			return nil
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
		if sleep(ctx, retryDelay) != nil {
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
		return fmt.Errorf("read %s: %w", o.Stream, ctx.Err())
	}
	return nil
}

type handlerError struct{ error }

// errLastDelivered ends a consumer of the last message per subject. The next consumer
// delivers every message.
var errLastDelivered = errors.New("the last message of each subject was delivered")

// errEndReached ends a consumer at FollowOptions.Until.
var errEndReached = errors.New("the last sequence was reached")

// follow runs one ordered consumer, and moves o past the handled messages.
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
	records, err := b.recordsOf(ctx, o, msg, meta)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := handle(r); err != nil {
			return handlerError{err}
		}
	}

	if o.advance(meta) && len(o.Subjects) > 1 {
		return errLastDelivered
	}
	if sequence == o.Until {
		return errEndReached
	}
	return nil
}

// recordsOf returns the events of a message, which this Bus may have published itself.
func (b *Bus) recordsOf(
	ctx context.Context, o *FollowOptions, msg jetstream.Msg, meta *jetstream.MsgMetadata,
) ([]Record, error) {
	position := Record{
		Subject:  msg.Subject(),
		Sequence: meta.Sequence.Stream,
		StoredAt: meta.Timestamp,
	}
	if e := b.published.eventOf(o, msg); e != nil {
		position.Event = e
		b.metrics.consumed.WithLabelValues(o.Stream).Inc()
		return []Record{position}, nil
	}
	return b.appendRecords(ctx, nil, o.Stream, "follower", msg.Data(), position)
}

// orderedConsumer creates the consumer that delivers the rest of o. A request to a server that stops or
// starts may have no answer, so the caller has to repeat it.
func (b *Bus) orderedConsumer(ctx context.Context, o *FollowOptions) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	if o.New && o.From == 0 { // fixed once, so that a reconnect loses no message
		stream, err := b.js.Stream(ctx, o.Stream)
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
	return b.js.OrderedConsumer(ctx, o.Stream, cfg)
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

// selects reports whether a subject matches one of several filters. The server applies a
// single filter.
func (o *FollowOptions) selects(subject string) bool {
	matches := func(filter string) bool { return subjectMatches(filter, subject) }
	return len(o.Subjects) < 2 || slices.ContainsFunc(o.Subjects, matches)
}

// subjectMatches reports whether a subject has the tokens of a filter, in which * matches any
// token.
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

// advance moves the options past a message. It reports whether the message completes the last
// messages per subject.
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

// appendRecords appends the events of the message at a position. If the message cannot be
// decoded, it publishes a dead letter and appends nothing.
func (b *Bus) appendRecords(
	ctx context.Context, all []Record, stream, consumer string, data []byte, position Record,
) ([]Record, error) {
	events, err := decode(position.Subject, data)
	if err != nil {
		return all, b.publishDead(ctx, position, stream, consumer, data, err)
	}
	for _, e := range events {
		all = append(all, position.withEvent(e))
	}
	b.metrics.consumed.WithLabelValues(stream).Add(float64(len(events)))
	return all, nil
}

// decode decodes the events of a message. A panic of the decoder becomes an error, so that no
// message can end the process.
func decode(subject string, data []byte) ([]schemas.Event, error) {
	return decodeWith(schemas.ParseAll, subject, data)
}

func decodeWith(
	parse func(string, []byte) ([]schemas.Event, error), subject string, data []byte,
) (events []schemas.Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			events, err = nil, fmt.Errorf("the decoder panicked: %v", p)
		}
	}()
	return parse(subject, data)
}
