package collector

import (
	"context"
	"runtime"
	"time"
)

// Parameters of the speed measurement.
const (
	matrixSide   = 64      // three matrices of 32 KiB fit into the L2 cache
	matrixPasses = 6       // products per round
	arrayLength  = 1 << 18 // two arrays of 2 MiB exceed most L2 caches
	arrayPasses  = 3       // passes over the arrays per round

	maxSpeedRounds = 12 // the fastest round counts, because disturbances only make rounds slower
	maxSpeedTime   = 60 * time.Millisecond

	firstSpeedPause = 30 * time.Second // until the second measurement; each pause is twice as long
	maxSpeedPause   = 10 * time.Minute

	// operationsPerRound is the number of multiplications and additions in a round.
	operationsPerRound = matrixPasses*2*matrixSide*matrixSide*matrixSide +
		arrayPasses*2*arrayLength
)

// updateSpeed measures the speed of this node, and keeps the best.
func (c *Collector) updateSpeed() {
	speed, best := c.measureSpeed(), c.bestSpeed.Load()
	if speed > 0 && (best == nil || speed > *best) {
		c.bestSpeed.Store(&speed)
	}
	if c.o.Dedicated {
		ReleaseMemory()
	}
}

// repeatSpeed measures with increasing pauses: a virtual machine can be slower for some seconds.
func (c *Collector) repeatSpeed(ctx context.Context) {
	pause := firstSpeedPause
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.updateSpeed()
		pause = min(2*pause, maxSpeedPause)
		ticker.Reset(pause)
	}
}

// measureSpeed returns the floating-point operations per second of one processor, or 0 if unknown.
// It multiplies matrices and scans arrays, as training does, on one thread. It uses less than
// 100 ms of CPU time, and measures only its own, so that other processes have little effect.
func measureSpeed() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := newSpeedBenchmark()
	b.round() // the first access to the memory is not measured

	best := time.Duration(0)
	start := threadCPUTime()
	for range maxSpeedRounds {
		before := threadCPUTime()
		b.round()
		after := threadCPUTime()
		if duration := after - before; duration > 0 && (best == 0 || duration < best) {
			best = duration
		}
		if after-start >= maxSpeedTime {
			break
		}
	}
	if best == 0 {
		return 0 // the CPU time is unknown
	}
	return *sixDigits(operationsPerRound / best.Seconds())
}

type speedBenchmark struct {
	a, b, product       []float64 // matrices, row by row
	source, destination []float64
}

func newSpeedBenchmark() *speedBenchmark {
	s := &speedBenchmark{
		a:           make([]float64, matrixSide*matrixSide),
		b:           make([]float64, matrixSide*matrixSide),
		product:     make([]float64, matrixSide*matrixSide),
		source:      make([]float64, arrayLength),
		destination: make([]float64, arrayLength),
	}
	for i := range s.a {
		s.a[i], s.b[i] = 1/float64(1+i%7), 1/float64(1+i%11)
	}
	for i := range s.source {
		s.source[i] = 1 / float64(1+i%13)
	}
	return s
}

func (s *speedBenchmark) round() {
	for range matrixPasses {
		s.multiply()
	}
	for range arrayPasses {
		for i, x := range s.source {
			s.destination[i] = 0.5*s.destination[i] + x
		}
	}
}

func (s *speedBenchmark) multiply() {
	for i := range matrixSide {
		row := s.product[i*matrixSide : (i+1)*matrixSide]
		clear(row)
		for j := range matrixSide {
			x, other := s.a[i*matrixSide+j], s.b[j*matrixSide:(j+1)*matrixSide]
			for c := range row {
				row[c] += x * other[c]
			}
		}
	}
}
