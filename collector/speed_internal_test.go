package collector

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// speeds are some measurements in order, while hogs keep the processors busy.
func speeds(measurements, hogs int) []float64 {
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range hogs {
		all.Go(func() {
			memory := make([]float64, 1<<20)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				for k := range memory {
					memory[k] += float64(i)
				}
			}
		})
	}
	var found []float64
	for range measurements {
		found = append(found, measureSpeed())
	}
	close(stop)
	all.Wait()
	slices.Sort(found)
	return found
}

// A speed is measured in steps of a tenth. It must not depend on when it is
// measured: at rest by a few percent, and little more beside twice as many busy
// threads as there are processors, which also keep the memory busy.
func TestMeasureSpeed_IsRepeatable(t *testing.T) {
	linuxOnly(t)
	if testing.Short() {
		t.Skip("it measures this machine, which is not alone beside other tests")
	}
	const n = 9
	rest := speeds(n, 0)
	median := rest[n/2]
	off := func(x float64) float64 { return math.Abs(math.Log(x / median)) }
	near := 0
	for _, x := range rest {
		if off(x) <= 0.1 {
			near++
		}
	}
	busy := speeds(n, 2*runtime.NumCPU())
	t.Logf("at rest %.4g operations per second, from %.3f to %.3f of the median; beside busy threads %.3f, from %.3f to %.3f",
		median, rest[0]/median, rest[n-1]/median, busy[n/2]/median, busy[0]/median, busy[n-1]/median)
	if near < n*3/4 {
		t.Errorf("%d of %d measurements are within 10 %% of their median: %.4g", near, n, rest)
	}
	if off(busy[n/2]) > 0.2 {
		t.Errorf("beside busy threads %.3f of the speed at rest", busy[n/2]/median)
	}
}

func linuxOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("CPU time of a thread is read on Linux only")
	}
}

func BenchmarkMeasureSpeed(b *testing.B) {
	var last float64
	for b.Loop() {
		last = measureSpeed()
	}
	b.ReportMetric(last, "operations/s")
}
