//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Environment of TestDamage_LosesNothing.
const (
	longVariable  = "COURIER_LONG"  // "1": continue until killsVariable processes were killed
	killsVariable = "COURIER_KILLS" // number of kills; default 200
	seedVariable  = "COURIER_SEED"  // seed of the random damages; default: random
)

// damage is a damage to a part, and its end.
type damage struct {
	name  string
	kill  bool
	begin func() // does not wait
	end   func()
	lasts time.Duration // maximum
	waits time.Duration // minimum; usually 0
}

// TestDamage_LosesNothing kills, stops and disconnects the collector, NATS, the store and ClickHouse,
// and fills the disks of the servers, at random times and several at once, while events are
// published. Afterwards each acknowledged event is once in its table and in the roll-ups, and
// courier store verify finds no difference. All parts are separate processes.
//
// The short version inflicts each kind of damage once. The long one,
//
//	COURIER_LONG=1 COURIER_KILLS=200 go test ./services/courier -run Damage -timeout 1h -v
//
// continues until the given number of processes were killed, with longer stops and interruptions of
// half a minute. A failure prints its seed.
func TestDamage_LosesNothing(t *testing.T) {
	long := os.Getenv(longVariable) == "1"
	if testing.Short() && !long {
		t.Skip("takes 15 s")
	}
	seed := numberFrom(t, seedVariable, rand.Uint64N(1<<32))
	t.Logf("%s=%d", seedVariable, seed)
	s := newSite(t, long, seed)
	load := startLoad(t, s.published.url("nats"))
	// A table that is created while the disk is full has no definition on disk (ClickHouse 26.7),
	// which the store reports to the operator. So damages start after the migration.
	await(t, "the store", func() bool {
		position, err := s.tables.Position(within(t, oneTry), "NODE")
		return err == nil && position > 0
	})
	kills := 4
	if long {
		kills = int(numberFrom(t, killsVariable, 200))
	}
	begin := time.Now()
	done := s.damage(t, load, kills)
	load.stop()
	t.Logf("in %.0f s %s", time.Since(begin).Seconds(), tallied(done))
	s.settle(t, load)
	s.examine(t, load)
}

func numberFrom(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(variable), fmt.Sprint(otherwise)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

func tallied(done map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(done)) {
		words = append(words, fmt.Sprintf("%s %d×", name, done[name]))
	}
	return strings.Join(words, ", ")
}

// damage inflicts one damage after another until enough processes were killed, and returns a
// description. After a third of them it waits until the tables are up to date; the others overlap.
func (s *site) damage(t *testing.T, load *eventLoad, kills int) map[string]int {
	done := make(map[string]int)
	killed := 0
	for killed < kills {
		for _, d := range s.deck() {
			if t.Failed() {
				return done
			}
			if s.long {
				t.Logf("%s %s", time.Now().UTC().Format(time.TimeOnly), d.name)
			}
			done[d.name]++
			if d.kill {
				killed++
			}
			if s.inflict(t, d); s.draw.IntN(3) == 0 {
				s.follow(t, load)
			}
		}
	}
	s.ongoing.Wait()
	return done
}

// inflict begins a damage and ends it later in the background. The next damage of the same part
// waits for this end.
func (s *site) inflict(t *testing.T, d damage) {
	part := strings.Fields(d.name)[1]
	busy := s.busy[part]
	busy.Lock()
	d.begin()
	lasts := d.waits + s.upTo(d.lasts)
	s.ongoing.Go(func() {
		defer busy.Unlock()
		s.rest(t, lasts)
		d.end()
	})
	s.rest(t, s.upTo(s.pause))
}

func (s *site) upTo(most time.Duration) time.Duration {
	return time.Duration(s.draw.Int64N(int64(most) + 1))
}

// rest waits for a while.
func (s *site) rest(t *testing.T, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// follow waits until all parts work, and the tables have the events published now.
func (s *site) follow(t *testing.T, load *eventLoad) {
	s.ongoing.Wait()
	s.awaitSequences(t, load.last())
}

// awaitSequences waits until the tables have the streams up to these sequences.
func (s *site) awaitSequences(t *testing.T, want map[string]uint64) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for stream, sequence := range want {
		for {
			ctx, cancel := context.WithTimeout(t.Context(), oneTry)
			position, err := s.tables.Position(ctx, stream)
			cancel()
			if err == nil && position >= sequence {
				break
			}
			if t.Context().Err() != nil || time.Now().After(deadline) {
				t.Fatalf("the tables have %s up to %d (%v) %s after the last damage, want %d",
					stream, position, err, patience, sequence)
			}
			<-tick.C
		}
	}
}

// settle waits until the tables have all events.
func (s *site) settle(t *testing.T, load *eventLoad) {
	s.awaitSequences(t, load.last())
	s.collector.kill() // it would continue to publish
	last, err := connect(t, s.natsURL).LastSequence(within(t, patience), "NODE")
	if err != nil {
		t.Fatal(err)
	}
	s.awaitSequences(t, map[string]uint64{"NODE": last})
}

// examine compares the tables with the published events and with the log.
func (s *site) examine(t *testing.T, load *eventLoad) {
	for _, q := range load.expectedCounts() {
		if got := one(t, s.tables, q.sql); got != q.want {
			t.Errorf("%s: %s = %d, want %d", q.what, q.sql, got, q.want)
		}
	}
	samples := one(t, s.tables,
		"SELECT toUInt64(max(number)) AS n FROM node_sample WHERE node = 'node-a'")
	got := one(t, s.tables,
		"SELECT uniqExact(number) AS n FROM node_sample WHERE node = 'node-a' AND number > 0")
	if got != samples || samples == 0 {
		t.Errorf("the samples of the collector have %d distinct numbers, want %d", got, samples)
	}
	if got, want := one(t, s.tables, "SELECT sum(samples) AS n FROM node_minute"), one(t,
		s.tables, "SELECT count() AS n FROM node_sample"); got != want {
		t.Errorf("the roll-up has %d samples, want %d", got, want)
	}
	out, err := courier(t, "store", "verify", "--nats-url", s.natsURL, "--clickhouse-url", s.address)
	if err != nil {
		t.Errorf("courier store verify: %v", err)
	}
	t.Logf("%s and %d samples of the collector\n%s", load, samples, out)
}
