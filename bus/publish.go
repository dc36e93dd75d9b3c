package bus

import (
	"context"
	"encoding/json"
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

// Publish validates the event, sends it with its identity as message ID, and waits for the
// stream's acknowledgement. It returns the event's sequence in its stream; for a duplicate
// within the duplicate window, the sequence of the original.
//
// If the user is a person, events about a job go through the advisor, which checks that the
// person owns the job.
func (b *Bus) Publish(ctx context.Context, e schemas.Event) (uint64, error) {
	if b.isPerson {
		if subject := schemas.PersonSubject(b.permissions.user, e.Subject()); subject != e.Subject() {
			return b.publishThroughAdvisor(ctx, subject, e)
		}
	}
	ack, err := b.publish(ctx, e)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// Claim publishes the start of a run before its command starts. If another runner has claimed the run,
// the error matches schemas.ErrConflict: their epochs would be mixed. Repeating a claim is no conflict.
func (b *Bus) Claim(ctx context.Context, e *schemas.Started) (uint64, error) {
	if b.isPerson {
		return b.Publish(ctx, e) // the advisor claims the run
	}
	ack, err := b.publish(ctx, e)
	if err != nil {
		return 0, err
	}
	if !ack.Duplicate {
		return ack.Sequence, nil
	}
	msg, err := b.lastStored(ctx, schemas.StreamJob, e.Subject())
	if err != nil {
		return 0, err
	}
	var first schemas.Started
	if msg == nil || msg.Sequence != ack.Sequence || json.Unmarshal(msg.Data, &first) != nil ||
		!first.At.Equal(e.At) {
		message := fmt.Sprintf("run %d of job %s was started by another runner; use another id", e.Run, e.JobID)
		return 0, &schemas.Error{Code: schemas.CodeConflict, Field: "id", Message: message}
	}
	return ack.Sequence, nil
}

// PublishOnce publishes an event that may exist only once on its subject, at any distance in time:
// the server rejects a second one. It reports whether the event is the first. If not, it returns
// the sequence of the first event.
func (b *Bus) PublishOnce(ctx context.Context, e schemas.Event) (sequence uint64, first bool, err error) {
	onlyFirst := jetstream.WithExpectLastSequencePerSubject(0)
	ack, err := b.publish(ctx, e, onlyFirst)
	if isRevisionConflict(err) {
		sequence, err = b.storedSequence(ctx, e.Subject())
		return sequence, false, err
	}
	if err != nil {
		return 0, false, err
	}
	return ack.Sequence, !ack.Duplicate, nil
}

// PublishSamples publishes several samples of one node, oldest first, as one message. Readers
// identify each sample by its event_id. For a duplicate of the whole message within the
// duplicate window it returns the sequence of the original.
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
		err := schemas.Invalid("", "%d bytes are more than the limit of %d for a message",
			len(data), schemas.MaxMessageBytes)
		return 0, fmt.Errorf("publish %d of %s: %w", len(samples), subject, err)
	}

	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	ack, err := b.send(ctx, subject, data, jetstream.WithMsgID(schemas.MessageID(events)))
	if err != nil {
		return 0, fmt.Errorf("publish %d of %s: %w", len(samples), subject, unavailable(err))
	}
	return ack.Sequence, nil
}

func (b *Bus) publish(
	ctx context.Context, e schemas.Event, options ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("publish %s: %w", e.Subject(), err)
	}
	data, err := schemas.Marshal(e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	options = append(options, jetstream.WithMsgID(e.ID()))
	ack, err := b.send(ctx, e.Subject(), data, options...)
	if err != nil {
		return nil, fmt.Errorf("publish %s: %w", e.Subject(), unavailable(err))
	}
	return ack, nil
}

// inProcessPause is the pause before a message is sent again while a copy of it is being stored.
const inProcessPause = 50 * time.Millisecond

// duplicateInProcess is JSStreamDuplicateMessageConflict of nats-server; the client has no constant.
const duplicateInProcess = 10158

// send publishes a message, waits for the acknowledgement and counts the outcome. A
// replicated stream rejects a duplicate while it is storing the original. send then tries
// again, because only the next answer shows whether the original was stored.
func (b *Bus) send(
	ctx context.Context, subject string, data []byte, options ...jetstream.PublishOpt,
) (ack *jetstream.PubAck, err error) {
	ctx, done := b.permissions.watch(ctx, subject)
	defer func() {
		err = done(err)
		b.metrics.countPublished(subject, err)
	}()
	for {
		if err = b.awaitConnection(ctx); err != nil {
			return nil, err
		}
		ack, err = b.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data}, options...)
		var refused *jetstream.APIError
		if errors.Is(err, nats.ErrReconnectBufExceeded) {
			continue // the connection was lost just before
		}
		if !errors.As(err, &refused) || refused.ErrorCode != duplicateInProcess {
			return ack, err
		}
		if Sleep(ctx, inProcessPause) != nil {
			return nil, fmt.Errorf("an earlier attempt is still being stored: %w", ctx.Err())
		}
	}
}

// publishThroughAdvisor sends a person's event to the advisor, which checks the owner and publishes it.
func (b *Bus) publishThroughAdvisor(
	ctx context.Context, subject string, e schemas.Event,
) (sequence uint64, err error) {
	if err := e.Validate(); err != nil {
		return 0, fmt.Errorf("publish %s: %w", e.Subject(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()

	var reply schemas.Receipt
	err = b.request(ctx, subject, e, &reply)
	b.metrics.countPublished(e.Subject(), err)
	if err != nil {
		return 0, fmt.Errorf("publish %s: %w", e.Subject(), err)
	}
	return reply.Sequence, nil
}

// storedSequence returns the sequence of the only event of a subject, from the stream's leader.
func (b *Bus) storedSequence(ctx context.Context, subject string) (uint64, error) {
	name, err := b.js.StreamNameBySubject(ctx, subject)
	if err != nil {
		return 0, fmt.Errorf("find the stream of %s: %w", subject, unavailable(err))
	}
	msg, err := b.lastStored(ctx, name, subject)
	if err != nil {
		return 0, err
	}
	if msg == nil { // the stream's limits removed it just now
		return 0, &schemas.Error{
			Code:    schemas.CodeUnavailable,
			Message: subject + " has no event any more",
		}
	}
	return msg.Sequence, nil
}

// Notify sends an event over core NATS, and waits until the server has it: it is neither stored nor
// acknowledged by anybody else. ctx must have a deadline.
func (b *Bus) Notify(ctx context.Context, e schemas.Event) error {
	data, err := schemas.Marshal(e)
	if err != nil {
		return err
	}
	subject := e.Subject()
	if b.isPerson {
		subject = schemas.PersonSubject(b.permissions.user, subject)
	}
	if err = b.nc.Publish(subject, data); err == nil {
		err = b.nc.FlushWithContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("notify %s: %w", e.Subject(), unavailable(err))
	}
	return nil
}

// subjectKind is the first and last token of a subject, a metric label with few values.
func subjectKind(subject string) string {
	first, rest, _ := strings.Cut(subject, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		rest = rest[i+1:]
	}
	return first + "." + rest
}
