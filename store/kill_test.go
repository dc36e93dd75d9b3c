package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

const victimVariable = "COURIER_TEST_STORE_VICTIM"

// killOrder configures a victim, as JSON in its environment.
type killOrder struct {
	NATS, ClickHouse string
	Cluster          string        // name of the cluster; "": one server
	Batch            int           // number of the batch at which it is killed, from 1; 0: never
	Point            string        // "before", "during" or "after" the inserts
	Delay            time.Duration // for "during": from the start of the batch to the kill
	Action           string        // "migrate" the cluster; "": write batches
	Message          string        // for an action: it dies when it has logged this message
	Times            int           // so often
}

// exitNotKilled is the exit status of a victim that has not killed itself.
const exitNotKilled = 2

// victim is the main function of a process that runs a store and kills itself as configured.
func victim() int {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var o killOrder
	if err := json.Unmarshal([]byte(os.Getenv(victimVariable)), &o); err != nil {
		log.Error("read order", "error", err)
		return exitNotKilled
	}
	ctx := context.Background()
	b, err := bus.Connect(ctx, bus.Options{URL: o.NATS}, log, nil)
	if err != nil {
		log.Error("connect", "error", err)
		return exitNotKilled
	}
	if o.Action != "" {
		log.Error("the action ended", "error", o.act(ctx, b, log))
		return exitNotKilled
	}
	databases, err := o.open(ctx, b, log)
	if err != nil {
		log.Error("open", "error", err)
		return exitNotKilled
	}
	var mu sync.Mutex
	batches := 0
	handle := func(ctx context.Context, s *store.Store, b bus.Batch) error {
		mu.Lock()
		batches++
		mine := batches == o.Batch
		mu.Unlock()
		switch {
		case mine && o.Point == "before":
			die()
		case mine && o.Point == "during":
			time.AfterFunc(o.Delay, die)
		}
		err := s.Write(ctx, b)
		if mine {
			die()
		}
		return err
	}
	var all sync.WaitGroup
	for _, d := range databases {
		s := store.New(b, d, log, nil, store.Options{MaxMessages: 64, MaxAge: 10 * time.Millisecond})
		for _, durable := range d.Durables() {
			all.Go(func() {
				_ = s.Follow(ctx, durable, func(ctx context.Context, b bus.Batch) error {
					return handle(ctx, s, b)
				})
			})
		}
	}
	all.Wait()
	return exitNotKilled
}

// open opens the database, or the database of each shard of the cluster.
func (o *killOrder) open(ctx context.Context, b *bus.Bus, log *slog.Logger) ([]*store.Database, error) {
	if o.Cluster != "" {
		c, err := store.OpenCluster(ctx, b, store.Options{URL: o.ClickHouse}, o.Cluster, log, nil)
		if err != nil {
			return nil, err
		}
		return c.Databases(), nil
	}
	d, err := store.Open(ctx, store.Options{URL: o.ClickHouse}, log, nil)
	return []*store.Database{d}, err
}

// act runs the action.
func (o *killOrder) act(ctx context.Context, b *bus.Bus, log *slog.Logger) error {
	log = slog.New(&dyingHandler{Handler: log.Handler(), order: o})
	c, err := store.OpenCluster(ctx, b, store.Options{URL: o.ClickHouse}, o.Cluster, log, nil)
	if err != nil {
		return err
	}
	return c.Migrate(ctx)
}

// dyingHandler kills the process when a message was logged so often as ordered.
type dyingHandler struct {
	slog.Handler
	order *killOrder
	times atomic.Int64
}

func (h *dyingHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Message == h.order.Message && h.times.Add(1) == int64(h.order.Times) {
		die()
	}
	return err
}

func die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// The test kills the store at every point of a batch while messages keep arriving, and compares
// the tables and the roll-up with the log.
func TestStore_IsKilled(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t)
	d := storetest.Open(t, address)
	must(t, d.Migrate(t.Context()))
	server := bustest.NewServer(t)
	b := server.Connect(t)
	stop := publishAll(t, b)
	repeated := 0
	for round := range 12 {
		o := killOrder{
			NATS:       server.URL(),
			ClickHouse: address,
			Batch:      1 + round%4,
			Point:      []string{"after", "during", "before"}[round%3],
			Delay:      rand.N(8 * time.Millisecond),
		}
		out := runVictim(t, o)
		repeated += bytes.Count(out, []byte("unfinished batch is handled again"))
	}
	last := stop()
	if repeated < 8 {
		t.Errorf("%d unfinished batches in 12 rounds, want at least 8", repeated)
	}
	fill(t, b, d, last)
	compare(t, b, d)
}

// runVictim runs a victim until it has killed itself, and returns its log.
func runVictim(t *testing.T, o killOrder) []byte {
	t.Helper()
	text, err := json.Marshal(o)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"="+string(text))
	var out bytes.Buffer
	cmd.Stderr = &out
	err = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); ctx.Err() != nil || err == nil || code == exitNotKilled {
		t.Fatalf("victim %+v ended with %v, want a kill\n%s", o, err, out.Bytes())
	}
	return out.Bytes()
}

// publishAll publishes samples and job events until stop is called. stop returns the last sequence
// of each stream. The interval between two batches is long enough for a store with small batches on a
// busy machine: a backlog would only be written after the test has done its work.
func publishAll(t *testing.T, b *bus.Bus) (stop func() map[string]uint64) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan map[string]uint64, 1)
	go func() {
		last := make(map[string]uint64)
		defer func() { done <- last }()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := uint64(1); ctx.Err() == nil; n++ {
			<-tick.C
			s := newTestLog()
			job := fmt.Sprintf("job-%d", n)
			s.started(job, 1)
			s.epoch(job, 1, 1)
			s.advice(job, n)
			for i := range uint64(8) {
				s.at = s.at.Add(time.Duration(n%5) * time.Minute)
				s.sample(fmt.Sprintf("node-%d", n%3), 8*n+i)
			}
			s.ended(job, 1, schemas.EventFinished)
			for _, e := range s.events {
				sequence, err := b.Publish(context.WithoutCancel(ctx), e)
				if err != nil {
					t.Error(err)
					return
				}
				last[stream(e)] = sequence
			}
		}
	}()
	stop = sync.OnceValue(func() map[string]uint64 { cancel(); return <-done })
	t.Cleanup(func() { stop() })
	return stop
}

// minute is a row of the roll-up.
type minute struct {
	Node    string    `ch:"node"`
	Minute  time.Time `ch:"minute"`
	Samples uint64    `ch:"samples"`
	CPU     *float64  `ch:"cpu_ratio"`
	Most    *float64  `ch:"cpu_ratio_max"`
	IOWait  *float64  `ch:"io_wait_ratio"`
	Load    *float64  `ch:"load_average"`
}

type sequencedID struct {
	EventID  string `ch:"event_id"`
	Sequence uint64 `ch:"sequence"`
}

// compare compares every table and the roll-up with the log.
func compare(t *testing.T, b *bus.Bus, d *store.Database) {
	t.Helper()
	want := make(map[string][]sequencedID)
	var events []schemas.Event
	for _, durable := range schemas.StoreDurables() {
		for _, r := range readLog(t, b, durable.Stream) {
			table, _, _ := schemas.RowOf(r.Event)
			want[table] = append(want[table], sequencedID{r.Event.ID(), r.Sequence})
			events = append(events, r.Event)
		}
	}
	for _, table := range schemas.Tables() {
		var got []sequencedID
		must(t, d.Query(t.Context(), &got, "SELECT event_id, sequence FROM "+table.Name+" ORDER BY sequence"))
		if diff := cmp.Diff(want[table.Name], got); diff != "" {
			t.Errorf("%s differs from the log: %d rows, want %d (-want +got):\n%.2000s", table.Name,
				len(got), len(want[table.Name]), diff)
		}
	}
	compareMinutes(t, d, events)
	compareRollUps(t, d)
	t.Logf("compared %d epochs and %d events", len(want["job_epoch"]), len(events))
}

// readLog returns all events of a stream.
func readLog(t *testing.T, b *bus.Bus, name string) (all []bus.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := b.Read(ctx, bus.FollowOptions{Stream: name}, func(r bus.Record) error {
		all = append(all, r)
		return nil
	})
	must(t, err)
	return all
}
