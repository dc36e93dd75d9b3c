//go:build linux && amd64 && !noengine

package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"courier/store/engine"
)

// Parameters of the kill test. The engine is killed while writers insert batches. Afterwards every
// acknowledged batch must be complete.
const (
	killRounds  = 20
	killWriters = 4
	batchRows   = 500
)

// ledger records the batches of the writers.
type ledger struct {
	mu    sync.Mutex
	next  int
	acked map[int]bool // whether a sent batch was acknowledged
}

// nextBatch returns the number of a new batch.
func (l *ledger) nextBatch() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	l.acked[l.next] = false
	return l.next
}

// ack records an acknowledgement and returns the number of acknowledgements.
func (l *ledger) ack(batch int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[batch] = true
	n := 0
	for _, acked := range l.acked {
		if acked {
			n++
		}
	}
	return n
}

// insertBatch inserts one batch with its token.
func insertBatch(p engine.Connection, batch int) error {
	var body strings.Builder
	for row := range batchRows {
		fmt.Fprintf(&body, "{\"batch\":%d,\"row\":%d,\"text\":\"some payload\"}\n", batch, row)
	}
	_, err := ask(
		p,
		courier(p),
		"INSERT INTO batches FORMAT JSONEachRow",
		body.String(),
		"insert_deduplication_token=batch-"+strconv.Itoa(
			batch,
		),
		"deduplicate_blocks_in_dependent_materialized_views=1",
	)
	return err
}

func TestEngine_LosesNoAcknowledgedBatchWhenKilled(t *testing.T) {
	e := run(t, withEngine(t))
	p := e.ready()
	for _, statement := range []string{
		"CREATE TABLE batches (batch UInt64, row UInt32, text String) ENGINE = MergeTree ORDER BY (batch, " +
			"row) SETTINGS non_replicated_deduplication_window = 100000",
		"CREATE TABLE sizes (batch UInt64, n AggregateFunction(count)) ENGINE = AggregatingMergeTree ORDER " +
			"BY batch SETTINGS non_replicated_deduplication_window = 100000",
		"CREATE MATERIALIZED VIEW sizes_of_batches TO sizes AS SELECT batch, countState() AS n FROM batches " +
			"GROUP BY batch",
	} {
		must(t, p, statement)
	}
	random := rand.New(rand.NewPCG(1, 2))
	all, repeated := 0, 0
	for range killRounds {
		l := &ledger{next: all, acked: map[int]bool{}}
		writeUntilKilled(t, p, l, 5+random.IntN(20))
		p = e.readyAfter(p.PID)
		checkBatches(t, p, l.acked)
		repeated += repeat(t, p, l, random)
		checkRepeated(t, p, l)
		all = l.next
	}
	t.Logf("%d kills, %d batches of %d rows, %d repeated", killRounds, all, batchRows, repeated)
}

// writeUntilKilled runs the writers until enough batches are acknowledged, kills the engine, and
// waits for the writers to fail.
func writeUntilKilled(t *testing.T, p engine.Connection, l *ledger, enough int) {
	t.Helper()
	var group sync.WaitGroup
	reached := make(chan struct{})
	var once sync.Once
	for range killWriters {
		group.Go(func() {
			for {
				batch := l.nextBatch()
				if err := insertBatch(p, batch); err != nil {
					return
				}
				if l.ack(batch) >= enough {
					once.Do(func() { close(reached) })
				}
			}
		})
	}
	<-reached
	kill(t, p)
	group.Wait()
}

// sizes runs a query that returns the batches and their numbers of rows.
func sizes(t *testing.T, p engine.Connection, query string) map[int]int {
	t.Helper()
	found := map[int]int{}
	for line := range strings.Lines(must(t, p, query)) {
		var batch, n int
		if _, err := fmt.Sscan(line, &batch, &n); err != nil {
			t.Fatal(err)
		}
		found[batch] = n
	}
	return found
}

// tableSizes counts the rows of each batch.
func tableSizes(t *testing.T, p engine.Connection) map[int]int {
	return sizes(t, p, "SELECT batch, count() FROM batches GROUP BY batch")
}

// viewSizes returns the counts of the view.
func viewSizes(t *testing.T, p engine.Connection) map[int]int {
	return sizes(t, p, "SELECT batch, countMerge(n) FROM sizes GROUP BY batch")
}

// checkBatches compares the tables with the acknowledgements.
func checkBatches(t *testing.T, p engine.Connection, acked map[int]bool) {
	t.Helper()
	table, view := tableSizes(t, p), viewSizes(t, p)
	for batch, is := range acked {
		if is && (table[batch] != batchRows || view[batch] != batchRows) {
			t.Errorf(
				"batch %d was acknowledged: table has %d rows, view %d, want %d",
				batch,
				table[batch],
				view[batch],
				batchRows,
			)
		}
		if n := table[batch]; n != 0 && n != batchRows {
			t.Errorf("batch %d has %d rows in the table, want all or none", batch, n)
		}
		if n := view[batch]; n != 0 && n != batchRows {
			t.Errorf("batch %d has %d rows in the view, want all or none", batch, n)
		}
	}
}

// repeat inserts every unacknowledged batch again, and one acknowledged batch.
func repeat(t *testing.T, p engine.Connection, l *ledger, random *rand.Rand) int {
	t.Helper()
	n := 0
	for batch, acked := range l.acked {
		if acked && random.IntN(10) > 0 {
			continue
		}
		if err := insertBatch(p, batch); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// checkRepeated checks that the table and the view have every batch exactly once. A kill after
// ClickHouse has stored the token of a block and before it stores the block is an exception: it
// skips the repeated block as a duplicate. The store then restores the table and rebuilds the view
// (TestStore_RestoresABatchThatClickHouseHasLost, TestStore_RebuildsWhatARollUpLost). This never
// happens to an acknowledged batch.
func checkRepeated(t *testing.T, p engine.Connection, l *ledger) {
	t.Helper()
	table, view, lost := tableSizes(t, p), viewSizes(t, p), 0
	for batch, acked := range l.acked {
		if !acked && (table[batch] == 0 || view[batch] == 0) {
			t.Logf("batch %d: token known, block lost; table %d rows, view %d", batch,
				table[batch], view[batch])
			delete(l.acked, batch)
			lost++
			continue
		}
		l.acked[batch] = true
	}
	if lost > killWriters {
		t.Errorf("%d batches were lost after one kill, more than were in flight", lost)
	}
	checkBatches(t, p, l.acked)
}
