package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamState compares a declared stream with the one on the server.
type StreamState struct {
	Declared    schemas.Stream
	Found       bool           // the server has the stream; if false, only Differences and Missing are set
	Server      schemas.Stream // settings on the server; MaxAge 0 and MaxBytes below 0: unlimited
	Messages    uint64
	Bytes       uint64
	First, Last uint64    // sequences
	OldestAt    time.Time // by the server's clock; zero for an empty stream
	Differences []Difference
	Consumers   []ConsumerState // durables first, then by name
	Missing     []string        // declared consumers that do not exist yet
}

// ConsumerState describes the progress of a consumer of a stream.
type ConsumerState struct {
	Name        string
	Durable     bool   // outlives its process; the consumer of Follow does not
	Declared    bool   // it is a consumer of the current store, whose settings schemas declares
	Pending     uint64 // messages not delivered yet
	AckPending  int    // messages delivered and not acknowledged
	Redelivered int    // of those, delivered more than once
	Differences []Difference
}

// Absent is Difference.Have for a stream that does not exist.
const Absent = "absent"

// OK reports whether the stream and its declared consumers have their declared settings. A
// missing durable is not a difference: the service that uses it creates it.
func (s *StreamState) OK() bool {
	differs := func(c ConsumerState) bool { return len(c.Differences) > 0 }
	return len(s.Differences) == 0 && !slices.ContainsFunc(s.Consumers, differs)
}

// Streams returns the state of each declared stream. It changes nothing.
func (b *Bus) Streams(ctx context.Context) ([]StreamState, error) {
	durables, err := b.storeDurables(ctx)
	if err != nil {
		return nil, err
	}
	var all []StreamState
	for _, s := range b.declaredStreams() {
		state, err := b.streamState(ctx, s, durables)
		if err != nil {
			return nil, fmt.Errorf("inspect stream %s: %w", s.Name, unavailable(err))
		}
		all = append(all, *state)
	}
	return all, nil
}

// storeDurables returns the consumers of the store: one for each stream, and none if a shard map is
// recorded, because the writers of shards read by a Feed.
func (b *Bus) storeDurables(ctx context.Context) ([]schemas.Durable, error) {
	m, _, err := b.ShardMap(ctx)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return schemas.StoreDurables(), nil
	}
	if m != nil || err != nil {
		return nil, err
	}
	return schemas.StoreDurables(), nil
}

func (b *Bus) streamState(
	ctx context.Context, s schemas.Stream, durables []schemas.Durable,
) (*StreamState, error) {
	declared := make(map[string]schemas.Durable)
	for _, d := range durables {
		if d.Stream == s.Name {
			declared[d.Name] = d
		}
	}
	state := &StreamState{Declared: s, Missing: slices.Sorted(maps.Keys(declared))}
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
	state.Server = schemas.Stream{
		Name:       s.Name,
		Subjects:   have.Subjects,
		MaxAge:     have.MaxAge,
		MaxBytes:   have.MaxBytes,
		Replicas:   have.Replicas,
		Duplicates: have.Duplicates,
		MaxMessage: have.MaxMsgSize,
	}
	state.Messages, state.Bytes = info.State.Msgs, info.State.Bytes
	state.First, state.Last = info.State.FirstSeq, info.State.LastSeq
	if state.Messages > 0 {
		state.OldestAt = info.State.FirstTime.UTC()
	}
	state.Differences = compare(streamSettings, have, declaredConfig(s))
	state.Consumers, err = consumerStates(ctx, stream, declared)
	state.Missing = slices.DeleteFunc(state.Missing, func(name string) bool {
		return slices.ContainsFunc(state.Consumers, func(c ConsumerState) bool { return c.Name == name })
	})
	return state, err
}

func consumerStates(
	ctx context.Context, stream jetstream.Stream, declared map[string]schemas.Durable,
) ([]ConsumerState, error) {
	var all []ConsumerState
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		c := ConsumerState{
			Name:        info.Name,
			Durable:     info.Config.Durable != "",
			Pending:     info.NumPending,
			AckPending:  info.NumAckPending,
			Redelivered: info.NumRedelivered,
		}
		if d, isDeclared := declared[info.Name]; isDeclared {
			c.Declared = true
			c.Differences = compare(durableSettings, info.Config, durableConfig(d))
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(x, y ConsumerState) int {
		if x.Durable != y.Durable {
			if x.Durable {
				return -1
			}
			return 1
		}
		return strings.Compare(x.Name, y.Name)
	})
	return all, list.Err()
}

// ApplyStreams creates missing streams and changes the settings that differ, as far as NATS
// allows, and returns the state afterwards. Each remaining Difference has a Failure. It never
// drops a message: limits are only raised.
func (b *Bus) ApplyStreams(ctx context.Context) ([]StreamState, error) {
	failures := map[string]string{} // by stream, consumer and setting
	remember := func(object string, rest []Difference) {
		for _, d := range rest {
			failures[object+" "+d.Setting] = d.Failure
		}
	}
	for _, s := range b.declaredStreams() {
		rest, err := b.applyStream(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("change stream %s: %w", s.Name, unavailable(err))
		}
		remember(s.Name, rest)
	}
	durables, err := b.storeDurables(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range durables {
		rest, err := b.applyDurable(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("change durable %s: %w", d.Name, unavailable(err))
		}
		remember(d.Stream+" "+d.Name, rest)
	}
	all, err := b.Streams(ctx)
	for i := range all {
		s := &all[i]
		setFailures(s.Declared.Name, s.Differences, failures)
		for j := range s.Consumers {
			c := &s.Consumers[j]
			setFailures(s.Declared.Name+" "+c.Name, c.Differences, failures)
		}
	}
	return all, err
}

// setFailures sets the Failure of the remaining differences of a stream or consumer.
func setFailures(object string, differences []Difference, failures map[string]string) {
	for i := range differences {
		d := &differences[i]
		if d.Failure = failures[object+" "+d.Setting]; d.Failure == "" {
			d.Failure = "another client changed it in the meantime"
		}
	}
}

func (b *Bus) applyStream(ctx context.Context, s schemas.Stream) ([]Difference, error) {
	stream, err := b.js.Stream(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if _, err := b.js.CreateStream(ctx, declaredConfig(s)); err != nil {
			return []Difference{{Setting: "stream", Failure: refusalReason(err)}}, ctx.Err()
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	update := func(c streamConfig) error {
		_, err := b.js.UpdateStream(ctx, c)
		return err
	}
	have, want := stream.CachedInfo().Config, declaredConfig(s)
	return apply(streamSettings, have, want, update), ctx.Err()
}

func (b *Bus) applyDurable(ctx context.Context, d schemas.Durable) ([]Difference, error) {
	consumer, err := b.js.Consumer(ctx, d.Stream, d.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) ||
		errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	update := func(c consumerConfig) error {
		_, err := b.js.UpdateConsumer(ctx, d.Stream, c)
		return err
	}
	have, want := consumer.CachedInfo().Config, durableConfig(d)
	return apply(durableSettings, have, want, update), ctx.Err()
}

// prepareStream creates a stream, or changes it to its declared settings. The change is all or
// nothing; the error names the settings that differ.
func (b *Bus) prepareStream(ctx context.Context, s schemas.Stream) error {
	want := declaredConfig(s)
	stream, err := b.js.Stream(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		ctx, done := b.watchPermission(ctx, "$JS.API.STREAM.CREATE."+s.Name)
		_, err := b.js.CreateStream(ctx, want)
		if err = done(err); err != nil {
			return fmt.Errorf("create stream %s: %w", s.Name, unavailable(err))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect stream %s: %w", s.Name, unavailable(err))
	}
	have := stream.CachedInfo().Config
	differences := compare(streamSettings, have, want)
	if len(differences) == 0 {
		return nil
	}
	err = b.updateStream(ctx, merge(streamSettings, have, want))
	if isOverlap(err) {
		// A newer version of Courier moved a subject to another stream, which stores its
		// messages. This version keeps the subjects that the stream has.
		b.log.Warn("another stream stores subjects of this stream",
			"stream", s.Name, "declared", strings.Join(s.Subjects, " "), "error", err)
		want.Subjects = have.Subjects
		if differences = compare(streamSettings, have, want); len(differences) == 0 {
			return nil
		}
		err = b.updateStream(ctx, merge(streamSettings, have, want))
	}
	if err != nil {
		texts := make([]string, len(differences))
		for i, d := range differences {
			texts[i] = fmt.Sprintf("%s is %s, want %s", d.Setting, d.Have, d.Want)
		}
		return fmt.Errorf("change stream %s (%s): %w",
			s.Name, strings.Join(texts, "; "), unavailable(err))
	}
	b.log.Info(
		"stream changed to its declared settings",
		"stream",
		s.Name,
		"settings",
		len(differences),
	)
	return nil
}

// updateStream changes the configuration of a stream.
func (b *Bus) updateStream(ctx context.Context, c streamConfig) error {
	ctx, done := b.watchPermission(ctx, "$JS.API.STREAM.UPDATE."+c.Name)
	_, err := b.js.UpdateStream(ctx, c)
	return done(err)
}

// isOverlap reports whether the server rejected subjects because another stream has them.
func isOverlap(err error) bool {
	const streamSubjectOverlap = 10065 // JSStreamSubjectOverlapErr of nats-server
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == streamSubjectOverlap
}

// declaredStreams are the streams of schemas, with at least Options.Replicas replicas.
func (b *Bus) declaredStreams() []schemas.Stream {
	all := schemas.Streams()
	for i := range all {
		all[i].Replicas = max(all[i].Replicas, b.minReplicas)
	}
	return all
}
