package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// publishTimeout bounds a Publish whose context has no deadline.
const publishTimeout = 5 * time.Second

// Publish validates the event, sends it with its identity as message ID, and
// waits for the stream's acknowledgement. It returns the event's sequence in its
// stream; a copy inside the window returns the first one's. A person's word on his
// job goes through the advisor, which knows whose it is.
func (b *Bus) Publish(ctx context.Context, e schemas.Event) (uint64, error) {
	if subject := schemas.PersonSubject(b.user, e.Subject()); b.person && subject != e.Subject() {
		return b.tell(ctx, subject, e)
	}
	sequence, _, err := b.publish(ctx, e, nil)
	return sequence, err
}

// PublishOnce is Publish of what may stand only once on its subject, however long
// ago the first was: the server refuses another. It tells whether the event is
// the first; otherwise the sequence is that of the first. The event must not be
// changed afterwards: followers that share what this Bus publishes are handed
// the same value.
func (b *Bus) PublishOnce(ctx context.Context, e schemas.Event) (sequence uint64, first bool, err error) {
	return b.publish(ctx, e, &b.own)
}

// PublishSamples publishes some samples of one node, oldest first, as one message.
// Those that it holds are known by their event_ids; a copy of the message as a whole
// inside the window returns the first one's sequence.
func (b *Bus) PublishSamples(ctx context.Context, samples []*schemas.Sample) (uint64, error) {
	if len(samples) == 1 {
		return b.Publish(ctx, samples[0])
	}
	subject, events := samples[0].Subject(), make([]schemas.Event, len(samples))
	for i, s := range samples {
		if err := s.Validate(); err != nil {
			return 0, fmt.Errorf("publish %s: %w", subject, err)
		}
		events[i] = s
	}
	data, err := schemas.Marshal(samples)
	if err != nil {
		return 0, err
	}
	if len(data) > schemas.MaxMessageBytes {
		return 0, fmt.Errorf("publish %d of %s: %w", len(samples), subject, schemas.Invalid("", "%d bytes are more than the %d of the largest message", len(data), schemas.MaxMessageBytes))
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	ack, err := b.send(ctx, subject, data, jetstream.WithMsgID(schemas.MessageID(events)))
	if err != nil {
		return 0, fmt.Errorf("publish %d of %s: %w", len(samples), subject, unavailable(err))
	}
	return ack.Sequence, nil
}

func (b *Bus) publish(ctx context.Context, e schemas.Event, own *own) (sequence uint64, first bool, err error) {
	if err := e.Validate(); err != nil {
		return 0, false, fmt.Errorf("publish %s: %w", e.Subject(), err)
	}
	data, err := schemas.Marshal(e)
	if err != nil {
		return 0, false, err
	}
	options := []jetstream.PublishOpt{jetstream.WithMsgID(e.ID())}
	if own != nil {
		options = append(options, jetstream.WithExpectLastSequencePerSubject(0))
	}
	if own.lend(e, data) {
		defer func() {
			if !first { // a copy or an error: nobody will be handed it
				own.take(e.ID(), data)
			}
		}()
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	ack, err := b.send(ctx, e.Subject(), data, options...)
	if own != nil && taken(err) {
		sequence, err = b.only(ctx, e.Subject())
		return sequence, false, err
	}
	if err != nil {
		return 0, false, fmt.Errorf("publish %s: %w", e.Subject(), unavailable(err))
	}
	return ack.Sequence, !ack.Duplicate, nil
}

// copyPause is how long a copy that is being stored is left alone.
const copyPause = 50 * time.Millisecond

// send publishes, waits for the acknowledgement and counts. While a stream of several
// servers stores a copy it refuses another; what became of the first is known by asking
// again.
func (b *Bus) send(ctx context.Context, subject string, data []byte, options ...jetstream.PublishOpt) (ack *jetstream.PubAck, err error) {
	ctx, done := b.permitted(ctx, subject)
	defer func() {
		err = done(err)
		b.metrics.published.WithLabelValues(kind(subject), outcome(err)).Inc()
	}()
	for {
		ack, err = b.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data}, options...)
		var refused *jetstream.APIError
		if !errors.As(err, &refused) || refused.ErrorCode != copyInProcess {
			return ack, err
		}
		if wait(ctx, copyPause) != nil {
			return nil, fmt.Errorf("a copy is in process: %w", ctx.Err())
		}
	}
}

// copyInProcess is JSStreamDuplicateMessageConflict of nats-server, which its client
// has no name for.
const copyInProcess = 10158

// tell publishes through the advisor, which checks whose job it is.
func (b *Bus) tell(ctx context.Context, subject string, e schemas.Event) (sequence uint64, err error) {
	if err := e.Validate(); err != nil {
		return 0, fmt.Errorf("publish %s: %w", e.Subject(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var told schemas.Receipt
	err = b.ask(ctx, subject, e, &told)
	b.metrics.published.WithLabelValues(kind(e.Subject()), outcome(err)).Inc()
	if err != nil {
		return 0, fmt.Errorf("publish %s: %w", e.Subject(), err)
	}
	return told.Sequence, nil
}

// only returns the sequence of the one event of a subject, as the stream's leader has it.
func (b *Bus) only(ctx context.Context, subject string) (uint64, error) {
	name, err := b.js.StreamNameBySubject(ctx, subject)
	if err != nil {
		return 0, fmt.Errorf("find the stream of %s: %w", subject, unavailable(err))
	}
	msg, err := b.storedLast(ctx, name, subject)
	if err != nil {
		return 0, err
	}
	if msg == nil { // it was dropped a moment ago
		return 0, &schemas.Error{Code: schemas.CodeUnavailable, Message: subject + " has no event any more"}
	}
	return msg.Sequence, nil
}

// Notify sends an event over core NATS: nobody keeps it, nobody acknowledges it.
func (b *Bus) Notify(e schemas.Event) error {
	data, err := schemas.Marshal(e)
	if err != nil {
		return err
	}
	subject := e.Subject()
	if b.person {
		subject = schemas.PersonSubject(b.user, subject)
	}
	if err := b.nc.Publish(subject, data); err != nil {
		return fmt.Errorf("notify %s: %w", e.Subject(), unavailable(err))
	}
	return nil
}

// kind is the subject without its middle token: a label with a bound.
func kind(subject string) string {
	first, rest, _ := strings.Cut(subject, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		rest = rest[i+1:]
	}
	return first + "." + rest
}

func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// bury publishes a message that could not be understood to dead.<stream>.
func (b *Bus) bury(ctx context.Context, stream string, sequence uint64, subject, consumer string, data []byte, reason error) error {
	b.metrics.dead.WithLabelValues(stream, reasonKind(data, reason)).Inc()
	b.log.Warn("message is dead", "stream", stream, "sequence", sequence, "subject", subject, "reason", reason)
	d := &schemas.Dead{Stream: stream, OriginSequence: sequence, OriginSubject: strings.ToValidUTF8(subject, "?"), Consumer: consumer,
		Reason: reason.Error(), Data: data[:min(len(data), schemas.MaxDeadBytes)], OriginBytes: len(data)}
	d.EventID, d.At = deadID(stream, sequence), time.Now().UTC()
	_, err := b.Publish(ctx, d)
	return err
}
