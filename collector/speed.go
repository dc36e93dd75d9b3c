package collector

import (
	"context"
	"runtime"
	"time"
)

const (
	speedSide    = 64      // of the matrices: three of 32 KiB lie in the second cache
	speedTimes   = 6       // products in a run
	speedLength  = 1 << 18 // of the arrays: two of 2 MiB, more than most second caches hold
	speedPasses  = 3       // over the arrays in a run
	speedRuns    = 12      // at most; the best counts, because whatever disturbs a run makes it longer
	speedLongest = 60 * time.Millisecond

	speedPause        = 30 * time.Second // before it is measured again; the next ones are twice as long each
	speedLongestPause = 10 * time.Minute

	speedOperations = speedTimes*2*speedSide*speedSide*speedSide + speedPasses*2*speedLength // multiplications and additions in a run
)

// measure measures the speed of this node, and keeps it if it is the best so far.
func (c *Collector) measure() {
	if speed, best := c.gauge(), c.speed.Load(); speed > 0 && (best == nil || speed > *best) {
		c.speed.Store(&speed)
	}
	if c.o.Alone {
		Shed()
	}
}

// measureAgain measures until ctx ends, more and more rarely: a virtual machine may be
// slower for seconds at a time, as when it was measured first.
func (c *Collector) measureAgain(ctx context.Context) {
	pause := speedPause
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.measure()
		pause = min(2*pause, speedLongestPause)
		ticker.Reset(pause)
	}
}

// measureSpeed returns how many floating-point operations one processor of this
// node does in a second, in products of matrices and passes over arrays as
// training does, on one thread. It takes less than 100 ms of CPU time, which is
// what it counts: other work on the node hardly changes it.
func measureSpeed() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	k := newKernel()
	k.run() // the first touch of the memory is not what is measured
	best := time.Duration(0)
	begin := threadTime()
	for range speedRuns {
		before := threadTime()
		k.run()
		after := threadTime()
		if took := after - before; took > 0 && (best == 0 || took < best) {
			best = took
		}
		if after-begin >= speedLongest {
			break
		}
	}
	if best == 0 {
		return 0 // the clock does not tell
	}
	return *figure(speedOperations / best.Seconds())
}

// kernel is what is timed.
type kernel struct {
	a, b, product []float64 // matrices, by rows
	from, to      []float64
}

func newKernel() *kernel {
	k := &kernel{a: make([]float64, speedSide*speedSide), b: make([]float64, speedSide*speedSide), product: make([]float64, speedSide*speedSide),
		from: make([]float64, speedLength), to: make([]float64, speedLength)}
	for i := range k.a {
		k.a[i], k.b[i] = 1/float64(1+i%7), 1/float64(1+i%11)
	}
	for i := range k.from {
		k.from[i] = 1 / float64(1+i%13)
	}
	return k
}

func (k *kernel) run() {
	for range speedTimes {
		k.multiply()
	}
	for range speedPasses {
		for i, x := range k.from {
			k.to[i] = 0.5*k.to[i] + x
		}
	}
}

// multiply sets the product of a and b, row by row.
func (k *kernel) multiply() {
	for i := range speedSide {
		row := k.product[i*speedSide : (i+1)*speedSide]
		clear(row)
		for j := range speedSide {
			x, other := k.a[i*speedSide+j], k.b[j*speedSide:(j+1)*speedSide]
			for c := range row {
				row[c] += x * other[c]
			}
		}
	}
}
