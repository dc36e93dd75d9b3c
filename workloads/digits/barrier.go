package digits

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Workers arrive at a barrier within microseconds if each has a CPU, and within milliseconds if a
// neighbour uses one. So a worker first spins, without a system call, and then sleeps. Waking up
// takes 50 to 130 µs on a virtual machine (measured). Spinning about as long costs at most twice as
// much as the best choice.
const (
	spinTime  = 200 * time.Microsecond
	spinLooks = 500 // iterations between two readings of the clock, about a microsecond
)

// barrier blocks each party in wait until all have called it. Writes before wait are visible to all
// parties after it. It is reusable.
type barrier struct {
	parties int32
	spins   atomic.Bool // before sleeping

	arrived atomic.Int32
	turn    atomic.Uint32

	mutex  sync.Mutex
	turned *sync.Cond
}

func newBarrier(parties int) *barrier {
	b := &barrier{parties: int32(parties)}
	b.turned = sync.NewCond(&b.mutex)
	b.adjust()
	return b
}

// adjust adapts to the CPUs that the process may use now, which the runtime watches: with more parties
// than CPUs, the others cannot arrive while one spins.
func (b *barrier) adjust() { b.spins.Store(int(b.parties) <= runtime.GOMAXPROCS(0)) }

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
	if b.spins.Load() {
		if b.spin(turn) {
			return
		}
		b.adjust()
	}
	b.mutex.Lock()
	for b.turn.Load() == turn {
		b.turned.Wait()
	}
	b.mutex.Unlock()
}

// spin waits actively for the next turn, and reports whether it came.
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
