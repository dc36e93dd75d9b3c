package store_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"courier/schemas"
	"courier/store/storetest"
)

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
