package bus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
)

// patience is how long a test waits for a condition. It only guards against hanging.
const patience = 5 * time.Minute

// within returns a context that ends after patience.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func sample(n uint64) *schemas.Sample {
	s := &schemas.Sample{Node: "node-a", BootID: "boot", Number: n, IntervalSeconds: 2, Cores: 2}
	s.EventID, s.At = schemas.SampleID(s.Node, s.BootID, n), time.Unix(1_790_000_000+int64(n), 0).UTC()
	return s
}

func publish(t *testing.T, b *bus.Bus, from, until uint64) {
	t.Helper()
	for n := from; n < until; n++ {
		if _, err := b.Publish(within(t), sample(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPublish_DropsADuplicate(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	first, err := b.Publish(within(t), sample(1))
	must(t, err)
	again, err := b.Publish(within(t), sample(1))
	if err != nil || again != first {
		t.Errorf("second Publish = %d, %v, want %d", again, err, first)
	}
}

func TestPublish_RejectsAnInvalidEvent(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	s := sample(1)
	s.Cores = 0
	if _, err := b.Publish(within(t), s); !errors.Is(err, schemas.ErrInvalid) {
		t.Errorf("Publish = %v, want invalid", err)
	}
}

// follow collects the numbers of want samples.
func follow(t *testing.T, b *bus.Bus, o bus.FollowOptions, want int) []uint64 {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	var got []uint64
	o.Stream = schemas.StreamNode
	err := b.Follow(ctx, o, func(r bus.Record) error {
		got = append(got, r.Event.(*schemas.Sample).Number)
		if len(got) == want {
			cancel()
		}
		return nil
	})
	must(t, err)
	if len(got) != want {
		t.Fatalf("Follow delivered %v, want %d events", got, want)
	}
	return got
}

func TestFollow_DeliversInOrderFromAnySequence(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	publish(t, b, 1, 6)
	for _, c := range []struct {
		o    bus.FollowOptions
		want string
	}{
		{bus.FollowOptions{}, "[1 2 3 4 5]"},
		{bus.FollowOptions{From: 4}, "[4 5]"},
		{bus.FollowOptions{LastPerSubject: true}, "[5]"},
		{bus.FollowOptions{Subjects: []string{schemas.NodeSubject("node-a", schemas.EventSample)}}, "[1 2 3 4 5]"},
	} {
		if got := fmt.Sprint(follow(t, b, c.o, strings.Count(c.want, " ")+1)); got != c.want {
			t.Errorf("Follow(%+v) = %s, want %s", c.o, got, c.want)
		}
	}
}

// The delivered events do not depend on whether the server or the reader filters.
func TestFollow_DeliversTheSelectedSubjects(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	for i := range 3 {
		job := fmt.Sprint("job-", i)
		stamp := func(id string) schemas.JobStamp {
			return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: time.Now()}, JobID: job, Run: 1}
		}
		set := schemas.Setting{Model: "m", BatchSize: 4, CPUs: 1, Epochs: 2, Nodes: []string{"node-a"}}
		for _, e := range []schemas.Event{
			&schemas.Started{JobStamp: stamp(schemas.StartedID(job, 1)), Setting: set},
			&schemas.Epoch{
				JobStamp:        stamp(schemas.EpochID(job, 1, 1)),
				Setting:         set,
				Epoch:           1,
				DurationSeconds: 1,
				DurationSource:  schemas.DurationReported,
			},
			&schemas.Ended{
				JobStamp:        stamp(schemas.EndedID(job, 1, schemas.EventFinished)),
				Setting:         set,
				Outcome:         schemas.EventFinished,
				DurationSeconds: 2,
			},
		} {
			if _, err := b.Publish(within(t), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		subjects []string
		last     bool
		want     string
	}{
		{[]string{schemas.JobSubject("*", schemas.EventEpoch)}, false, "[2 5 8]"},
		{
			[]string{schemas.JobSubject("*", schemas.EventStarted), schemas.JobSubject("*", schemas.EventEpoch)},
			false,
			"[1 2 4 5 7 8]",
		},
		{
			[]string{schemas.JobSubject("job-1", "*"), schemas.JobSubject("job-2", schemas.EventFinished)},
			false,
			"[4 5 6 9]",
		},
		{
			[]string{
				schemas.JobSubject("job-1", schemas.EventEpoch),
				schemas.JobSubject("job-2", schemas.EventEpoch),
			},
			true,
			"[5 8]",
		},
		{[]string{schemas.JobSubject("job-7", "*"), schemas.JobSubject("job-8", "*")}, false, "[]"},
	} {
		ctx, cancel := context.WithCancel(within(t))
		got, calls := []uint64{}, 0
		o := bus.FollowOptions{
			Stream:         schemas.StreamJob,
			Subjects:       c.subjects,
			LastPerSubject: c.last,
			CaughtUp:       func() { calls++; cancel() },
		}
		err := b.Follow(ctx, o, func(r bus.Record) error { got = append(got, r.Sequence); return nil })
		if fmt.Sprint(got) != c.want || calls != 1 || err != nil {
			t.Errorf("Follow(%v) = %v, caught up %d times, %v; want %s", c.subjects, got, calls, err, c.want)
		}
	}
}

func TestFollow_ReportsWhenItHasCaughtUp(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	for _, stored := range []int{0, 3} {
		publish(t, b, 1, uint64(stored)+1)
		ctx, cancel := context.WithCancel(within(t))
		seen, calls := 0, 0
		err := b.Follow(ctx,
			bus.FollowOptions{Stream: schemas.StreamNode, CaughtUp: func() { calls++; cancel() }},
			func(bus.Record) error { seen++; return nil })
		if err != nil || seen != stored || calls != 1 {
			t.Errorf("%d stored, %d delivered, %d CaughtUp calls, error %v; want all delivered and one call",
				stored, seen, calls, err)
		}
	}
}

func TestFollow_ContinuesAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := bustest.NewServer(t)
	b := s.Connect(t)
	publish(t, b, 1, 3)
	ctx, cancel := context.WithCancel(within(t))
	var mu sync.Mutex
	var got []uint64
	seen := make(chan struct{}, 10)
	done := make(chan error, 1)
	go func() {
		done <- b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamNode}, func(r bus.Record) error {
			mu.Lock()
			got = append(got, r.Sequence)
			mu.Unlock()
			seen <- struct{}{}
			return nil
		})
	}()
	<-seen
	<-seen
	s.Stop()
	s.Restart(t)
	other := s.Connect(t)
	publish(t, other, 3, 5)
	for range 2 {
		select {
		case <-seen:
		case <-ctx.Done():
			t.Fatal("no message was delivered after the restart")
		}
	}
	cancel()
	must(t, <-done)
	if fmt.Sprint(got) != "[1 2 3 4]" {
		t.Errorf("sequences %v, want [1 2 3 4]", got)
	}
}

func TestFollow_UndecodableMessageBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	s := bustest.NewServer(t)
	b := s.Connect(t)
	nc, err := nats.Connect(s.URL())
	must(t, err)
	defer nc.Close()
	must(t, nc.Publish(schemas.NodeSubject("node-a", schemas.EventSample), []byte("{broken")))
	must(t, nc.Flush())
	publish(t, b, 1, 2)
	follow(t, b, bus.FollowOptions{}, 1)
	ctx, cancel := context.WithCancel(within(t))
	var dead *schemas.Dead
	err = b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamDead}, func(r bus.Record) error {
		dead = r.Event.(*schemas.Dead)
		cancel()
		return nil
	})
	if err != nil || dead == nil || string(dead.Data) != "{broken" || dead.OriginSequence != 1 ||
		!strings.Contains(dead.Reason, "JSON") {
		t.Errorf("dead letter = %+v, %v, want the broken message and a JSON reason", dead, err)
	}
}

func nodeDurable() schemas.Durable { return schemas.StoreDurables()[1] }

func TestConsumeBatch_DeliversExactRanges(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	publish(t, b, 1, 26)
	ctx, cancel := context.WithCancel(within(t))
	var next uint64 = 1
	err := b.ConsumeBatch(
		ctx,
		nodeDurable(),
		bus.BatchOptions{MaxMessages: 10, MaxAge: 50 * time.Millisecond},
		func(_ context.Context, batch bus.Batch) error {
			if batch.First != next || int(batch.Last-batch.First)+1 != len(batch.Records) || len(batch.Records) > 10 {
				t.Errorf("batch %s with %d records, want first %d", batch.Token, len(batch.Records), next)
			}
			if next = batch.Last + 1; next == 26 {
				cancel()
			}
			return nil
		},
	)
	if err != nil || next != 26 {
		t.Errorf("ConsumeBatch ended at %d, %v, want 26", next, err)
	}
}

// After a crash between the handler and the ack, the handler gets the same batch again, even if
// newer messages are stored. The following batches contain only the newer messages.
func TestConsumeBatch_RepeatsAnOpenIntentWithTheSameRecords(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	publish(t, b, 1, 8)
	options := bus.BatchOptions{MaxMessages: 7, MaxAge: patience}
	var token, digest string
	ids := func(batch bus.Batch) string {
		s := ""
		for _, r := range batch.Records {
			s += r.Event.ID() + " "
		}
		return s
	}
	crashed := errors.New("crashed")
	ctx, cancel := context.WithCancel(within(t))
	_ = b.ConsumeBatch(ctx, nodeDurable(), options, func(h context.Context, batch bus.Batch) error {
		token, digest = batch.Token, ids(batch)
		cancel()
		return crashed
	})
	publish(t, b, 8, 12)
	ctx, cancel = context.WithCancel(within(t))
	options = bus.BatchOptions{MaxMessages: 100, MaxAge: 50 * time.Millisecond}
	var tokens []string
	var rest []uint64 // one batch, or several if the messages arrive slowly
	err := b.ConsumeBatch(ctx, nodeDurable(), options, func(_ context.Context, batch bus.Batch) error {
		if tokens = append(tokens, batch.Token); len(tokens) > 1 {
			for _, r := range batch.Records {
				rest = append(rest, r.Sequence)
			}
		} else if batch.Token != token || ids(batch) != digest || !batch.Redelivered {
			t.Errorf("first batch %s %q redelivered=%v, want %s %q", batch.Token, ids(batch),
				batch.Redelivered, token, digest)
		}
		if batch.Last == 11 {
			cancel()
		}
		return nil
	})
	if err != nil || token != "NODE/1-7" || fmt.Sprint(rest) != "[8 9 10 11]" {
		t.Errorf("first batch %v, then sequences %v, %v; want NODE/1-7, then 8 to 11", tokens, rest, err)
	}
}

func TestServe_TranslatesErrors(t *testing.T) {
	t.Parallel()
	s := bustest.NewServer(t)
	b := s.Connect(t)
	ctx, cancel := context.WithCancel(within(t))
	done := make(chan error, 1)
	go func() {
		done <- b.Serve(ctx, bus.Service{Name: "test", Version: "1.0.0", Endpoints: []bus.Endpoint{
			bus.Handle(schemas.SubjectJobStatus, func(_ context.Context, q *schemas.JobStatusRequest) (any, error) {
				switch q.JobID {
				case "broken":
					return nil, io.ErrUnexpectedEOF
				case "gone":
					return nil, &schemas.Error{Code: schemas.CodeNotFound, Message: "no job gone"}
				}
				return schemas.JobStatus{JobID: q.JobID}, nil
			}),
		}})
	}()
	for _, c := range []struct {
		body, want string
	}{
		{`{"id":"a"}`, "a"},
		{`{"id":"gone"}`, "not_found: no job gone"},
		{`{"id":"broken"}`, "internal: internal error; see the service's log"},
		{`{"id":"A b"}`, `invalid: id: "A b" is not a name of 1 to 64 characters from a-z, 0-9, _ and -`},
		{`{"job":"a"}`, "invalid: job: not a field of this request; want one of id"},
	} {
		var status schemas.JobStatus
		err := b.Request(ctx, schemas.SubjectJobStatus, rawBody(c.body), &status)
		for errors.Is(err, schemas.ErrUnavailable) { // the endpoint is not announced yet
			err = b.Request(ctx, schemas.SubjectJobStatus, rawBody(c.body), &status)
		}
		got := status.JobID
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("Request(%s) = %q, want %q", c.body, got, c.want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// rawBody is encoded as its own bytes.
type rawBody string

func (r rawBody) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func TestChampion_ChangesByCompareAndSet(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	ctx := within(t)
	if _, _, err := b.Champion(ctx, schemas.TargetEpochTime); !errors.Is(err, schemas.ErrNotFound) {
		t.Fatalf("Champion of an empty system = %v, want not_found", err)
	}
	digest, err := b.PutArtifact(ctx, []byte("tree"))
	must(t, err)
	c := schemas.Champion{Target: schemas.TargetEpochTime, ModelDigest: digest}
	revision, err := b.SetChampion(ctx, c, 0)
	must(t, err)
	if _, err := b.SetChampion(ctx, c, 0); !errors.Is(err, schemas.ErrConflict) {
		t.Errorf("SetChampion with a stale revision = %v, want conflict", err)
	}
	got, r, err := b.Champion(ctx, schemas.TargetEpochTime)
	if err != nil || got != c || r != revision {
		t.Errorf("Champion = %+v, %d, %v, want %+v, %d", got, r, err, c, revision)
	}
	data, err := b.Artifact(ctx, digest)
	if err != nil || string(data) != "tree" {
		t.Errorf("Artifact = %q, %v, want tree", data, err)
	}
	if _, err := b.Artifact(ctx, strings.Repeat("0", 64)); !errors.Is(err, schemas.ErrNotFound) {
		t.Errorf("Artifact of unknown digest = %v, want not_found", err)
	}
	watching, cancel := context.WithCancel(ctx)
	err = b.WatchChampions(watching, func(w schemas.Champion, _ uint64) {
		if w != c {
			t.Errorf("WatchChampions saw %+v, want %+v", w, c)
		}
		cancel()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestConnect_ErrorNamesTheAddress(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := bus.Connect(ctx, bus.Options{URL: "nats://me:secret@127.0.0.1:1"}, slog.New(slog.DiscardHandler), nil)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("Connect = %v, want an error with the address and without the password", err)
	}
}

func TestFollow_LeavesNoConsumerBehind(t *testing.T) {
	t.Parallel()
	s := bustest.NewServer(t)
	b := s.Connect(t)
	publish(t, b, 1, 3)
	for range 3 {
		follow(t, b, bus.FollowOptions{}, 2)
	}
	js := outside(t, s.URL())
	stream, err := js.Stream(within(t), schemas.StreamNode)
	must(t, err)
	if n := stream.CachedInfo().State.Consumers; n != 0 {
		t.Errorf("got %d remaining consumers, want none", n)
	}
}

// Progress also includes the messages that the filters exclude.
func TestFollow_ReportsProgressOfEveryMessage(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	set := schemas.Setting{Model: "m", BatchSize: 4, CPUs: 1, Epochs: 2, Nodes: []string{"node-a"}}
	for i := range 4 {
		job := fmt.Sprint("job-", i)
		stamp := schemas.Stamp{EventID: schemas.StartedID(job, 1), At: time.Now()}
		e := &schemas.Started{JobStamp: schemas.JobStamp{Stamp: stamp, JobID: job, Run: 1}, Setting: set}
		if _, err := b.Publish(within(t), e); err != nil {
			t.Fatal(err)
		}
	}
	subjects := []string{
		schemas.JobSubject("job-1", schemas.EventStarted),
		schemas.JobSubject("*", schemas.EventEpoch),
	}
	var order []string
	o := bus.FollowOptions{Stream: schemas.StreamJob, Subjects: subjects, Progress: func(sequence uint64) {
		order = append(order, fmt.Sprint("passed ", sequence))
	}}
	err := b.Read(within(t), o, func(r bus.Record) error {
		order = append(order, fmt.Sprint("event ", r.Sequence))
		return nil
	})
	want := "passed 1, event 2, passed 2, passed 3, passed 4"
	if got := strings.Join(order, ", "); got != want || err != nil {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if info, err := b.StreamInfo(within(t), schemas.StreamJob); info.First != 1 || err != nil {
		t.Errorf("StreamInfo = %+v, %v; want 1 as the first event", info, err)
	}
}

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
