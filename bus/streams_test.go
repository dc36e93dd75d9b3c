package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// outside returns a JetStream client that is not a Bus.
func outside(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	must(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	must(t, err)
	return js
}

// editNode changes the configuration of the stream NODE without a Bus.
func editNode(t *testing.T, js jetstream.JetStream, change func(*jetstream.StreamConfig)) {
	t.Helper()
	editStream(t, js, schemas.StreamNode, change)
}

// editStream changes the configuration of a stream without a Bus.
func editStream(t *testing.T, js jetstream.JetStream, name string, change func(*jetstream.StreamConfig)) {
	t.Helper()
	stream, err := js.Stream(within(t), name)
	must(t, err)
	c := stream.CachedInfo().Config
	change(&c)
	if _, err := js.UpdateStream(within(t), c); err != nil {
		t.Fatal(err)
	}
}

// configs returns the configurations of the declared streams, by name.
func configs(t *testing.T, js jetstream.JetStream) map[string]jetstream.StreamConfig {
	t.Helper()
	all := map[string]jetstream.StreamConfig{}
	for _, s := range schemas.Streams() {
		stream, err := js.Stream(within(t), s.Name)
		must(t, err)
		all[s.Name] = stream.CachedInfo().Config
	}
	return all
}

// Each case changes NODE without a Bus. Prepare undoes the change, unless the operator has raised a
// limit or changed a setting that schemas does not declare.
func TestPrepare_ChangesStreamsToTheDeclaration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*jetstream.StreamConfig)
		kept   bool
	}{
		{"shorter", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, false},
		{
			"a higher limit of the operator",
			func(c *jetstream.StreamConfig) { c.MaxAge, c.MaxBytes = 8760*time.Hour, 8<<30 },
			true,
		},
		{"unlimited", func(c *jetstream.StreamConfig) { c.MaxAge, c.MaxBytes = 0, -1 }, true},
		{"smaller", func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }, false},
		{
			"an age limited by the duplicate window",
			func(c *jetstream.StreamConfig) { c.Duplicates, c.MaxAge = time.Minute, time.Minute },
			false,
		},
		{
			"other subjects",
			func(c *jetstream.StreamConfig) {
				c.Subjects = []string{"node.*.sample", "node.*.other"}
			},
			false,
		},
		{
			"smaller messages, rejected when full",
			func(c *jetstream.StreamConfig) {
				c.MaxMsgSize, c.Discard = 1024, jetstream.DiscardNew
			},
			false,
		},
		{"fewer messages", func(c *jetstream.StreamConfig) { c.MaxMsgs, c.MaxMsgsPerSubject = 5, 1 }, false},
		{"no direct reads", func(c *jetstream.StreamConfig) { c.AllowDirect = false }, false},
		{"an undeclared setting", func(c *jetstream.StreamConfig) { c.Description = "ours" }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := bustest.NewServer(t)
			b, js := server.Connect(t), outside(t, server.URL())
			publish(t, b, 1, 2)
			want := configs(t, js)
			editNode(t, js, c.change)
			if c.kept {
				want = configs(t, js)
			}
			for range 2 { // the second call changes nothing
				must(t, b.Prepare(within(t)))
				if diff := cmp.Diff(want, configs(t, js)); diff != "" {
					t.Errorf("streams after Prepare (-want +got):\n%s", diff)
				}
			}
			if last, err := b.LastSequence(within(t), schemas.StreamNode); err != nil || last != 1 {
				t.Errorf("NODE ends at %d, %v, want its message kept", last, err)
			}
		})
	}
}

// Prepare changes a stream completely or not at all, and names what differs.
func TestPrepare_ReportsRejectedSettings(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	must(t, js.DeleteStream(within(t), schemas.StreamNode))
	if _, err := js.CreateStream(within(t), jetstream.StreamConfig{
		Name:     schemas.StreamNode,
		Subjects: []string{"node.*.sample"},
		Storage:  jetstream.MemoryStorage,
		MaxAge:   time.Minute,
		MaxBytes: 1 << 20,
	}); err != nil {
		t.Fatal(err)
	}
	err := b.Prepare(within(t))
	if err == nil || !strings.Contains(err.Error(),
		"change stream NODE (max_bytes is 1048576, want 1073741824; ") ||
		!strings.Contains(err.Error(), "storage is Memory, want File") {
		t.Errorf("Prepare = %v, want the differences of NODE", err)
	}
	if got := configs(t, js)[schemas.StreamNode]; got.MaxAge != time.Minute {
		t.Errorf("NODE has the age %s, want it unchanged", got.MaxAge)
	}
}

// Services that start at once create the same missing streams.
func TestPrepare_AtOnce(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	server.Connect(t)
	js := outside(t, server.URL())
	want := configs(t, js)
	for _, s := range schemas.Streams() {
		must(t, js.DeleteStream(within(t), s.Name))
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		b, err := bus.Connect(within(t), bus.Options{URL: server.URL()}, slog.New(slog.DiscardHandler), nil)
		must(t, err)
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		go func() { errs <- b.Prepare(within(t)) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(want, configs(t, js)); diff != "" {
		t.Errorf("streams after four concurrent calls (-want +got):\n%s", diff)
	}
}

// A single server cannot keep three replicas. The difference is reported, and the stream stays.
func TestPrepare_RequiresTheReplicasOfTheOptions(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	server.Connect(t)
	b, err := bus.Connect(within(t), bus.Options{
		URL:      server.URL(),
		Replicas: 3,
	}, slog.New(slog.DiscardHandler), nil)
	must(t, err)
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	if err := b.Prepare(within(t)); err == nil || !strings.Contains(err.Error(),
		"change stream JOB (num_replicas is 1, want 3)") {
		t.Errorf("Prepare on one server = %v, want too few replicas", err)
	}
}

// A replicated stream rejects a duplicate while it stores the original. The stream of a single
// server never does, so the test sends the answers of a replicated stream.
func TestPublish_RetriesWhileACopyIsStored(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	must(t, js.DeleteStream(within(t), schemas.StreamNode))
	answers := []string{
		`{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`,
		`{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`,
		`{"stream":"NODE","seq":7,"duplicate":true}`,
	}
	nc := js.Conn()
	_, err := nc.Subscribe(sample(1).Subject(), func(m *nats.Msg) {
		_ = m.Respond([]byte(answers[0])) // if it fails, the publisher fails
		answers = answers[1:]
	})
	must(t, err)
	must(t, nc.Flush())
	if sequence, err := b.Publish(within(t), sample(1)); err != nil || sequence != 7 {
		t.Errorf("Publish = %d, %v, want 7", sequence, err)
	}
}

// Only one event per subject is the first, regardless of the duplicate window.
func TestPublishOnce_StoresOneEventPerSubject(t *testing.T) {
	t.Parallel()
	b := bustest.NewServer(t).Connect(t)
	sequence, first, err := b.PublishOnce(within(t), sample(1))
	if err != nil || !first {
		t.Fatalf("PublishOnce = first %v, %v, want the first", first, err)
	}
	again, first, err := b.PublishOnce(within(t), sample(2))
	if err != nil || first || again != sequence {
		t.Errorf("PublishOnce with another identity = %d, first %v, %v, want %d and not the first",
			again, first, err, sequence)
	}
}

// What was refused is not sent later: its sender was told that it failed.
func TestPublish_SendsNothingLater(t *testing.T) {
	t.Parallel()
	s := bustest.NewServer(t)
	b := s.Connect(t)
	publish(t, b, 1, 2)
	s.Stop()
	for b.Connected() {
		runtime.Gosched()
	}
	failing := map[string]func(context.Context) error{
		"publish": func(ctx context.Context) error { _, err := b.Publish(ctx, sample(2)); return err },
		"request": func(ctx context.Context) error {
			return b.Request(ctx, schemas.SubjectJobSubmit, &schemas.JobRequest{}, &schemas.Advice{})
		},
	}
	for name, try := range failing {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := try(ctx); !errors.Is(err, schemas.ErrUnavailable) {
			t.Errorf("%s without a server = %v, want unavailable", name, err)
		}
		cancel()
	}
	waiting := make(chan error, 1)
	go func() { // within its time limit the server comes back
		_, err := b.Publish(within(t), sample(3))
		waiting <- err
	}()
	s.Restart(t)
	if err := <-waiting; err != nil {
		t.Errorf("publish while the server restarts: %v", err)
	}
	last, err := b.LastSequence(within(t), schemas.StreamNode)
	if err != nil || last != 2 {
		t.Errorf("the stream ends with event %d, %v, want 2: the refused event was not sent later", last, err)
	}
}
