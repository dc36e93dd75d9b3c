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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Record is an event and its place in the log.
type Record struct {
	Event    schemas.Event
	Subject  string
	Sequence uint64    // in its stream
	StoredAt time.Time // by the server's clock
}

// of returns the record of an event that was read at the same place.
func (r Record) of(e schemas.Event) Record {
	if s, ok := e.(interface{ SetSequence(uint64) }); ok {
		s.SetSequence(r.Sequence)
	}
	r.Event = e
	return r
}

// FollowOptions says what to follow.
type FollowOptions struct {
	Stream         string
	Subjects       []string              // filters, in which * is any token; empty: all of the stream
	From           uint64                // first sequence; 0: all that is kept
	Until          uint64                // last sequence; 0: without end
	LastPerSubject bool                  // of what is stored, only the last of each subject
	New            bool                  // nothing of what is stored
	Share          bool                  // what this Bus itself sends by PublishOnce is handed over as it was sent, not read again; of all subjects
	Passed         func(sequence uint64) // called behind every message, also one that the filters leave out
	CaughtUp       func()                // called once, when all that was stored at the start was delivered

	once bool // nothing but what is stored
}

// Follow delivers the events of a stream in order, one at a time, first what is
// stored, then what comes, until ctx ends, or Until is reached; then it returns nil. An error of the
// handler ends it with that error. What cannot be understood goes to the dead
// letters. When the server was away it goes on where it was.
func (b *Bus) Follow(ctx context.Context, o FollowOptions, handle func(Record) error) error {
	if o.Share {
		defer b.own.share()()
	}
	follow := b.follow
	if b.narrow(&o) {
		seen := map[string]bool{}
		follow = func(ctx context.Context, o *FollowOptions, handle func(Record) error) error {
			return b.followLatest(ctx, o, seen, handle)
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
		if errors.Is(err, errReached) {
			return nil
		}
		if errors.Is(err, errOthersNow) {
			continue
		}
		b.log.Debug("follow again", "stream", o.Stream, "from", o.From, "error", err)
		if wait(ctx, retryDelay) != nil {
			return nil
		}
	}
}

// Read delivers what a stream keeps now as Follow does, and returns. The error is
// the handler's, or says that ctx ended before. CaughtUp is not called.
func (b *Bus) Read(ctx context.Context, o FollowOptions, handle func(Record) error) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	complete := false
	o.once = true
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

// errOthersNow says that the last of each subject are through, and what comes is
// read by another consumer.
var errOthersNow = errors.New("the last of each subject were read")

// errReached says that all that was asked for is through.
var errReached = errors.New("the last sequence was reached")

// follow runs one ordered consumer and moves o past what was handled.
func (b *Bus) follow(ctx context.Context, o *FollowOptions, handle func(Record) error) error {
	consumer, err := b.reader(ctx, o)
	if err != nil {
		return unavailable(err)
	}
	defer b.deleteConsumer(o.Stream, consumer)
	if consumer.CachedInfo().NumPending == 0 {
		o.caughtUp()
	}
	it, err := consumer.Messages(jetstream.PullHeartbeat(pingEvery)) // the server that has the consumer may be gone: that is noticed after two
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
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("read a message's place in %s: %w", o.Stream, err)
		}
		if o.Until > 0 && meta.Sequence.Stream > o.Until {
			return errReached
		}
		if !o.wants(msg.Subject()) {
			o.moveOn(meta)
			continue
		}
		runtime.Gosched() // whoever waits for the ack of this message answers a request: they go first
		place := Record{Event: b.own.taken(o, msg), Subject: msg.Subject(), Sequence: meta.Sequence.Stream, StoredAt: meta.Timestamp}
		var records []Record
		if place.Event != nil {
			records = []Record{place}
			b.metrics.consumed.WithLabelValues(o.Stream).Inc()
		} else if records, err = b.records(ctx, nil, o.Stream, "follower", msg.Data(), place); err != nil {
			return err
		}
		for _, r := range records {
			if err := handle(r); err != nil {
				return handlerError{err}
			}
		}
		if o.moveOn(meta) && len(o.Subjects) > 1 {
			return errOthersNow
		}
		if meta.Sequence.Stream == o.Until {
			return errReached
		}
	}
}

// reader makes the ordered consumer that delivers what o still wants.
func (b *Bus) reader(ctx context.Context, o *FollowOptions) (jetstream.Consumer, error) {
	if o.New && o.From == 0 { // from now on, also over a lost connection
		stream, err := b.js.Stream(ctx, o.Stream)
		if err != nil {
			return nil, err
		}
		o.From = stream.CachedInfo().State.LastSeq + 1
	}
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: o.asked(), DeliverPolicy: jetstream.DeliverAllPolicy, InactiveThreshold: orphanAge}
	switch {
	case o.From > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, o.From
	case o.LastPerSubject:
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	}
	return b.js.OrderedConsumer(ctx, o.Stream, cfg)
}

// asked are the filters that the server applies. Several with wildcards cost it a
// walk over all subjects of a block for each message (2.14, LoadNextMsgMulti), and each
// job has subjects of its own: then all messages are read, and wants chooses.
func (o *FollowOptions) asked() []string {
	if len(o.Subjects) > 1 && !o.LastPerSubject {
		return nil
	}
	return o.Subjects
}

// wants says whether a message's subject passes the filters.
func (o *FollowOptions) wants(subject string) bool {
	return len(o.Subjects) < 2 || slices.ContainsFunc(o.Subjects, func(filter string) bool { return passes(filter, subject) })
}

// passes says whether a subject has a filter's tokens, of which * is any.
func passes(filter, subject string) bool {
	for {
		want, filters, more := strings.Cut(filter, ".")
		is, rest, follows := strings.Cut(subject, ".")
		if want != "*" && want != is || more != follows {
			return false
		}
		if !more {
			return true
		}
		filter, subject = filters, rest
	}
}

// moveOn moves the options past a message, and says whether it was the last of the
// last of each subject.
func (o *FollowOptions) moveOn(meta *jetstream.MsgMetadata) bool {
	o.From = meta.Sequence.Stream + 1
	if o.Passed != nil {
		o.Passed(meta.Sequence.Stream)
	}
	if meta.NumPending > 0 {
		return false
	}
	o.caughtUp()
	were := o.LastPerSubject
	o.LastPerSubject = false
	return were
}

// orphanAge is after how long the server drops the consumer of a follower that died.
const orphanAge = 30 * time.Second

// deleteConsumer spares the server a consumer that nobody reads any more.
func (b *Bus) deleteConsumer(stream string, consumer jetstream.Consumer) {
	if !b.Connected() {
		return // it ends after orphanAge
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := b.js.DeleteConsumer(ctx, stream, consumer.CachedInfo().Name); err != nil {
		b.log.Debug("consumer not deleted", "stream", stream, "error", err)
	}
}

func (o *FollowOptions) caughtUp() {
	if o.CaughtUp != nil {
		o.CaughtUp()
		o.CaughtUp = nil
	}
}

// LastSequence returns the sequence of the last message of a stream. The error matches
// schemas.ErrNotFound if the server does not have the stream.
func (b *Bus) LastSequence(ctx context.Context, stream string) (uint64, error) {
	s, err := b.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		missing := &schemas.Error{Code: schemas.CodeNotFound, Message: "stream not found"}
		return 0, fmt.Errorf("open stream %s: %w", stream, missing)
	}
	if err != nil {
		return 0, fmt.Errorf("open stream %s: %w", stream, unavailable(err))
	}
	return s.CachedInfo().State.LastSeq, nil
}

// records appends the events of a message, of which a record tells the place, or
// buries it: then there are none.
func (b *Bus) records(ctx context.Context, all []Record, stream, consumer string, data []byte, r Record) ([]Record, error) {
	events, err := parse(r.Subject, data)
	if err != nil {
		return all, b.bury(ctx, stream, r.Sequence, r.Subject, consumer, data, err)
	}
	for _, e := range events {
		all = append(all, r.of(e))
	}
	b.metrics.consumed.WithLabelValues(stream).Add(float64(len(events)))
	return all, nil
}

// parse reads the events of a message. A panic of the decoder is an error: a message of
// another process never ends this one.
func parse(subject string, data []byte) (events []schemas.Event, err error) {
	return parseWith(schemas.ParseAll, subject, data)
}

func parseWith(
	decode func(string, []byte) ([]schemas.Event, error), subject string, data []byte,
) (events []schemas.Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			events, err = nil, fmt.Errorf("the decoder panicked: %v", p)
		}
	}()
	return decode(subject, data)
}

// Listen delivers core messages of a subject until ctx ends; what cannot be
// understood is logged and dropped, as nobody keeps such messages.
func (b *Bus) Listen(ctx context.Context, subject string, handle func(schemas.Event)) error {
	return b.ListenPersons(ctx, []string{subject}, func(_ string, e schemas.Event) { handle(e) })
}

// ListenPersons is Listen to several subjects that tells who said it: the person
// of a subject that carries one, else "".
func (b *Bus) ListenPersons(ctx context.Context, subjects []string, handle func(person string, e schemas.Event)) error {
	messages := make(chan *nats.Msg, 1024)
	for _, subject := range subjects {
		sub, err := b.nc.ChanSubscribe(subject, messages)
		if err != nil {
			return fmt.Errorf("listen to %s: %w", subject, unavailable(err))
		}
		defer func() { _ = sub.Unsubscribe() }() // the connection may be closed already
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-messages:
			person, plain := schemas.SplitPerson(m.Subject)
			events, err := parse(plain, m.Data)
			if err != nil {
				b.log.Debug("message dropped", "subject", m.Subject, "reason", err)
				continue
			}
			for _, e := range events {
				handle(person, e)
			}
		}
	}
}
