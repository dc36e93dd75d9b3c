package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// canListen reports whether Follow can do without a JetStream consumer: o selects only the
// last messages of subjects without wildcards, and new messages. Where users have permissions
// this is the only way: a user who may create consumers can make the server deliver messages to
// subjects to which the user may not publish.
func (b *Bus) canListen(o *FollowOptions) bool {
	hasWildcard := func(s string) bool { return strings.ContainsAny(s, "*>") }
	return b.permissions.user != "" && o.LastPerSubject && o.From == 0 && len(o.Subjects) > 0 &&
		!slices.ContainsFunc(o.Subjects, hasWildcard)
}

// followLatest delivers the last stored message of each subject, then new messages from a core
// NATS subscription; those have no sequence. It returns after a reconnect, and the next call
// reads the stored messages again. delivered has the IDs of events that need no delivery.
func (b *Bus) followLatest(
	ctx context.Context, o *FollowOptions, delivered *recentIDs, handle func(Record) error,
) error {
	messages := make(chan *nats.Msg, maxQueued)
	if !o.storedOnly {
		for _, subject := range o.Subjects {
			sub, err := b.nc.ChanSubscribe(subject, messages)
			if err != nil {
				return unavailable(err)
			}
			defer func() { _ = sub.Unsubscribe() }() // the connection may be closed already
		}
	}
	reconnected := b.nc.StatusChanged(nats.CONNECTED)
	defer b.nc.RemoveStatusListener(reconnected)

	if err := b.readLatest(ctx, o, delivered, handle); err != nil {
		return err
	}
	o.caughtUp()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-reconnected:
			return errors.New("the connection was lost in the meantime")
		case m := <-messages:
			msg := storedMessage{Subject: m.Subject, Data: m.Data, Time: time.Now().UTC()}
			for _, r := range b.recordsAt(msg) {
				if err := deliverOnce(r, delivered, handle); err != nil {
					return err
				}
			}
		}
	}
}

func (b *Bus) readLatest(
	ctx context.Context, o *FollowOptions, delivered *recentIDs, handle func(Record) error,
) error {
	stream, err := b.stream(ctx, o.Stream)
	if err != nil {
		return err
	}

	var found []Record
	for _, subject := range o.Subjects {
		watched, done := b.permissions.watch(ctx, b.api+"DIRECT.GET."+o.Stream+"."+subject)
		msg, err := stream.GetLastMsgForSubject(watched, subject)
		if err = done(err); errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the last message of %s: %w", subject, unavailable(err))
		}
		found = append(found, b.recordsAt(storedMessage{msg.Subject, msg.Sequence, msg.Data, msg.Time})...)
	}

	slices.SortStableFunc(found, func(x, y Record) int {
		return cmp.Compare(x.Sequence, y.Sequence)
	})
	for _, r := range found {
		if err := deliverOnce(r, delivered, handle); err != nil {
			return err
		}
	}
	return nil
}

func deliverOnce(r Record, delivered *recentIDs, handle func(Record) error) error {
	if !delivered.add(r.Event.ID()) {
		return nil
	}
	if err := handle(r); err != nil {
		return handlerError{err}
	}
	return nil
}

// maxRecentIDs bounds recentIDs. It exceeds the events that can be queued while the stored messages are
// read.
const maxRecentIDs = 4 * maxQueued

// recentIDs has the IDs of the last events: at least the last maxRecentIDs, and at most twice as many.
type recentIDs struct{ current, previous map[string]bool }

// add adds an ID, and reports whether it is new.
func (r *recentIDs) add(id string) bool {
	if r.current[id] || r.previous[id] {
		return false
	}
	if r.current == nil || len(r.current) == maxRecentIDs {
		r.previous, r.current = r.current, map[string]bool{}
	}
	r.current[id] = true
	return true
}

// maxQueued bounds the core NATS messages that wait for their handler; the client drops more.
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
