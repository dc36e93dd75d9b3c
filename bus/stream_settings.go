package bus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Difference is a setting of a stream or consumer that differs from its declaration.
type Difference struct {
	Setting string // such as "max_age"
	Have    string // value on the server; Absent if the stream does not exist
	Want    string // declared value; begins with "at least" for a minimum
	Failure string // why the server did not change it; "" if no change was attempted
}

// declaredSetting is a field of the configuration C that schemas declares. Settings outside
// of these lists are neither compared nor changed.
type declaredSetting[C any] struct {
	name    string
	format  func(c *C) string
	matches func(have, want *C) bool
	copy    func(to, from *C)
	minimum bool
}

// exact is a setting that must equal its declaration.
func exact[C any, V comparable](
	name string, field func(*C) *V, format func(V) string,
) declaredSetting[C] {
	return declaredSetting[C]{
		name:    name,
		format:  func(c *C) string { return format(*field(c)) },
		matches: func(have, want *C) bool { return *field(have) == *field(want) },
		copy:    func(to, from *C) { *field(to) = *field(from) },
	}
}

// atLeast is a setting that may be higher than declared. The server treats values below 1 as
// unlimited.
func atLeast[C any, V cmp.Ordered](
	name string, field func(*C) *V, format func(V) string,
) declaredSetting[C] {
	s := exact(name, field, format)
	s.matches = func(have, want *C) bool {
		var zero V
		return *field(have) <= zero || *field(have) >= *field(want)
	}
	s.minimum = true
	return s
}

type (
	streamConfig   = jetstream.StreamConfig
	consumerConfig = jetstream.ConsumerConfig
)

// streamSettings are the settings that schemas.Stream declares, and the settings that would lose
// messages if they were changed.
var streamSettings = []declaredSetting[streamConfig]{
	{
		name:   "subjects",
		format: func(c *streamConfig) string { return strings.Join(sorted(c.Subjects), " ") },
		matches: func(have, want *streamConfig) bool {
			return slices.Equal(sorted(have.Subjects), sorted(want.Subjects))
		},
		copy: func(to, from *streamConfig) { to.Subjects = from.Subjects },
	},
	atLeast("max_age", func(c *streamConfig) *time.Duration { return &c.MaxAge }, formatDuration),
	atLeast("max_bytes", func(c *streamConfig) *int64 { return &c.MaxBytes }, formatLimit[int64]),
	atLeast("replicas", func(c *streamConfig) *int { return &c.Replicas }, formatLimit[int]),
	exact("duplicate_window",
		func(c *streamConfig) *time.Duration { return &c.Duplicates }, formatDuration),
	exact("max_message_bytes",
		func(c *streamConfig) *int32 { return &c.MaxMsgSize }, formatLimit[int32]),
	exact("storage",
		func(c *streamConfig) *jetstream.StorageType { return &c.Storage },
		formatStringer[jetstream.StorageType]),
	exact("retention",
		func(c *streamConfig) *jetstream.RetentionPolicy { return &c.Retention },
		formatStringer[jetstream.RetentionPolicy]),
	exact("discard",
		func(c *streamConfig) *jetstream.DiscardPolicy { return &c.Discard },
		formatStringer[jetstream.DiscardPolicy]),
	exact("allow_direct", func(c *streamConfig) *bool { return &c.AllowDirect }, formatAny[bool]),
	exact("sealed", func(c *streamConfig) *bool { return &c.Sealed }, formatAny[bool]),
	exact("no_ack", func(c *streamConfig) *bool { return &c.NoAck }, formatAny[bool]),
	exact("max_messages", func(c *streamConfig) *int64 { return &c.MaxMsgs }, formatLimit[int64]),
	exact("max_messages_per_subject",
		func(c *streamConfig) *int64 { return &c.MaxMsgsPerSubject }, formatLimit[int64]),
	exact("max_consumers",
		func(c *streamConfig) *int { return &c.MaxConsumers }, formatLimit[int]),
}

func sorted(subjects []string) []string { return slices.Sorted(slices.Values(subjects)) }

// declaredConfig is the configuration of a declared stream.
func declaredConfig(s schemas.Stream) streamConfig {
	return streamConfig{
		Name:              s.Name,
		Subjects:          s.Subjects,
		MaxAge:            s.MaxAge,
		MaxBytes:          s.MaxBytes,
		Replicas:          s.Replicas,
		Duplicates:        s.Duplicates,
		MaxMsgSize:        s.MaxMessage,
		Storage:           jetstream.FileStorage,
		Discard:           jetstream.DiscardOld,
		Retention:         jetstream.LimitsPolicy,
		AllowDirect:       true,
		MaxMsgs:           -1,
		MaxMsgsPerSubject: -1,
		MaxConsumers:      -1,
	}
}

// durableSettings are the settings that schemas.Durable declares.
var durableSettings = []declaredSetting[consumerConfig]{
	exact("ack_policy",
		func(c *consumerConfig) *jetstream.AckPolicy { return &c.AckPolicy },
		formatStringer[jetstream.AckPolicy]),
	exact("deliver_policy",
		func(c *consumerConfig) *jetstream.DeliverPolicy { return &c.DeliverPolicy },
		formatStringer[jetstream.DeliverPolicy]),
	exact("filter_subject",
		func(c *consumerConfig) *string { return &c.FilterSubject }, formatAny[string]),
	exact("ack_wait",
		func(c *consumerConfig) *time.Duration { return &c.AckWait }, formatDuration),
	exact("max_ack_pending",
		func(c *consumerConfig) *int { return &c.MaxAckPending }, formatLimit[int]),
}

// durableConfig is the configuration of a declared durable consumer.
func durableConfig(d schemas.Durable) consumerConfig {
	return consumerConfig{
		Durable:       d.Name,
		AckPolicy:     jetstream.AckAllPolicy,
		AckWait:       d.AckWait,
		MaxAckPending: d.MaxAckPending,
		DeliverPolicy: jetstream.DeliverAllPolicy,
	}
}

// compare returns the settings in which have differs from want.
func compare[C any](settings []declaredSetting[C], have, want C) []Difference {
	var all []Difference
	for _, s := range settings {
		if s.matches(&have, &want) {
			continue
		}
		d := Difference{Setting: s.name, Have: s.format(&have), Want: s.format(&want)}
		if s.minimum {
			d.Want = "at least " + d.Want
		}
		all = append(all, d)
	}
	return all
}

// merge returns have with the declared settings of want. Other settings stay.
func merge[C any](settings []declaredSetting[C], have, want C) C {
	for _, s := range settings {
		if !s.matches(&have, &want) {
			s.copy(&have, &want)
		}
	}
	return have
}

// apply updates have to want and returns the differences that remain, with the reason. It first
// tries all settings at once. If that fails, it tries each setting alone, and repeats this as long
// as an update succeeds, because one limit may depend on another.
func apply[C any](settings []declaredSetting[C], have, want C, update func(C) error) []Difference {
	if len(compare(settings, have, want)) == 0 || update(merge(settings, have, want)) == nil {
		return nil
	}

	failures := map[string]error{}
	for changed := true; changed; {
		changed = false
		for _, s := range settings {
			if s.matches(&have, &want) {
				continue
			}
			next := have
			s.copy(&next, &want)
			if failures[s.name] = update(next); failures[s.name] == nil {
				have, changed = next, true
			}
		}
	}

	rest := compare(settings, have, want)
	for i := range rest {
		rest[i].Failure = refusalReason(failures[rest[i].Setting])
	}
	return rest
}

// refusalReason returns the server's description of an error, without its error codes.
func refusalReason(err error) string {
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.Description != "" {
		return refused.Description
	}
	return unavailable(err).Error()
}

// formatDuration formats a duration without zero parts: "168h" instead of "168h0m0s".
func formatDuration(d time.Duration) string {
	if d <= 0 {
		return "unlimited"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func formatLimit[V int | int32 | int64](n V) string {
	if n < 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func formatStringer[V fmt.Stringer](v V) string { return strings.ToLower(v.String()) }

func formatAny[V any](v V) string { return fmt.Sprint(v) }
