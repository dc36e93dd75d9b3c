package bus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

type streamConfig = jetstream.StreamConfig

// declaredSetting is a field of a configuration that schemas declares. Other settings are neither
// compared nor changed.
type declaredSetting struct {
	name    string
	format  func(c *streamConfig) string
	matches func(have, want *streamConfig) bool
	copy    func(to, from *streamConfig)
	minimum bool
}

// exact is a setting that must equal its declaration.
func exact[V comparable](
	name string, field func(*streamConfig) *V, format func(V) string,
) declaredSetting {
	return declaredSetting{
		name:    name,
		format:  func(c *streamConfig) string { return format(*field(c)) },
		matches: func(have, want *streamConfig) bool { return *field(have) == *field(want) },
		copy:    func(to, from *streamConfig) { *field(to) = *field(from) },
	}
}

// atLeast is a setting that may be higher than declared. The server treats values below 1 as
// unlimited.
func atLeast[V cmp.Ordered](
	name string, field func(*streamConfig) *V, format func(V) string,
) declaredSetting {
	s := exact(name, field, format)
	s.matches = func(have, want *streamConfig) bool {
		var zero V
		return *field(have) <= zero || *field(have) >= *field(want)
	}
	s.minimum = true
	return s
}

// streamSettings are the settings that schemas.Stream declares, and the settings that would lose
// messages if they were changed.
var streamSettings = []declaredSetting{
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

// durableConfig is the configuration of a declared durable consumer.
func durableConfig(d schemas.Durable) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       d.Name,
		AckPolicy:     jetstream.AckAllPolicy,
		AckWait:       d.AckWait,
		MaxAckPending: d.MaxAckPending,
		DeliverPolicy: jetstream.DeliverAllPolicy,
	}
}

// compare describes each setting in which have differs from want, such as "max_age is 2m, want at
// least 168h".
func compare(have, want streamConfig) []string {
	var all []string
	for _, s := range streamSettings {
		if s.matches(&have, &want) {
			continue
		}
		bound := ""
		if s.minimum {
			bound = "at least "
		}
		all = append(all,
			fmt.Sprintf("%s is %s, want %s%s", s.name, s.format(&have), bound, s.format(&want)))
	}
	return all
}

// merge returns have with the declared settings of want. Other settings stay.
func merge(have, want streamConfig) streamConfig {
	for _, s := range streamSettings {
		if !s.matches(&have, &want) {
			s.copy(&have, &want)
		}
	}
	return have
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
