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

// Difference is a setting of a stream or consumer that is not as declared.
type Difference struct {
	Setting string // such as "max_age"
	Have    string // what the server has, in words; "absent" of what is not there
	Want    string // what schemas declares; begins with "at least" where more is no difference
	Failure string // why the server did not change it; "" where it was not asked to
}

// setting is a part of a configuration that schemas declares. What is declared
// nowhere else is compared and changed nowhere else.
type setting[C any] struct {
	name  string
	words func(c *C) string
	fits  func(have, want *C) bool
	set   func(to, from *C)
	least bool
}

// exact is a setting that has one right value.
func exact[C any, V comparable](name string, field func(*C) *V, words func(V) string) setting[C] {
	return setting[C]{
		name:  name,
		words: func(c *C) string { return words(*field(c)) },
		fits:  func(have, want *C) bool { return *field(have) == *field(want) },
		set:   func(to, from *C) { *field(to) = *field(from) },
	}
}

// least is a setting of which more is right as well. Values that are not
// positive have no limit where the server reads them so.
func least[C any, V cmp.Ordered](name string, field func(*C) *V, words func(V) string) setting[C] {
	s := exact(name, field, words)
	var none V
	s.fits = func(have, want *C) bool { return *field(have) <= none || *field(have) >= *field(want) }
	s.least = true
	return s
}

// streamSettings are those that Stream declares, and those that would lose
// messages if somebody set them.
var streamSettings = []setting[jetstream.StreamConfig]{
	{
		name: "subjects",
		words: func(c *jetstream.StreamConfig) string {
			return strings.Join(slices.Sorted(slices.Values(c.Subjects)), " ")
		},
		fits: func(have, want *jetstream.StreamConfig) bool {
			return slices.Equal(slices.Sorted(slices.Values(have.Subjects)), slices.Sorted(slices.Values(want.Subjects)))
		},
		set: func(to, from *jetstream.StreamConfig) { to.Subjects = from.Subjects },
	},
	least("max_age", func(c *jetstream.StreamConfig) *time.Duration { return &c.MaxAge }, spanWords),
	least("max_bytes", func(c *jetstream.StreamConfig) *int64 { return &c.MaxBytes }, limitWords[int64]),
	least("replicas", func(c *jetstream.StreamConfig) *int { return &c.Replicas }, limitWords[int]),
	exact("duplicate_window", func(c *jetstream.StreamConfig) *time.Duration { return &c.Duplicates }, spanWords),
	exact("max_message_bytes", func(c *jetstream.StreamConfig) *int32 { return &c.MaxMsgSize }, limitWords[int32]),
	exact("storage", func(c *jetstream.StreamConfig) *jetstream.StorageType { return &c.Storage }, stringWords[jetstream.StorageType]),
	exact("retention", func(c *jetstream.StreamConfig) *jetstream.RetentionPolicy { return &c.Retention }, stringWords[jetstream.RetentionPolicy]),
	exact("discard", func(c *jetstream.StreamConfig) *jetstream.DiscardPolicy { return &c.Discard }, stringWords[jetstream.DiscardPolicy]),
	exact("allow_direct", func(c *jetstream.StreamConfig) *bool { return &c.AllowDirect }, plainWords[bool]),
	exact("sealed", func(c *jetstream.StreamConfig) *bool { return &c.Sealed }, plainWords[bool]),
	exact("no_ack", func(c *jetstream.StreamConfig) *bool { return &c.NoAck }, plainWords[bool]),
	exact("max_messages", func(c *jetstream.StreamConfig) *int64 { return &c.MaxMsgs }, limitWords[int64]),
	exact("max_messages_per_subject", func(c *jetstream.StreamConfig) *int64 { return &c.MaxMsgsPerSubject }, limitWords[int64]),
	exact("max_consumers", func(c *jetstream.StreamConfig) *int { return &c.MaxConsumers }, limitWords[int]),
}

// streamConfig is a stream as NATS is asked for it.
func streamConfig(s schemas.Stream) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.Name, Subjects: s.Subjects, MaxAge: s.MaxAge, MaxBytes: s.MaxBytes, Replicas: s.Replicas, Duplicates: s.Duplicates, MaxMsgSize: s.MaxMessage,
		Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld, Retention: jetstream.LimitsPolicy, AllowDirect: true,
		MaxMsgs: -1, MaxMsgsPerSubject: -1, MaxConsumers: -1,
	}
}

// durableSettings are those that Durable declares.
var durableSettings = []setting[jetstream.ConsumerConfig]{
	exact("ack_policy", func(c *jetstream.ConsumerConfig) *jetstream.AckPolicy { return &c.AckPolicy }, stringWords[jetstream.AckPolicy]),
	exact("deliver_policy", func(c *jetstream.ConsumerConfig) *jetstream.DeliverPolicy { return &c.DeliverPolicy }, stringWords[jetstream.DeliverPolicy]),
	exact("filter_subject", func(c *jetstream.ConsumerConfig) *string { return &c.FilterSubject }, plainWords[string]),
	exact("ack_wait", func(c *jetstream.ConsumerConfig) *time.Duration { return &c.AckWait }, spanWords),
	exact("max_ack_pending", func(c *jetstream.ConsumerConfig) *int { return &c.MaxAckPending }, limitWords[int]),
}

// durableConfig is a durable as NATS is asked for it.
func durableConfig(d schemas.Durable) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{Durable: d.Name, AckPolicy: jetstream.AckAllPolicy, AckWait: d.AckWait, MaxAckPending: d.MaxAckPending, DeliverPolicy: jetstream.DeliverAllPolicy}
}

// compare tells what is not as declared.
func compare[C any](settings []setting[C], have, want C) []Difference {
	var all []Difference
	for _, s := range settings {
		if s.fits(&have, &want) {
			continue
		}
		d := Difference{Setting: s.name, Have: s.words(&have), Want: s.words(&want)}
		if s.least {
			d.Want = "at least " + d.Want
		}
		all = append(all, d)
	}
	return all
}

// merge is have with what is declared; all else stays as somebody set it.
func merge[C any](settings []setting[C], have, want C) C {
	for _, s := range settings {
		if !s.fits(&have, &want) {
			s.set(&have, &want)
		}
	}
	return have
}

// apply changes have to want: all at once, else whatever can be changed alone,
// again while that helps, because one limit may stand in another's way. It
// returns what stays different and why.
func apply[C any](settings []setting[C], have, want C, update func(C) error) []Difference {
	if len(compare(settings, have, want)) == 0 || update(merge(settings, have, want)) == nil {
		return nil
	}
	failures := map[string]error{}
	for changed := true; changed; {
		changed = false
		for _, s := range settings {
			if s.fits(&have, &want) {
				continue
			}
			next := have
			s.set(&next, &want)
			if failures[s.name] = update(next); failures[s.name] == nil {
				have, changed = next, true
			}
		}
	}
	rest := compare(settings, have, want)
	for i := range rest {
		rest[i].Failure = reasonWords(failures[rest[i].Setting])
	}
	return rest
}

// reasonWords is what the server answered, without its numbers.
func reasonWords(err error) string {
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.Description != "" {
		return refused.Description
	}
	return unavailable(err).Error()
}

// spanWords writes a duration without empty parts: "168h", not "168h0m0s".
func spanWords(d time.Duration) string {
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

func limitWords[V int | int32 | int64](n V) string {
	if n < 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func stringWords[V fmt.Stringer](v V) string { return strings.ToLower(v.String()) }

func plainWords[V any](v V) string { return fmt.Sprint(v) }
