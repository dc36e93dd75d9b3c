package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
)

// stallingProxy forwards connections to a server. The first connection on which a client sends one of
// the texts stalls from then on: it stays open, but nothing is forwarded.
type stallingProxy struct {
	net.Addr
	stopsReading bool // a stalled connection; otherwise it drops what it reads

	mu    sync.Mutex
	texts []string // without a stalled connection
}

// startProxy returns a proxy that runs until the test ends.
func startProxy(t *testing.T, server string, texts ...string) *stallingProxy {
	t.Helper()
	p := &stallingProxy{texts: texts}
	r := newRelay(t, listen(t), server, func(from net.Conn, packet []byte, toServer bool) bool {
		if !toServer || !p.stalls(packet) {
			return true
		}
		if p.stopsReading {
			<-t.Context().Done()
		}
		_, _ = io.Copy(io.Discard, from) // until the client gives up
		return false
	})
	p.Addr = r.Addr()
	return p
}

// stalls reports whether a packet has one of the texts, which then stalls no other connection.
func (p *stallingProxy) stalls(packet []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.texts, func(text string) bool {
		return bytes.Contains(packet, []byte(text))
	})
	if i < 0 {
		return false
	}
	p.texts = slices.Delete(p.texts, i, i+1)
	return true
}

// left returns the texts without a stalled connection.
func (p *stallingProxy) left() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.texts)
}

// A server accepts statements and never answers them. The store gives up each of them after its
// timeout, and repeats the batch on another connection.
func TestStore_GivesUpAStalledStatement(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	patient, p, o := openStalling(t,
		"KILL QUERY",
		"FROM job_epoch WHERE job_id", // the lookup of a batch
		"INSERT INTO job_epoch",
		"INSERT INTO node_sample", // prepared while another batch is written
		"INSERT INTO log_position",
	)
	d, err := store.Open(t.Context(), o, discard, nil)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })

	b := bustest.New(t)
	last := publishJobs(t, b, "")
	stop := run(t, store.New(b, d, discard, nil, o))
	awaitSequences(t, patient, last)
	if left := p.left(); len(left) > 0 {
		t.Errorf("no statement was stalled with %q", left)
	}
	stop()
	compare(t, b, patient)
}

// A server stops reading a statement that is larger than the buffers in between.
func TestStore_GivesUpAStalledWrite(t *testing.T) {
	t.Parallel()
	_, p, o := openStalling(t, "FROM job_epoch WHERE job_id")
	p.stopsReading = true
	d, err := store.Open(t.Context(), o, discard, nil)
	must(t, err)
	ids := make([]string, 64)
	for i := range ids {
		id := make([]byte, 1<<18)
		_, _ = rand.Read(id) // does not fail
		ids[i] = string(id)
	}

	ended := make(chan error, 1)
	go func() { ended <- d.LookUp(t.Context(), "job", ids) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case err := <-ended:
		if left := p.left(); err == nil || len(left) > 0 {
			t.Errorf("lookup: error %v, no statement was stalled with %q", err, left)
		}
		must(t, d.Close())
	case <-ctx.Done():
		t.Error("the lookup does not end")
	}
}

// openStalling returns a migrated database, and the options for it through a proxy that stalls.
func openStalling(t *testing.T, texts ...string) (*store.Database, *stallingProxy, store.Options) {
	t.Helper()
	d, o := migrated(t)
	u, err := url.Parse(o.URL)
	must(t, err)
	p := startProxy(t, u.Host, texts...)
	u.Host = p.String()
	o.URL = u.String()
	return d, p, o
}

func migrated(t *testing.T) (*store.Database, store.Options) {
	t.Helper()
	o := store.Options{
		URL:         storetest.Address(t),
		MaxMessages: 64,
		MaxAge:      10 * time.Millisecond,
		Timeout:     10 * time.Second, // enough for statements that get an answer, on a busy machine
	}
	d := storetest.Open(t, o.URL)
	must(t, d.Migrate(t.Context()))
	return d, o
}

// On a busy machine the goroutine that watches the context of a statement may end late. It must
// not close the connection of a later statement.
func TestStore_KeepsItsConnectionsOnABusyMachine(t *testing.T) {
	d := storetest.New(t)
	w := newStore(t, nil, d)
	var busy atomic.Bool
	var others sync.WaitGroup
	busy.Store(true)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer others.Wait()
	defer busy.Store(false)
	for range 2 {
		others.Go(func() {
			for busy.Load() {
			}
		})
	}
	s, next := newTestLog(), uint64(1)
	for i := range uint64(25) {
		s.sample("node-a", i)
		b := batch(schemas.StreamNode, next, s.events[len(s.events)-1])
		next++
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
	}
}

// The test kills ClickHouse twice while the store writes and messages keep arriving. ClickHouse
// restarts with the same data.
func TestStore_OutlivesItsDatabase(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	d := storetest.Open(t, server.Address(t))
	must(t, d.Migrate(t.Context()))
	b := bustest.New(t)
	finish := run(t, newStore(t, b, d))
	stop := publishAll(t, b)
	for range 2 {
		before := selectNumber(t, d, "SELECT max(sequence) AS n FROM log_position")
		awaitSequences(t, d, map[string]uint64{"JOB": before + 50, "NODE": before + 50})
		server.Kill(t)
		awaitSequences(t, d, map[string]uint64{"JOB": before + 60})
	}
	awaitSequences(t, d, stop())
	finish()
	compare(t, b, d)
}
