package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamState is a stream as schemas declares it beside what the server has.
type StreamState struct {
	Declared    schemas.Stream
	Found       bool           // the server has it; if not all below is empty
	Server      schemas.Stream // its limits there; MaxAge 0 and MaxBytes below 0 are no limit
	Messages    uint64
	Bytes       uint64
	First, Last uint64    // sequences
	OldestAt    time.Time // by the server's clock; zero where there is no message
	Differences []Difference
	Consumers   []ConsumerState // durables first, then by name
}

// ConsumerState is how far a reader of a stream has come.
type ConsumerState struct {
	Name        string
	Durable     bool   // it outlives its process; a follower does not
	Declared    bool   // schemas says how it must be
	Pending     uint64 // messages that it has not been sent yet
	AckPending  int    // messages that it was sent and has not acknowledged
	Redelivered int    // of those, sent more than once
	Differences []Difference
}

// Absent is what a Difference says of what is not there at all.
const Absent = "absent"

// OK reports whether the stream and its declared consumers are as declared. A
// durable that is not there is made by the service that reads with it.
func (s *StreamState) OK() bool {
	return len(s.Differences) == 0 && !slices.ContainsFunc(s.Consumers, func(c ConsumerState) bool { return len(c.Differences) > 0 })
}

// Streams tells how each declared stream is on the server, and changes nothing.
func (b *Bus) Streams(ctx context.Context) ([]StreamState, error) {
	var all []StreamState
	for _, s := range b.declaredStreams() {
		state, err := b.streamState(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("look at stream %s: %w", s.Name, unavailable(err))
		}
		all = append(all, *state)
	}
	return all, nil
}

func (b *Bus) streamState(ctx context.Context, s schemas.Stream) (*StreamState, error) {
	state := &StreamState{Declared: s}
	stream, err := b.js.Stream(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		state.Differences = []Difference{{Setting: "stream", Have: Absent, Want: "present"}}
		return state, nil
	}
	if err != nil {
		return nil, err
	}
	info := stream.CachedInfo()
	have := info.Config
	state.Found = true
	state.Server = schemas.Stream{Name: s.Name, Subjects: have.Subjects, MaxAge: have.MaxAge, MaxBytes: have.MaxBytes, Replicas: have.Replicas, Duplicates: have.Duplicates, MaxMessage: have.MaxMsgSize}
	state.Messages, state.Bytes, state.First, state.Last = info.State.Msgs, info.State.Bytes, info.State.FirstSeq, info.State.LastSeq
	if state.Messages > 0 {
		state.OldestAt = info.State.FirstTime.UTC()
	}
	state.Differences = compare(streamSettings, have, streamConfig(s))
	state.Consumers, err = consumerStates(ctx, stream)
	return state, err
}

func consumerStates(ctx context.Context, stream jetstream.Stream) ([]ConsumerState, error) {
	var all []ConsumerState
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		c := ConsumerState{Name: info.Name, Durable: info.Config.Durable != "", Pending: info.NumPending, AckPending: info.NumAckPending, Redelivered: info.NumRedelivered}
		if d := declared(info.Stream, info.Name); d != nil {
			c.Declared, c.Differences = true, compare(durableSettings, info.Config, durableConfig(*d))
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(x, y ConsumerState) int {
		if x.Durable != y.Durable {
			return map[bool]int{true: -1, false: 1}[x.Durable]
		}
		return strings.Compare(x.Name, y.Name)
	})
	return all, list.Err()
}

// declared finds what schemas says of a consumer; nil: nothing.
func declared(stream, name string) *schemas.Durable {
	all := schemas.StoreDurables()
	i := slices.IndexFunc(all, func(d schemas.Durable) bool { return d.Stream == stream && d.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// ApplyStreams creates what is absent and changes what differs, where NATS can,
// and returns the state after that. Each Difference that is left says why. It
// never drops a message: limits are only widened.
func (b *Bus) ApplyStreams(ctx context.Context) ([]StreamState, error) {
	failures := map[string]string{}
	remember := func(place string, rest []Difference) {
		for _, d := range rest {
			failures[place+" "+d.Setting] = d.Failure
		}
	}
	for _, s := range b.declaredStreams() {
		rest, err := b.applyStream(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("change stream %s: %w", s.Name, unavailable(err))
		}
		remember(s.Name, rest)
	}
	for _, d := range schemas.StoreDurables() {
		rest, err := b.applyDurable(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("change durable %s: %w", d.Name, unavailable(err))
		}
		remember(d.Stream+" "+d.Name, rest)
	}
	all, err := b.Streams(ctx)
	for i := range all {
		s := &all[i]
		explain(s.Declared.Name, s.Differences, failures)
		for j := range s.Consumers {
			explain(s.Declared.Name+" "+s.Consumers[j].Name, s.Consumers[j].Differences, failures)
		}
	}
	return all, err
}

// explain adds to differences why they are left.
func explain(place string, differences []Difference, failures map[string]string) {
	for i := range differences {
		d := &differences[i]
		if d.Failure = failures[place+" "+d.Setting]; d.Failure == "" {
			d.Failure = "somebody changed it meanwhile"
		}
	}
}

func (b *Bus) applyStream(ctx context.Context, s schemas.Stream) ([]Difference, error) {
	stream, err := b.js.Stream(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if _, err := b.js.CreateStream(ctx, streamConfig(s)); err != nil {
			return []Difference{{Setting: "stream", Failure: reasonWords(err)}}, ctx.Err()
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rest := apply(streamSettings, stream.CachedInfo().Config, streamConfig(s), func(c jetstream.StreamConfig) error {
		_, err := b.js.UpdateStream(ctx, c)
		return err
	})
	return rest, ctx.Err()
}

func (b *Bus) applyDurable(ctx context.Context, d schemas.Durable) ([]Difference, error) {
	consumer, err := b.js.Consumer(ctx, d.Stream, d.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rest := apply(durableSettings, consumer.CachedInfo().Config, durableConfig(d), func(c jetstream.ConsumerConfig) error {
		_, err := b.js.UpdateConsumer(ctx, d.Stream, c)
		return err
	})
	return rest, ctx.Err()
}

// prepareStream creates a stream or changes it to what is declared, as a whole
// or not at all. The error names what differs.
func (b *Bus) prepareStream(ctx context.Context, s schemas.Stream) error {
	want := streamConfig(s)
	stream, err := b.js.Stream(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		ctx, done := b.permitted(ctx, "$JS.API.STREAM.CREATE."+s.Name)
		_, err := b.js.CreateStream(ctx, want)
		if err = done(err); err != nil {
			return fmt.Errorf("create stream %s: %w", s.Name, unavailable(err))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", s.Name, unavailable(err))
	}
	have := stream.CachedInfo().Config
	differences := compare(streamSettings, have, want)
	if len(differences) == 0 {
		return nil
	}
	err = b.updateStream(ctx, merge(streamSettings, have, want))
	if isOverlap(err) {
		// A newer version moved a subject to a stream of its own. Its messages are stored there,
		// and this version can go on with the rest.
		b.log.Warn("subjects of a stream are stored by another one",
			"stream", s.Name, "declared", strings.Join(s.Subjects, " "), "error", err)
		want.Subjects = have.Subjects
		if differences = compare(streamSettings, have, want); len(differences) == 0 {
			return nil
		}
		err = b.updateStream(ctx, merge(streamSettings, have, want))
	}
	if err != nil {
		words := make([]string, len(differences))
		for i, d := range differences {
			words[i] = fmt.Sprintf("%s is %s, want %s", d.Setting, d.Have, d.Want)
		}
		return fmt.Errorf("change stream %s (%s): %w", s.Name, strings.Join(words, "; "), unavailable(err))
	}
	b.log.Info("stream changed to what is declared", "stream", s.Name, "settings", len(differences))
	return nil
}

// updateStream changes a stream, as far as the user's rights allow.
func (b *Bus) updateStream(ctx context.Context, c jetstream.StreamConfig) error {
	ctx, done := b.permitted(ctx, "$JS.API.STREAM.UPDATE."+c.Name)
	_, err := b.js.UpdateStream(ctx, c)
	return done(err)
}

// isOverlap reports whether the server refused subjects because another stream has them.
func isOverlap(err error) bool {
	const streamSubjectOverlap = 10065 // JSStreamSubjectOverlapErr of nats-server
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == streamSubjectOverlap
}

// declaredStreams are the streams of schemas, with at least as many copies as this
// Bus was asked to keep.
func (b *Bus) declaredStreams() []schemas.Stream {
	all := schemas.Streams()
	for i := range all {
		all[i].Replicas = max(all[i].Replicas, b.least)
	}
	return all
}
