package bus_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// outside returns a JetStream client that is not a Bus.
func outside(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// editNode changes the configuration of the stream NODE without a Bus.
func editNode(t *testing.T, js jetstream.JetStream, change func(*jetstream.StreamConfig)) {
	t.Helper()
	editStream(t, js, schemas.StreamNode, change)
}

// editStream changes the configuration of a stream without a Bus.
func editStream(
	t *testing.T, js jetstream.JetStream, name string, change func(*jetstream.StreamConfig),
) {
	t.Helper()
	stream, err := js.Stream(within(t), name)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	change(&c)
	if _, err := js.UpdateStream(within(t), c); err != nil {
		t.Fatal(err)
	}
}

// node returns the state of the stream NODE, and fails if another stream differs from its
// declaration.
func node(t *testing.T, all []bus.StreamState, err error) bus.StreamState {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var found bus.StreamState
	for _, s := range all {
		if s.Declared.Name == schemas.StreamNode {
			found = s
		} else if !s.OK() {
			t.Errorf("stream %s: got differences %+v, want none", s.Declared.Name, s.Differences)
		}
	}
	return found
}

// formatAll formats differences as "setting: have, want (failure)".
func formatAll(all []bus.Difference) string {
	var lines []string
	for _, d := range all {
		line := fmt.Sprintf("%s: %s, %s", d.Setting, d.Have, d.Want)
		if d.Failure != "" {
			line += " (" + d.Failure + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func TestStreams_AreAsDeclaredAfterPrepare(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	publish(t, b, 1, 4)
	states, err := b.Streams(within(t))
	s := node(t, states, err)
	if len(states) != len(schemas.Streams()) || !s.Found || !s.OK() {
		t.Errorf("%d streams and differences of NODE %q, want all streams and no difference",
			len(states), formatAll(s.Differences))
	}
	if s.Messages != 3 || s.First != 1 || s.Last != 3 || s.Bytes == 0 ||
		time.Since(s.OldestAt) > time.Minute ||
		s.Server.MaxAge != 7*24*time.Hour ||
		s.Server.MaxBytes != 1<<30 {
		t.Errorf("got NODE %+v, want a recent message and the declared limits", s)
	}
}

// Each case changes NODE without a Bus, and lists the differences before and after ApplyStreams.
func TestApplyStreams_AppliesWhatNATSAllows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*jetstream.StreamConfig)
		want   string
	}{
		{
			"shorter", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
			"max_age: 1h, at least 168h",
		},
		{
			"a higher limit of the operator",
			func(c *jetstream.StreamConfig) { c.MaxAge, c.MaxBytes = 8760*time.Hour, 8<<30 },
			"",
		},
		{"unlimited", func(c *jetstream.StreamConfig) { c.MaxAge, c.MaxBytes = 0, -1 }, ""},
		{
			"smaller",
			func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 },
			"max_bytes: 1048576, at least 1073741824",
		},
		{
			"an age limited by the duplicate window",
			func(c *jetstream.StreamConfig) { c.Duplicates, c.MaxAge = time.Minute, time.Minute },
			"max_age: 1m, at least 168h; duplicate_window: 1m, 2m",
		},
		{
			"other subjects",
			func(c *jetstream.StreamConfig) {
				c.Subjects = []string{"node.*.sample", "node.*.other"}
			},
			"subjects: node.*.other node.*.sample, node.*.sample",
		},
		{
			"smaller messages, rejected when full",
			func(c *jetstream.StreamConfig) {
				c.MaxMsgSize, c.Discard = 1024, jetstream.DiscardNew
			},
			"max_message_bytes: 1024, 262144; discard: discardnew, discardold",
		},
		{
			"fewer messages",
			func(c *jetstream.StreamConfig) { c.MaxMsgs, c.MaxMsgsPerSubject = 5, 1 },
			"max_messages: 5, unlimited; max_messages_per_subject: 1, unlimited",
		},
		{
			"no direct reads", func(c *jetstream.StreamConfig) { c.AllowDirect = false },
			"allow_direct: false, true",
		},
		{"an undeclared setting", func(c *jetstream.StreamConfig) { c.Description = "ours" }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := bustest.NewServer(t)
			b, js := server.Connect(t), outside(t, server.URL())
			publish(t, b, 1, 2)
			editNode(t, js, c.change)
			before, err := b.Streams(within(t))
			if s := node(t, before, err); formatAll(s.Differences) != c.want {
				t.Errorf("Streams: NODE differs in %q, want %q", formatAll(s.Differences), c.want)
			}
			for range 2 { // the second call changes nothing
				after, err := b.ApplyStreams(within(t))
				if s := node(t, after, err); !s.OK() || s.Messages != 1 {
					t.Errorf("ApplyStreams left the differences %q and %d messages, want none and 1",
						formatAll(s.Differences),
						s.Messages)
				}
			}
			stream, err := js.Stream(within(t), schemas.StreamNode)
			if err != nil {
				t.Fatal(err)
			}
			if got := stream.CachedInfo().Config; c.want == "" {
				want := got
				if c.change(&want); want.MaxAge != got.MaxAge || want.MaxBytes != got.MaxBytes ||
					want.Description != got.Description {
					t.Errorf("ApplyStreams changed an undeclared setting: %+v", got)
				}
			}
		})
	}
}

func TestApplyStreams_CreatesMissingStreams(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	if err := js.DeleteStream(within(t), schemas.StreamNode); err != nil {
		t.Fatal(err)
	}
	states, err := b.Streams(within(t))
	if s := node(t, states, err); s.Found || formatAll(s.Differences) != "stream: absent, present" {
		t.Errorf("Streams() = %+v, want an absent stream", s)
	}
	states, err = b.ApplyStreams(within(t))
	if s := node(t, states, err); !s.Found || !s.OK() {
		t.Errorf("ApplyStreams() = %+v, want a stream without differences", s)
	}
}

// A setting that NATS cannot change is reported with the reason of the server. The other
// settings are changed. Prepare reports the same.
func TestApplyStreams_ReportsRejectedSettings(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	if err := js.DeleteStream(within(t), schemas.StreamNode); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(
		within(t),
		jetstream.StreamConfig{
			Name:     schemas.StreamNode,
			Subjects: []string{"node.*.sample"},
			Storage:  jetstream.MemoryStorage,
			MaxAge:   time.Minute,
			MaxBytes: 1 << 20,
		},
	); err != nil {
		t.Fatal(err)
	}
	err := b.Prepare(within(t))
	if err == nil || !strings.Contains(err.Error(),
		"change stream NODE (max_age is 1m, want at least 168h; ") ||
		!strings.Contains(err.Error(), "storage is memory, want file") {
		t.Errorf("Prepare = %v, want the differences of NODE", err)
	}
	states, err := b.ApplyStreams(within(t))
	s := node(t, states, err)
	want := "max_bytes: 1048576, at least 1073741824 (insufficient memory resources available); storage: " +
		"memory, file (stream configuration update can not change storage type)"
	if formatAll(s.Differences) != want {
		t.Errorf("ApplyStreams left %s\nwant %s", formatAll(s.Differences), want)
	}
	if s.Server.MaxAge != 7*24*time.Hour || s.Server.Duplicates != 2*time.Minute {
		t.Errorf("got settings %+v, want the other settings changed", s.Server)
	}
}

// If another stream has the subjects, the stream cannot be created.
func TestApplyStreams_ReportsOverlappingSubjects(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	if err := js.DeleteStream(within(t), schemas.StreamNode); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(
		within(t),
		jetstream.StreamConfig{Name: "THEIRS", Subjects: []string{"node.>"}},
	); err != nil {
		t.Fatal(err)
	}
	states, err := b.ApplyStreams(within(t))
	if s := node(t, states, err); formatAll(
		s.Differences,
	) != "stream: absent, present (subjects overlap with an existing stream)" {
		t.Errorf("ApplyStreams left %s, want an absent stream with overlapping subjects",
			formatAll(s.Differences))
	}
}

// Prepare keeps higher limits, so that a restart does not undo the change of an operator.
func TestPrepare_KeepsHigherLimits(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	editNode(t, js, func(c *jetstream.StreamConfig) {
		c.MaxAge, c.MaxMsgSize = 1000*time.Hour, 1024
	})
	if err := b.Prepare(within(t)); err != nil {
		t.Fatal(err)
	}
	states, err := b.Streams(within(t))
	if s := node(t, states, err); !s.OK() || s.Server.MaxAge != 1000*time.Hour ||
		s.Server.MaxMessage != schemas.MaxMessageBytes {
		t.Errorf("NODE after Prepare = %+v, want an age of 1000 h and messages of full size",
			s.Server)
	}
}

func TestStreams_ReportTheProgressOfConsumers(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	publish(t, b, 1, 11)
	d := schemas.StoreDurables()[1]
	c, err := js.CreateConsumer(
		within(t),
		d.Stream,
		jetstream.ConsumerConfig{
			Durable:       d.Name,
			AckPolicy:     jetstream.AckAllPolicy,
			AckWait:       200 * time.Millisecond,
			MaxAckPending: 100,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateConsumer(
		within(t),
		d.Stream,
		jetstream.ConsumerConfig{Name: "passing", AckPolicy: jetstream.AckNonePolicy},
	); err != nil {
		t.Fatal(err)
	}
	for range 2 { // fetched without an acknowledgement, so that they are redelivered
		batch, err := c.Fetch(4, jetstream.FetchMaxWait(patience))
		if err != nil {
			t.Fatal(err)
		}
		for range batch.Messages() {
		}
	}
	states, err := b.Streams(within(t))
	s := node(t, states, err)
	if len(s.Consumers) != 2 || s.Consumers[0].Name != d.Name || s.Consumers[1].Name != "passing" {
		t.Fatalf("got consumers %+v, want the durable first", s.Consumers)
	}
	got, other := s.Consumers[0], s.Consumers[1]
	if !got.Durable || !got.Declared || got.Pending+uint64(got.AckPending) != 10 ||
		got.AckPending < 4 ||
		other.Durable ||
		other.Declared ||
		other.Pending != 10 {
		t.Errorf("consumers = %+v, want another one that is not declared, with 10 pending",
			s.Consumers)
	}
	if w := formatAll(got.Differences); w != fmt.Sprintf(
		"ack_wait: 200ms, 1m30s; max_ack_pending: 100, %d",
		d.MaxAckPending,
	) ||
		s.OK() {
		t.Errorf("differences of the durable = %q, want ack_wait and max_ack_pending", w)
	}
	states, err = b.ApplyStreams(within(t))
	if s := node(t, states, err); !s.OK() || s.Consumers[0].AckPending < 4 {
		t.Errorf("consumers after ApplyStreams = %+v, want 4 unacknowledged or more", s.Consumers)
	}
}

// The writers of shards need no durables, and that of a single server is unused.
func TestStreams_DeclareNoDurablesForShards(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	m := &schemas.ShardMap{Version: 2, Shards: []schemas.Shard{{Weight: 1}, {Weight: 1}}}
	if err := b.SetShardMap(within(t), m, 0); err != nil {
		t.Fatal(err)
	}
	_, err := js.CreateConsumer(within(t), schemas.StreamNode, jetstream.ConsumerConfig{
		Durable:       "store-NODE",
		AckPolicy:     jetstream.AckAllPolicy,
		MaxAckPending: 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(context.Context) ([]bus.StreamState, error){
		"Streams": b.Streams, "ApplyStreams": b.ApplyStreams,
	} {
		states, err := read(within(t))
		s := node(t, states, err)
		if len(s.Missing) > 0 || !s.OK() || s.Consumers[0].Declared {
			t.Errorf("%s: missing %q and consumers %+v, want only an undeclared one",
				name, s.Missing, s.Consumers)
		}
	}
}

// The ack policy of a durable cannot be changed.
func TestApplyStreams_ReportsRejectedSettingsOfADurable(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	d := schemas.StoreDurables()[1]
	if _, err := js.CreateConsumer(
		within(t),
		d.Stream,
		jetstream.ConsumerConfig{
			Durable:       d.Name,
			AckPolicy:     jetstream.AckExplicitPolicy,
			AckWait:       time.Second,
			MaxAckPending: d.MaxAckPending,
		},
	); err != nil {
		t.Fatal(err)
	}
	states, err := b.ApplyStreams(within(t))
	s := node(t, states, err)
	if rest := s.Consumers[0].Differences; len(rest) != 1 || rest[0].Setting != "ack_policy" ||
		rest[0].Failure == "" {
		t.Errorf("ApplyStreams left %s, want ack_policy with a failure", formatAll(rest))
	}
}

func TestStreams_ReportAnUnreachableServer(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b := server.Connect(t)
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for name, call := range map[string]func(context.Context) ([]bus.StreamState, error){
		"Streams":      b.Streams,
		"ApplyStreams": b.ApplyStreams,
	} {
		if _, err := call(ctx); err == nil || !strings.Contains(err.Error(),
			"nats does not answer") {
			t.Errorf("%s without a server = %v, want nats does not answer", name, err)
		}
	}
}

// Two services that start at once prepare the same streams.
func TestPrepare_AtOnce(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	first := server.Connect(t)
	js := outside(t, server.URL())
	for _, s := range schemas.Streams() {
		if err := js.DeleteStream(within(t), s.Name); err != nil {
			t.Fatal(err)
		}
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		b, err := bus.Connect(within(t), bus.Options{URL: server.URL()},
			slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		go func() { errs <- b.Prepare(within(t)) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	states, err := first.Streams(within(t))
	if err != nil || slices.ContainsFunc(states, func(s bus.StreamState) bool { return !s.OK() }) {
		t.Errorf("streams after four concurrent calls = %+v, %v, want no difference", states, err)
	}
}

// A single server cannot keep three replicas. The difference is reported, and the stream stays.
func TestStreams_RequireTheReplicasOfTheOptions(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	server.Connect(t)
	b, err := bus.Connect(within(t), bus.Options{
		URL:      server.URL(),
		Replicas: 3,
	}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	states, err := b.Streams(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if w := formatAll(s.Differences); w != "replicas: 1, at least 3" {
			t.Errorf("differences of %s = %q, want only replicas: 1, at least 3", s.Declared.Name, w)
		}
	}
	if err := b.Prepare(within(t)); err == nil || !strings.Contains(err.Error(),
		"replicas is 1, want at least 3") {
		t.Errorf("Prepare on one server = %v, want too few replicas", err)
	}
}
