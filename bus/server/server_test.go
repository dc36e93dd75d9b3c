//go:build linux

package server_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"courier/bus/server"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience bounds the waits of the test. It only guards against hanging.
const patience = 5 * time.Minute

// The test fills the disk until the server stops writing, and then frees space. Afterwards the
// server accepts messages and has every acknowledged one. This holds for clients over the network
// and in the same process.
func TestServer_RecoversFromAFullDisk(t *testing.T) {
	for name, port := range map[string]int{"network": 0, "in process": -1} {
		t.Run(name, func(t *testing.T) {
			dir := smallDisk(t)
			s, err := server.New(
				server.Options{DataDir: filepath.Join(dir, "nats"), Port: port, Start: patience},
				slog.New(slog.DiscardHandler))
			must(t, err)
			must(t, s.Start(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			ended := make(chan error, 1)
			go func() { ended <- s.Wait(ctx) }()
			defer func() {
				cancel()
				must(t, <-ended)
			}()
			option := nats.MaxReconnects(-1)
			if port < 0 {
				option = nats.InProcessServer(s)
			}
			nc, err := nats.Connect(s.URL(), option, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
			must(t, err)
			defer nc.Close()
			js, err := jetstream.New(nc)
			must(t, err)
			_, err = js.CreateStream(ctx,
				jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log"}, Storage: jetstream.FileStorage})
			must(t, err)
			publish := func(timeout time.Duration) error {
				trying, stop := context.WithTimeout(ctx, timeout)
				defer stop()
				_, err := js.Publish(trying, "log", make([]byte, 1000))
				return err
			}
			const full, again = 3 * time.Second, 500 * time.Millisecond // timeouts: a full disk gives no answer
			acknowledged := uint64(0)
			for range 100 {
				must(t, publish(patience))
				acknowledged++
			}
			filler := fill(t, dir)
			for publish(full) == nil { // the last block of the stream may have space
				acknowledged++
			}
			if publish(full) == nil {
				t.Fatal("a message was stored on a full disk")
			}
			must(t, os.Remove(filler))
			for err = publish(again); err != nil; err = publish(again) {
				if ctx.Err() != nil {
					t.Fatalf("no message was accepted after space was freed: %v", err)
				}
			}
			acknowledged++
			stream, err := js.Stream(ctx, "LOG")
			must(t, err)
			if have := stream.CachedInfo().State.Msgs; have < acknowledged {
				t.Errorf("the stream has %d messages, want at least the %d that were acknowledged",
					have, acknowledged)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// smallDisk mounts a disk of a few megabytes.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mounting a disk is not permitted: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return dir
}

// fill fills a disk with a file and returns its path.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	return path
}
