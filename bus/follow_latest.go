package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// narrow says whether a user asks for nothing but the last of subjects that he
// names, and what follows. He needs no consumer for that, and where users have
// rights he gets none: whoever may make a consumer may have the server deliver
// messages to any subject, also to one to which he may not publish himself.
func (b *Bus) narrow(o *FollowOptions) bool {
	return b.user != "" && o.LastPerSubject && o.From == 0 && len(o.Subjects) > 0 &&
		!slices.ContainsFunc(o.Subjects, func(s string) bool { return strings.ContainsAny(s, "*>") })
}

// followLatest delivers the last stored message of each subject, then what is
// published meanwhile, as NATS hands it to every listener; those have no sequence.
// After a lost connection it looks again at what is stored.
func (b *Bus) followLatest(ctx context.Context, o *FollowOptions, seen map[string]bool, handle func(Record) error) error {
	heard := make(chan *nats.Msg, 1024)
	for _, subject := range o.Subjects {
		if o.once {
			break // what comes is not wanted
		}
		sub, err := b.nc.ChanSubscribe(subject, heard)
		if err != nil {
			return unavailable(err)
		}
		defer func() { _ = sub.Unsubscribe() }() // the connection may be closed already
	}
	again := b.nc.StatusChanged(nats.CONNECTED)
	defer b.nc.RemoveStatusListener(again)
	if err := b.readLatest(ctx, o, seen, handle); err != nil {
		return err
	}
	o.caughtUp()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again:
			return errors.New("the connection was lost meanwhile")
		case m := <-heard:
			events, err := parse(m.Subject, m.Data)
			if err != nil {
				b.log.Debug("message dropped", "subject", m.Subject, "reason", err)
				continue
			}
			for _, e := range events {
				if err := deliver(Record{Event: e, Subject: m.Subject, StoredAt: time.Now().UTC()}, seen, handle); err != nil {
					return err
				}
			}
		}
	}
}

// readLatest delivers what is stored.
func (b *Bus) readLatest(ctx context.Context, o *FollowOptions, seen map[string]bool, handle func(Record) error) error {
	stream, err := b.js.Stream(ctx, o.Stream)
	if err != nil {
		return unavailable(err)
	}
	var found []Record
	for _, subject := range o.Subjects {
		asking, done := b.permitted(ctx, "$JS.API.DIRECT.GET."+o.Stream+"."+subject)
		msg, err := stream.GetLastMsgForSubject(asking, subject)
		if err = done(err); errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the last of %s: %w", subject, unavailable(err))
		}
		events, err := parse(msg.Subject, msg.Data)
		if err != nil {
			b.log.Debug("message dropped", "subject", subject, "reason", err) // the readers of the stream bury it
			continue
		}
		for _, e := range events {
			found = append(found, Record{Event: e, Subject: msg.Subject, Sequence: msg.Sequence, StoredAt: msg.Time})
		}
	}
	slices.SortStableFunc(found, func(x, y Record) int { return cmp.Compare(x.Sequence, y.Sequence) })
	for _, r := range found {
		if err := deliver(r, seen, handle); err != nil {
			return err
		}
	}
	return nil
}

// deliver hands on an event that was not handed on yet.
func deliver(r Record, seen map[string]bool, handle func(Record) error) error {
	if seen[r.Event.ID()] {
		return nil
	}
	seen[r.Event.ID()] = true
	if err := handle(r); err != nil {
		return handlerError{err}
	}
	return nil
}
