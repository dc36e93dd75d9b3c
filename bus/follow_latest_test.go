package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/bus/server"
	"courier/schemas"

	"github.com/nats-io/nkeys"
)

// restrictedServer has two users: one without restrictions, and one with the permissions that
// deploy gives to persons.
type restrictedServer struct {
	dir, config string
	seeds       map[string]string
	port        int
	s           *server.Server
}

func newRestrictedServer(t *testing.T) *restrictedServer {
	t.Helper()
	n := &restrictedServer{dir: t.TempDir(), seeds: map[string]string{}}
	keys := t.TempDir()
	public := map[string]string{}
	for _, user := range []string{"root", "ada"} {
		key, err := nkeys.CreateUser()
		must(t, err)
		seed, _ := key.Seed() // cannot fail for a new key
		public[user], _ = key.PublicKey()
		n.seeds[user] = filepath.Join(keys, user+".nk")
		must(t, os.WriteFile(n.seeds[user], seed, 0o600))
	}
	n.config = filepath.Join(keys, "nats.conf")
	text := fmt.Sprintf(`authorization { users: [ {nkey: %s}, {nkey: %s, permissions: {
		publish: ["$JS.API.STREAM.INFO.JOB", "$JS.API.DIRECT.GET.JOB.job.*.advice", "$JS.API.DIRECT.GET.JOB.job.*.cancelled",
		"$JS.API.STREAM.INFO.NODE", "$JS.API.DIRECT.GET.NODE.node.*.sample"], subscribe: ["_INBOX_ada.>", "job.*.advice", "job.*.cancelled"]}} ] }`, public["root"], public["ada"])
	must(t, os.WriteFile(n.config, []byte(text), 0o600))
	n.start(t)
	t.Cleanup(func() { n.s.Stop() })
	return n
}

func (n *restrictedServer) start(t *testing.T) {
	t.Helper()
	var err error
	if n.s, err = server.New(
		server.Options{DataDir: n.dir, Port: n.port, Config: n.config, Start: patience},
		slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	must(t, n.s.Start(t.Context()))
	n.port = n.s.Port()
}

func (n *restrictedServer) as(t *testing.T, user string) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(within(t), bus.Options{URL: n.s.URL(), Identity: bus.Identity{SeedFile: n.seeds[user]}},
		slog.New(slog.DiscardHandler), nil)
	must(t, err)
	t.Cleanup(func() { _ = b.Close(context.Background()) }) // its server may have stopped
	return b
}

func cancelled(job string, run uint32) *schemas.Ended {
	e := &schemas.Ended{Outcome: schemas.EventCancelled}
	e.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{
			EventID: schemas.EndedID(job, run, schemas.EventCancelled),
			At:      time.Unix(1_790_000_000, 0).UTC(),
		},
		JobID: job,
		Run:   run,
	}
	return e
}

// A user without the right to create consumers receives the last message of each subject, then
// new messages, and after a lost connection those published in the meantime, each once.
func TestFollow_LatestWithoutAConsumer(t *testing.T) {
	t.Parallel()
	n := newRestrictedServer(t)
	root := n.as(t, "root")
	must(t, root.Prepare(within(t)))
	tell := func(job string, run uint32) {
		t.Helper()
		for attempt := 0; ; attempt++ {
			_, err := root.Publish(within(t), cancelled(job, run))
			if err == nil {
				return
			}
			if !errors.Is(err, schemas.ErrUnavailable) || attempt > 100 {
				t.Fatal(err)
			}
		}
	}
	tell("j1", 1)
	tell("j1", 2)
	tell("j2", 1)
	ada := n.as(t, "ada")
	heard, caughtUp := make(chan string, 16), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	o := bus.FollowOptions{
		Stream:         schemas.StreamJob,
		LastPerSubject: true,
		Subjects: []string{
			schemas.JobSubject("j1", schemas.EventCancelled),
			schemas.JobSubject("j1", schemas.EventAdvice),
		},
		CaughtUp: func() { close(caughtUp) },
	}
	go func() {
		ended <- ada.Follow(ctx, o, func(r bus.Record) error { heard <- r.Event.ID(); return nil })
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Follow = %v", err)
		}
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-heard:
			if got != want {
				t.Fatalf("delivered %s, want %s", got, want)
			}
		case <-within(t).Done():
			t.Fatalf("timeout waiting for %s", want)
		}
	}
	next("j1/2/cancelled")
	<-caughtUp
	tell("j1", 3)
	next("j1/3/cancelled")
	n.s.Stop()
	n.start(t)
	tell("j2", 2)
	tell("j1", 4)
	next("j1/4/cancelled")

	var read []string
	if err := ada.Read(within(t), o,
		func(r bus.Record) error { read = append(read, r.Event.ID()); return nil }); err != nil ||
		strings.Join(read, " ") != "j1/4/cancelled" {
		t.Errorf("Read = %v, %v, want j1/4/cancelled", read, err)
	}
	// Reading the whole stream needs a consumer, and fails with an error.
	all, end := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer end()
	if err := ada.Read(all, bus.FollowOptions{Stream: schemas.StreamJob},
		func(bus.Record) error { return nil }); err == nil {
		t.Error("a user without the right to create consumers reads the whole stream")
	}
}

// The last message of a subject may hold several events.
func TestRead_LatestMessageWithSeveralEvents(t *testing.T) {
	t.Parallel()
	n := newRestrictedServer(t)
	root := n.as(t, "root")
	must(t, root.Prepare(within(t)))
	var samples []*schemas.Sample
	for number := range uint64(3) {
		s := &schemas.Sample{
			Node:            "a",
			BootID:          "boot",
			Number:          number,
			IntervalSeconds: 2,
			Cores:           1,
		}
		s.EventID, s.At = schemas.SampleID("a", "boot", number), time.Now().UTC()
		samples = append(samples, s)
	}
	if _, err := root.PublishSamples(within(t), samples); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	err := n.as(t, "ada").
		Read(within(t), bus.FollowOptions{
			Stream:         schemas.StreamNode,
			Subjects:       []string{samples[0].Subject()},
			LastPerSubject: true,
		}, func(r bus.Record) error {
			got = append(got, r.Event.(*schemas.Sample).Number)
			return nil
		})
	if err != nil || fmt.Sprint(got) != "[0 1 2]" {
		t.Errorf("read %v and %v, want 0 to 2", got, err)
	}
}

func TestLastSamples_ReturnsTheNewestOfEachNode(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b := server.Connect(t)
	for _, node := range []string{"a", "b", "c"} {
		for number := range uint64(3) {
			s := &schemas.Sample{
				Node:            node,
				BootID:          "boot",
				Number:          number,
				IntervalSeconds: 2,
				Cores:           1,
			}
			s.EventID, s.At = schemas.SampleID(node, "boot", number), time.Now().UTC()
			if _, err := b.Publish(within(t), s); err != nil {
				t.Fatal(err)
			}
		}
	}

	got := b.LastSamples(within(t), "a", "b", "unknown")
	if len(got) != 2 {
		t.Errorf("samples of %d nodes, want those of a and b", len(got))
	}
	for node, r := range got {
		if s := r.Event.(*schemas.Sample); s.Node != node || s.Number != 2 || r.StoredAt.IsZero() {
			t.Errorf("sample of %s = %+v, stored at %s, want number 2", node, s, r.StoredAt)
		}
	}

	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if got := b.LastSamples(ctx, "a"); len(got) != 0 {
		t.Errorf("samples %v without a server, want none", got)
	}
}

// lossyProxy forwards connections to a NATS server, but drops the first request that creates a
// consumer, as a server does that stops or starts. It returns the URL for clients.
func lossyProxy(t *testing.T, server string) (address string, isLost *atomic.Bool) {
	t.Helper()
	target, err := url.Parse(server)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	isLost = &atomic.Bool{}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", target.Host)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() {
				_, _ = io.Copy(client, to)
				_ = client.Close()
			}()
			go func() {
				defer to.Close()
				block := make([]byte, 64<<10)
				for {
					n, err := client.Read(block)
					if err != nil {
						return
					}
					isCreation := bytes.Contains(block[:n], []byte("$JS.API.CONSUMER.CREATE"))
					if isCreation && isLost.CompareAndSwap(false, true) {
						continue
					}
					if _, err := to.Write(block[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String(), isLost
}

// A request to create a consumer that gets no answer is repeated, also if the caller would wait for
// minutes.
func TestRead_RepeatsALostRequest(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	publish(t, server.Connect(t), 1, 4)
	address, isLost := lossyProxy(t, server.URL())
	b, err := bus.Connect(within(t), bus.Options{URL: address}, slog.New(slog.DiscardHandler), nil)
	must(t, err)
	defer b.Close(t.Context())
	publish(t, b, 4, 5) // subscribes to the answers of requests

	read := 0
	err = b.Read(within(t), bus.FollowOptions{Stream: schemas.StreamNode}, func(bus.Record) error {
		read++
		return nil
	})
	if err != nil || read != 4 || !isLost.Load() {
		t.Errorf("Read = %v with %d messages, request lost: %t; want 4 messages after a lost request",
			err, read, isLost.Load())
	}
}
