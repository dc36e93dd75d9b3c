package bus_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
)

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
