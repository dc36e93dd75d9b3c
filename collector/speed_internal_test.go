package collector

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// speedBeside is a measurement while hogs keep the processors busy.
func speedBeside(hogs int) float64 {
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
	speed := measureSpeed()
	close(stop)
	all.Wait()
	return speed
}

// A speed is measured in steps of a tenth. It must not depend on when it is
// measured: at rest by a few percent, and little more beside twice as many busy
// threads as there are processors, which also keep the memory busy. Both are
// measured in turn, because a virtual machine is not equally fast all the time.
func TestMeasureSpeed_IsRepeatable(t *testing.T) {
	linuxOnly(t)
	if testing.Short() {
		t.Skip("it measures this machine, which is not alone beside other tests")
	}
	load := NewObserver(quiet).Mark().reading.loadAverage
	const n = 9
	var rest, busy []float64 // the latter as shares of the speed just before
	for range n {
		speed := speedBeside(0)
		rest, busy = append(rest, speed), append(busy, speedBeside(2*runtime.NumCPU())/speed)
	}
	slices.Sort(rest)
	slices.Sort(busy)
	median := rest[n/2]
	off := func(x float64) float64 { return math.Abs(math.Log(x / median)) }
	near := 0
	for _, x := range rest {
		if off(x) <= 0.1 {
			near++
		}
	}
	t.Logf("at rest %.4g operations per second, from %.3f to %.3f of the median; beside busy threads %.3f, from %.3f to %.3f",
		median, rest[0]/median, rest[n-1]/median, busy[n/2], busy[0], busy[n-1])
	switch {
	case load == nil || *load > float64(runtime.NumCPU()):
		t.Log("others keep this machine busy: what it does at rest is not measured")
	case near < n*3/4:
		t.Errorf("%d of %d measurements are within 10 %% of their median: %.4g", near, n, rest)
	}
	if math.Abs(math.Log(busy[n/2])) > 0.2 {
		t.Errorf("beside busy threads %.3f of the speed at rest", busy[n/2])
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
