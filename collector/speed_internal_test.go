package collector

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
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
// measured: most of the time by less than two steps where nobody else runs (a
// processor that is shared below this machine has a few speeds), and little more
// beside twice as many busy threads as there are processors, which also keep the
// memory busy. Those are held against what was measured just before.
func TestMeasureSpeed_IsRepeatable(t *testing.T) {
	linuxOnly(t)
	if testing.Short() {
		t.Skip("it measures this machine, which is not alone beside other tests")
	}
	const n = 9
	var rest, busy []float64
	for range n {
		before := running(t)
		if speed := measureSpeed(); max(before, running(t)) == 1 {
			rest = append(rest, speed)
		}
	}
	for range n {
		speed := measureSpeed()
		busy = append(busy, speedBeside(2*runtime.NumCPU())/speed)
	}
	slices.Sort(rest)
	slices.Sort(busy)
	t.Logf("at rest %.4g operations per second; beside busy threads %.3f of it, from %.3f to %.3f", rest, busy[n/2], busy[0], busy[n-1])
	near := 0
	for _, x := range rest {
		if math.Abs(math.Log(x/rest[len(rest)/2])) <= 0.2 {
			near++
		}
	}
	switch {
	case len(rest) < 3:
		t.Log("others run on this machine: what it does at rest is not measured")
	case near <= len(rest)/2:
		t.Errorf("%d of %d measurements are near their median: %.4g", near, len(rest), rest)
	}
	if math.Abs(math.Log(busy[n/2])) > 0.2 {
		t.Errorf("beside busy threads %.3f of the speed at rest", busy[n/2])
	}
}

// running is how many threads of this machine run or wait for a processor, this one
// included.
func running(t *testing.T) (n int) {
	t.Helper()
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(strings.Fields(string(data))[3], "%d/", &n); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return n
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
