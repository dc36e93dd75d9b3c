package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/bus/server"
	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// fetchAndCrash fetches messages of a durable and never acknowledges them.
func fetchAndCrash(t *testing.T, url string, d schemas.Durable, count int) {
	t.Helper()
	js := outside(t, url)
	defer js.Conn().Close()
	c, err := js.CreateOrUpdateConsumer(within(t), d.Stream, jetstream.ConsumerConfig{
		Durable:       d.Name,
		AckPolicy:     jetstream.AckAllPolicy,
		AckWait:       d.AckWait,
		MaxAckPending: d.MaxAckPending,
	})
	must(t, err)
	taken, err := c.Fetch(count, jetstream.FetchMaxWait(patience))
	must(t, err)
	for range taken.Messages() {
	}
}

// A process crashes with messages that it received before it recorded their intent. The next
// process handles them first. A batch that failed is handled again as a whole. Neither uses
// direct gets, which this server denies: a lagging replica may answer one, and a message that
// it does not have yet would look deleted.
func TestConsumeBatch_HandlesTheMessagesOfACrashedProcess(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(
		config,
		[]byte(`authorization { users: [{user: root, password: root}, {user: store, password: store, permissions: {publish: {deny: ["$JS.API.DIRECT.GET.NODE"]}}}] }`),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{DataDir: t.TempDir(), Config: config, Start: patience},
		slog.New(slog.DiscardHandler))
	must(t, err)
	must(t, s.Start(t.Context()))
	t.Cleanup(s.Stop)
	url := func(user string) string {
		return strings.Replace(s.URL(), "nats://", "nats://"+user+":"+user+"@", 1)
	}
	as := func(user string) *bus.Bus {
		b, err := bus.Connect(t.Context(), bus.Options{URL: url(user)}, slog.New(slog.DiscardHandler), nil)
		must(t, err)
		t.Cleanup(func() { _ = b.Close(context.Background()) }) // its server may have stopped
		return b
	}
	root, d := as("root"), schemas.StoreDurables()[1]
	must(t, root.Prepare(within(t)))
	publish(t, root, 0, 30)
	fetchAndCrash(t, url("root"), d, 10)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []uint64
	tries := 0
	if err := as("store").ConsumeBatch(ctx, d, bus.BatchOptions{
		MaxAge: 100 * time.Millisecond,
	}, func(_ context.Context, batch bus.Batch) error {
		if tries++; tries == 1 {
			return errors.New("the first batch fails")
		}
		for _, r := range batch.Records {
			got = append(got, r.Sequence)
		}
		if batch.Last == 30 {
			cancel()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i, sequence := range got {
		if sequence != uint64(i)+1 {
			t.Fatalf("batches hold %v, want 1 to 30", got)
		}
	}
	if len(got) != 30 || tries < 2 {
		t.Fatalf("batches hold %d messages after %d tries, want 30 after 2", len(got), tries)
	}
}

// warnings is a log that keeps the lines about batches that restart, up to its capacity.
type warnings chan string

func (w warnings) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("batches restart after a failure")) {
		select {
		case w <- string(line):
		default:
		}
	}
	return len(line), nil
}

// shortRetry matches the delays before batches restart. The delays of a single batch grow to 15 s.
var shortRetry = regexp.MustCompile(`retry_seconds=[15]\s`)

// After many outages, batches restart as soon as after the first one.
func TestConsumeBatch_RestartsSoonAfterEachOutage(t *testing.T) {
	t.Parallel() // it mostly waits
	server := bustest.NewServer(t)
	server.Connect(t) // prepares
	failed := make(warnings, 10)
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL()},
		slog.New(slog.NewTextHandler(failed, nil)), nil)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var outage atomic.Bool
	ended, handled := make(chan error, 1), make(chan uint64, 100)
	go func() {
		ended <- b.ConsumeBatch(ctx, schemas.StoreDurables()[1], bus.BatchOptions{
			MaxAge: 50 * time.Millisecond,
		}, func(_ context.Context, batch bus.Batch) error {
			if outage.CompareAndSwap(true, false) {
				server.Stop()
			}
			handled <- batch.Last
			return nil
		})
	}()
	number := uint64(0)
	publish := func() uint64 {
		number++
		sequence, err := b.Publish(ctx, sample(number))
		must(t, err)
		return sequence
	}
	for n := range 3 {
		outage.Store(true)
		publish()
		for begun := true; begun || len(failed) > 0; begun = false {
			if line := <-failed; !shortRetry.MatchString(line) {
				t.Errorf("outage %d: %s, want a retry after 1 or 5 s", n+1, line)
			}
		}
		server.Restart(t)
		for want, have := publish(), uint64(0); have < want; {
			select {
			case have = <-handled:
			case <-within(t).Done():
				t.Fatalf("a message was not handled after outage %d", n+1)
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The backlog contains the messages of an unfinished batch, but not of a finished batch.
func TestBacklog_CountsUnhandledMessages(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	d := schemas.StoreDurables()[1]
	backlog := func(messages uint64) {
		t.Helper()
		got, err := b.Backlog(within(t), d)
		must(t, err)
		if got.Messages != messages || got.Oldest.IsZero() != (messages == 0) ||
			messages > 0 && time.Since(got.Oldest) > time.Minute {
			t.Errorf("Backlog() = %+v, want %d recent messages", got, messages)
		}
	}
	backlog(0)
	publish(t, b, 0, 20)
	backlog(20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := b.ConsumeBatch(ctx, d, bus.BatchOptions{
		MaxMessages: 10,
		MaxAge:      patience,
	}, func(_ context.Context, batch bus.Batch) error {
		if backlog(20 - batch.First + 1); batch.Bytes < 10*100 {
			t.Errorf("batch size = %d bytes, want the size of ten samples", batch.Bytes)
		}
		if batch.Last == 20 {
			cancel()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	backlog(0)
}

// After another process has taken over a batch, the first process cannot close it: the intent
// stays open until the other process has handled the batch.
func TestConsumeBatch_ClosesOnlyItsOwnBatch(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	first, second := server.Connect(t), server.Connect(t)
	d := schemas.StoreDurables()[1]
	if _, err := first.Publish(t.Context(), sample(1)); err != nil {
		t.Fatal(err)
	}
	consume := func(ctx context.Context, b *bus.Bus, handle func(context.Context, bus.Batch) error) chan error {
		done := make(chan error, 1)
		go func() {
			done <- b.ConsumeBatch(ctx, d, bus.BatchOptions{MaxAge: time.Millisecond}, handle)
		}()
		return done
	}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	firstCtx, endFirst := context.WithCancel(ctx)
	secondCtx, endSecond := context.WithCancel(ctx)
	begun, taken := make(chan struct{}), make(chan struct{})
	firstDone := consume(firstCtx, first, func(context.Context, bus.Batch) error {
		close(begun)
		<-taken
		endFirst()
		return nil
	})
	<-begun
	secondDone := consume(secondCtx, second, func(context.Context, bus.Batch) error {
		close(taken)
		if err := <-firstDone; err != nil {
			t.Error(err)
		}
		if got, err := second.Backlog(ctx, d); err != nil || got.Messages != 1 {
			t.Errorf("Backlog() = %+v, %v during the batch, want its message", got, err)
		}
		endSecond()
		return nil
	})
	must(t, <-secondDone)
	if got, err := second.Backlog(ctx, d); err != nil || got.Messages != 0 {
		t.Errorf("Backlog() = %+v, %v at the end, want none", got, err)
	}
}

// After a power cut or the loss of its disk, a stream assigns sequences again that were
// handled before. The new messages are not mistaken for redeliveries.
func TestConsumeBatch_AfterAStreamReset(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b := server.Connect(t)
	d := schemas.StoreDurables()[1]
	handled := map[string]int{}
	consume := func(until string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := b.ConsumeBatch(ctx, d, bus.BatchOptions{
			MaxAge: 50 * time.Millisecond,
		}, func(_ context.Context, batch bus.Batch) error {
			for _, r := range batch.Records {
				if handled[r.Event.ID()]++; r.Event.ID() == until {
					cancel()
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(from, to uint64) string {
		t.Helper()
		for n := from; n <= to; n++ {
			if _, err := b.Publish(t.Context(), sample(n)); err != nil {
				t.Fatal(err)
			}
		}
		return schemas.SampleID("node-a", "boot", to)
	}
	consume(publish(1, 30))
	js := outside(t, server.URL())
	must(t, js.DeleteStream(within(t), d.Stream))
	must(t, b.Prepare(within(t)))
	consume(publish(31, 40))
	consume(publish(41, 80)) // beyond the end of the old stream
	for n := uint64(1); n <= 80; n++ {
		if id := schemas.SampleID("node-a", "boot", n); handled[id] != 1 {
			t.Errorf("%s: got %d calls of the handler, want 1", id, handled[id])
		}
	}
}

// firstBatch consumes one batch of at most 100 accepted messages of a durable. If fail is set, the
// batch stays open.
func firstBatch(
	t *testing.T, b *bus.Bus, durable string, accept func(subject string) bool, fail bool,
) (first bus.Batch) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	d := nodeDurable()
	d.Name = durable
	o := bus.BatchOptions{MaxMessages: 100, MaxAge: patience, Accept: accept}
	err := b.ConsumeBatch(ctx, d, o, func(_ context.Context, batch bus.Batch) error {
		if first.Last == 0 {
			first = batch
		}
		cancel()
		if fail {
			return errors.New("a failure of the test")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return first
}

// A batch has as many accepted messages as without the others, and is the same when it is repeated.
// Its range is limited, also if no message is accepted.
func TestConsumeBatch_FillsBatchesWithAcceptedMessages(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	for n := range uint64(400) {
		s := sample(n)
		s.Node = fmt.Sprintf("node-%d", n%2)
		s.EventID = schemas.SampleID(s.Node, "boot", n)
		if _, err := b.Publish(within(t), s); err != nil {
			t.Fatal(err)
		}
	}
	half := func(subject string) bool { return strings.HasPrefix(subject, "node.node-0.") }
	none := func(string) bool { return false }
	for _, c := range []struct {
		name, durable string
		accept        func(string) bool
		fail          bool
		records       int
		redelivered   bool
	}{
		{"half of the messages", "half", half, true, 100, false},
		{"half of the messages again", "half", half, false, 100, true},
		{"no message", "none", none, false, 0, false},
	} {
		got := firstBatch(t, b, c.durable, c.accept, c.fail)
		if got.First != 1 || got.Last < 199 || got.Last > 200 || len(got.Records) != c.records ||
			got.Redelivered != c.redelivered {
			t.Errorf("%s: batch %d to %d with %d records, redelivered %v; want %+v",
				c.name, got.First, got.Last, len(got.Records), got.Redelivered, c)
		}
	}
}

// After Rewind, the running consumer handles all messages again, also if it waits for new ones. It
// calls Rewound before that, until it succeeds, and the batches have other tokens.
func TestConsumeBatch_StartsAgainAfterRewind(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	publish(t, b, 1, 11)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	rewound, calls := 0, []string(nil)
	o := bus.BatchOptions{
		MaxMessages: 10,
		MaxAge:      patience,
		Rewound: func(_ context.Context, first uint64) error {
			if rewound++; rewound == 1 {
				return errors.New("the database is unavailable")
			}
			calls = append(calls, fmt.Sprintf("rewound to %d", first))
			return nil
		},
	}
	var tokens []string
	err := b.ConsumeBatch(ctx, nodeDurable(), o, func(_ context.Context, batch bus.Batch) error {
		tokens = append(tokens, batch.Token)
		calls = append(calls, fmt.Sprintf("%d-%d %v", batch.First, batch.Last, batch.Redelivered))
		switch len(tokens) {
		case 1:
			go func() {
				for behind := uint64(1); behind > 0; { // the batch is done
					backlog, err := b.Backlog(ctx, nodeDurable())
					if err != nil {
						t.Error(err)
						return
					}
					behind = backlog.Messages
				}
				if last, err := b.Rewind(ctx, nodeDurable()); err != nil || last != 10 {
					t.Errorf("Rewind() = %d, %v, want 10", last, err)
				}
			}()
		case 2:
			cancel()
		}
		return nil
	})
	want := []string{"1-10 false", "rewound to 1", "1-10 false"}
	if err != nil || !slices.Equal(calls, want) || tokens[0] == tokens[1] {
		t.Errorf("calls %v with tokens %v, %v; want %v", calls, tokens, err, want)
	}
}
