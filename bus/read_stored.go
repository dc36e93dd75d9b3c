package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// storedMessage is a message of a stream in the encoding of the JetStream API.
type storedMessage struct {
	Subject  string    `json:"subject"`
	Sequence uint64    `json:"seq"`
	Data     []byte    `json:"data"`
	Time     time.Time `json:"time"`
}

// nextStored returns the first message of a stream at or after a sequence, or nil if there is
// none. It asks the leader: a direct get may ask a replica that does not have the message yet.
func (b *Bus) nextStored(ctx context.Context, stream string, sequence uint64) (*storedMessage, error) {
	query := map[string]any{"seq": sequence, "next_by_subj": ">"}
	msg, err := b.getStored(ctx, stream, query)
	if err != nil {
		return nil, fmt.Errorf("read %s at %d: %w", stream, sequence, err)
	}
	return msg, nil
}

// lastStored returns the last message of a subject from the leader of a stream, or nil.
func (b *Bus) lastStored(ctx context.Context, stream, subject string) (*storedMessage, error) {
	msg, err := b.getStored(ctx, stream, map[string]any{"last_by_subj": subject})
	if err != nil {
		return nil, fmt.Errorf("read the last message of %s: %w", subject, err)
	}
	return msg, nil
}

// getStored sends a STREAM.MSG.GET request to the leader of a stream. nil: no message matches.
func (b *Bus) getStored(ctx context.Context, stream string, query map[string]any) (*storedMessage, error) {
	request, err := json.Marshal(query)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	subject := b.api + "STREAM.MSG.GET." + stream
	ctx, done := b.permissions.watch(ctx, subject)
	msg, err := b.nc.RequestWithContext(ctx, subject, request)
	if err = done(err); err != nil {
		return nil, unavailable(err)
	}

	var reply struct {
		Message *storedMessage `json:"message"`
		Error   *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &reply); err != nil {
		return nil, err
	}
	const notFound = 10037 // JSNoMessageFoundErr of nats-server
	if e := reply.Error; e != nil && e.Code != notFound {
		return nil, errors.New(e.Description)
	}
	return reply.Message, nil
}

const (
	leaderTimeout = 5 * time.Second // without an answer, the stream has no leader

	// If the leader is behind, the request is repeated after behindPause, at most behindTries times.
	behindPause = 100 * time.Millisecond
	behindTries = 50
)

var errStreamShorter = errors.New("the stream ends before that")

// visitStored visits the messages of a stream from first to last, which the stream once held.
//
// A leader that was elected a moment ago may not have applied all messages yet. Therefore
// visitStored accepts the end of the stream only from a leader that reported last as stored
// before the read that found nothing, and is still the leader after it.
func (b *Bus) visitStored(
	ctx context.Context, stream string, first, last uint64, visit func(*storedMessage) error,
) error {
	leader, hasLast := "", false
	for tries := 0; first <= last; {
		msg, err := b.nextStored(ctx, stream, first)
		if err != nil {
			return err
		}
		if msg != nil {
			if msg.Sequence > last {
				return nil
			}
			if err := visit(msg); err != nil {
				return err
			}
			first, hasLast = msg.Sequence+1, false
			continue
		}

		s, err := b.stream(ctx, stream)
		if err != nil {
			return err
		}
		current := ""
		if c := s.CachedInfo().Cluster; c != nil {
			current = c.Leader
		}
		if hasLast && current == leader {
			return nil
		}
		leader, hasLast = current, s.CachedInfo().State.LastSeq >= last
		if hasLast {
			continue
		}

		if tries++; tries == behindTries {
			missing := &schemas.Error{Code: schemas.CodeUnavailable, Message: "the messages are not there yet"}
			return fmt.Errorf("read %s from %d to %d: %w: %w", stream, first, last, missing, errStreamShorter)
		}
		if err := Sleep(ctx, behindPause); err != nil {
			return err
		}
	}
	return nil
}

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

// appendRecords appends the events of a message; one that cannot be decoded becomes a dead letter.
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

// decode decodes the events of a message. A panic of the decoder becomes an error.
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
