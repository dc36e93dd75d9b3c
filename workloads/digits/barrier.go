package digits

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Workers reach a barrier microseconds apart when each has a CPU, and
// milliseconds apart when a neighbour took one. So a worker first looks again
// and again, which costs no call to the kernel, and then gives its CPU away
// until it is woken. Waking takes 50 to 130 µs on a virtual machine
// (measured); looking for about as long loses at most twice the best choice.
const (
	spinTime  = 200 * time.Microsecond
	spinLooks = 500 // between two glances at the clock, about a microsecond
)

// barrier lets no party past wait before all have come; what one wrote before
// it, all read after it. It can be used again and again.
type barrier struct {
	parties int32
	spins   bool // look before sleeping

	arrived atomic.Int32
	turn    atomic.Uint32

	mutex  sync.Mutex
	turned *sync.Cond
}

func newBarrier(parties int) *barrier {
	b := &barrier{parties: int32(parties)}
	// With more parties than CPUs the others cannot come while this one looks.
	b.spins = parties <= runtime.GOMAXPROCS(0)
	b.turned = sync.NewCond(&b.mutex)
	return b
}

// wait blocks until all parties have called it.
func (b *barrier) wait() {
	if b.parties == 1 {
		return
	}
	turn := b.turn.Load()
	if b.arrived.Add(1) == b.parties {
		b.arrived.Store(0)
		b.mutex.Lock()
		b.turn.Add(1)
		b.mutex.Unlock()
		b.turned.Broadcast()
		return
	}
	if b.spins && b.spin(turn) {
		return
	}
	b.mutex.Lock()
	for b.turn.Load() == turn {
		b.turned.Wait()
	}
	b.mutex.Unlock()
}

// spin looks for the next turn for a while, and returns whether it came.
func (b *barrier) spin(turn uint32) bool {
	for start := time.Now(); time.Since(start) < spinTime; {
		for range spinLooks {
			if b.turn.Load() != turn {
				return true
			}
		}
	}
	return false
}
