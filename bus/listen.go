package bus

import (
	"context"
	"fmt"

	"courier/schemas"

	"github.com/nats-io/nats.go"
)

// maxQueued bounds the core NATS messages that wait for their handler; the client drops further
// messages.
const maxQueued = 1024

// Listen delivers core NATS messages of a subject until ctx ends. A message that cannot be
// decoded is logged and dropped: it is not stored, so there is nothing to repair.
func (b *Bus) Listen(ctx context.Context, subject string, handle func(schemas.Event)) error {
	subjects := []string{subject}
	return b.ListenPersons(ctx, subjects, func(_ string, e schemas.Event) { handle(e) })
}

// ListenPersons is Listen for several subjects. It passes the person that the subject names
// to the handler, or "".
func (b *Bus) ListenPersons(
	ctx context.Context, subjects []string, handle func(person string, e schemas.Event),
) error {
	messages := make(chan *nats.Msg, maxQueued)
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
			person, subject := schemas.SplitPerson(m.Subject)
			events, err := decode(subject, m.Data)
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
