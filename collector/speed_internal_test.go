package collector

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
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

// measuring is a collector whose node has these speeds, one after the other, and then
// none that is measured.
func measuring(t *testing.T, log *slog.Logger, speeds ...float64) *Collector {
	t.Helper()
	c, err := New(nil, Options{Node: "n"}, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.cpuModel = "x"
	c.gauge = func() (speed float64) {
		if len(speeds) > 0 {
			speed, speeds = speeds[0], speeds[1:]
		}
		return speed
	}
	return c
}

// speedTold is the speed that a collector's next sample tells; 0: none.
func speedTold(c *Collector) float64 {
	s := &schemas.Sample{Cores: 2, IntervalSeconds: 2}
	c.keep(s)
	return s.Hardware().Speed
}

// Samples tell the best speed that is known of the node: this collector's, or that of
// the newest sample in the log, as long as that is of the same machine.
func TestCollector_TellsTheBestSpeed(t *testing.T) {
	linuxOnly(t)
	const slow, fast = 2.7e9, 4.9e9
	last := func(cores uint32, cpu string, speed float64) *schemas.Sample {
		return &schemas.Sample{Node: "n", Cores: cores, CPUModel: cpu, SpeedOperationsPerSecond: &speed}
	}
	for _, c := range []struct {
		name     string
		last     *schemas.Sample
		measured []float64
		told     []float64
		rises    int // that are logged
	}{
		{"faster and slower", nil, []float64{slow, fast, slow}, []float64{slow, fast, fast}, 1},
		{"a little faster is the same", nil, []float64{slow, 1.05 * slow}, []float64{slow, slow}, 0},
		{"not measured", nil, []float64{0, slow, 0}, []float64{0, slow, slow}, 0},
		{"slower than before a restart", last(2, "x", fast), []float64{slow, slow}, []float64{fast, fast}, 0},
		{"faster than before a restart", last(2, "x", slow), []float64{slow, fast}, []float64{slow, fast}, 1},
		{"other cores before", last(4, "x", fast), []float64{slow, slow}, []float64{slow, slow}, 0},
		{"another CPU before", last(2, "y", fast), []float64{slow, slow}, []float64{slow, slow}, 0},
	} {
		var log bytes.Buffer
		n := measuring(t, slog.New(slog.NewTextHandler(&log, nil)), c.measured...)
		if err := n.admit(admission{last: c.last}); err != nil {
			t.Fatal(err)
		}
		var speeds []float64
		for range c.measured {
			n.measure()
			speeds = append(speeds, speedTold(n))
		}
		if d := cmp.Diff(c.told, speeds); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if rises := strings.Count(log.String(), "node measured faster"); rises != c.rises {
			t.Errorf("%s: %d lines of a faster node, want %d:\n%s", c.name, rises, c.rises, &log)
		}
	}
}

// A node is measured again half a minute after the first time, then more and more
// rarely, until the end, beside the sampling.
func TestCollector_MeasuresAgain(t *testing.T) {
	linuxOnly(t)
	c := measuring(t, quiet, 1, 3, 2, 4, 5, 6, 7)
	synctest.Test(t, func(t *testing.T) {
		gauge, begin, at := c.gauge, time.Now(), []float64(nil)
		c.gauge = func() float64 { at = append(at, time.Since(begin).Minutes()); return gauge() }
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		var beside sync.WaitGroup
		beside.Go(func() { c.measureAgain(ctx) })
		var speeds []float64
		for ticker := time.NewTicker(6 * time.Minute); len(speeds) < 5; {
			<-ticker.C
			speeds = append(speeds, speedTold(c))
		}
		beside.Wait()
		if d := cmp.Diff([]float64{0.5, 1.5, 3.5, 7.5, 15.5, 25.5}, at); d != "" {
			t.Errorf("measured after minutes (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]float64{3, 4, 5, 5, 6}, speeds); d != "" {
			t.Errorf("samples tell each six minutes (-want +got):\n%s", d)
		}
	})
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
