package bus

import (
	"context"
	"courier/schemas"
	"fmt"
	"strings"
	"time"
)

// Record is an event and its position in the log.
type Record struct {
	Event    schemas.Event
	Subject  string
	Sequence uint64    // in its stream
	StoredAt time.Time // by the server's clock
}

func (r Record) withEvent(e schemas.Event) Record {
	if s, ok := e.(interface{ SetSequence(uint64) }); ok {
		s.SetSequence(r.Sequence)
	}
	r.Event = e
	return r
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

func (b *Bus) publishDead(
	ctx context.Context, r Record, stream, consumer string, data []byte, reason error,
) error {
	b.metrics.dead.WithLabelValues(stream, reasonLabel(data, reason)).Inc()
	b.log.Warn("message cannot be decoded, stored as a dead letter", "stream", stream,
		"sequence", r.Sequence, "subject", r.Subject, "reason", reason)
	d := &schemas.Dead{
		Stream:         stream,
		OriginSequence: r.Sequence,
		OriginSubject:  strings.ToValidUTF8(r.Subject, "?"),
		OriginBytes:    len(data),
		Consumer:       consumer,
		Reason:         reason.Error(),
		Data:           data[:min(len(data), schemas.MaxDeadBytes)],
	}
	d.EventID, d.At = deadID(stream, r.Sequence), time.Now().UTC()
	_, err := b.Publish(ctx, d)
	return err
}

func deadID(stream string, sequence uint64) string {
	return fmt.Sprintf("%s/%d/dead", stream, sequence)
}
