package bus

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

const maxSubjects = 64

// Last returns the last message of each subject that a filter matches, in the order of the
// stream. It reads from the leader of the stream, so it sees every acknowledged message. A
// message that cannot be decoded is left out.
func (b *Bus) Last(ctx context.Context, stream, filter string) ([]Record, error) {
	subjects, err := b.subjects(ctx, stream, filter)
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, subject := range subjects {
		msg, err := b.lastStored(ctx, stream, subject)
		if err != nil {
			return nil, err
		}
		if msg == nil {
			continue // removed after the subjects were listed
		}
		all = append(all, b.recordsAt(*msg)...)
	}
	slices.SortFunc(all, func(x, y Record) int { return cmp.Compare(x.Sequence, y.Sequence) })
	return all, nil
}

// recordsAt returns the events of a stored message. It returns none if the message cannot be decoded,
// for which the readers of the stream publish a dead letter.
func (b *Bus) recordsAt(msg storedMessage) (all []Record) {
	events, err := decode(msg.Subject, msg.Data)
	if err != nil {
		b.log.Debug("message skipped", "subject", msg.Subject, "reason", err)
	}
	position := Record{Subject: msg.Subject, Sequence: msg.Sequence, StoredAt: msg.Time}
	for _, e := range events {
		all = append(all, position.withEvent(e))
	}
	return all
}

func (b *Bus) subjects(ctx context.Context, stream, filter string) ([]string, error) {
	if !strings.ContainsAny(filter, "*>") {
		return []string{filter}, nil
	}
	s, err := b.stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("list subjects of %s: %w", filter, unavailable(err))
	}
	found := info.State.Subjects
	if len(found) > maxSubjects {
		return nil, fmt.Errorf("list subjects of %s: %d are more than %d", filter, len(found), maxSubjects)
	}
	return slices.Collect(maps.Keys(found)), nil
}

// LastSamples returns the newest stored sample of each node that has one, by node. It waits
// for the server until ctx ends, and then returns the samples read so far.
func (b *Bus) LastSamples(ctx context.Context, nodes ...string) map[string]Record {
	ctx, done := context.WithCancel(ctx)
	defer done()

	o := FollowOptions{Stream: schemas.StreamNode, LastPerSubject: true, CaughtUp: done}
	for _, node := range nodes {
		o.Subjects = append(o.Subjects, schemas.NodeSubject(node, schemas.EventSample))
	}

	samples := map[string]Record{}
	// Follow ends with its context, and its handler returns no error.
	_ = b.Follow(ctx, o, func(r Record) error {
		if s, ok := r.Event.(*schemas.Sample); ok && ctx.Err() == nil {
			samples[s.Node] = r
		}
		return nil
	})
	return samples
}
