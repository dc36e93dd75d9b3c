package collector

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// speedUnderLoad measures the speed while other threads use processors and memory.
func speedUnderLoad(threads int) float64 {
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range threads {
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

// collectorWithSpeeds returns a collector that measures these speeds in turn, and then none.
func collectorWithSpeeds(t *testing.T, log *slog.Logger, speeds ...float64) *Collector {
	t.Helper()
	c, err := New(nil, Options{Node: "n"}, log, nil)
	must(t, err)
	c.cpuModel = "x"
	c.measureSpeed = func() (speed float64) {
		if len(speeds) > 0 {
			speed, speeds = speeds[0], speeds[1:]
		}
		return speed
	}
	return c
}

// nextSampleSpeed returns the speed in a collector's next sample, or 0 if it has none.
func nextSampleSpeed(c *Collector) float64 {
	s := &schemas.Sample{Cores: 2, IntervalSeconds: 2}
	c.enqueue(s)
	return s.Hardware().Speed
}

// Samples contain the best known speed: the collector's, or the one in the last logged sample if
// the machine is the same.
func TestCollector_PublishesTheBestSpeed(t *testing.T) {
	linuxOnly(t)
	const slow, fast = 2.7e9, 4.9e9
	last := func(cores uint32, cpu string, speed float64) *schemas.Sample {
		return &schemas.Sample{Node: "n", Cores: cores, CPUModel: cpu, SpeedOperationsPerSecond: &speed}
	}
	for _, c := range []struct {
		name     string
		last     *schemas.Sample
		measured []float64
		want     []float64
		logged   int // messages about a higher speed
	}{
		{"faster and slower", nil, []float64{slow, fast, slow}, []float64{slow, fast, fast}, 1},
		{"slightly faster", nil, []float64{slow, 1.05 * slow}, []float64{slow, slow}, 0},
		{"not measured", nil, []float64{0, slow, 0}, []float64{0, slow, slow}, 0},
		{
			"slower than before a restart",
			last(2, "x", fast),
			[]float64{slow, slow},
			[]float64{fast, fast},
			0,
		},
		{
			"faster than before a restart",
			last(2, "x", slow),
			[]float64{slow, fast},
			[]float64{slow, fast},
			1,
		},
		{"other cores before", last(4, "x", fast), []float64{slow, slow}, []float64{slow, slow}, 0},
		{"another CPU before", last(2, "y", fast), []float64{slow, slow}, []float64{slow, slow}, 0},
	} {
		var log bytes.Buffer
		n := collectorWithSpeeds(t, slog.New(slog.NewTextHandler(&log, nil)), c.measured...)
		must(t, n.applyNameCheck(nameCheck{last: c.last}))
		var speeds []float64
		for range c.measured {
			n.updateSpeed()
			speeds = append(speeds, nextSampleSpeed(n))
		}
		if d := cmp.Diff(c.want, speeds); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if logged := strings.Count(log.String(), "higher node speed measured"); logged != c.logged {
			t.Errorf("%s: %d messages about a higher speed, want %d:\n%s", c.name, logged, c.logged, &log)
		}
	}
}

// The speed is measured again after half a minute, and then with increasing pauses.
func TestCollector_RepeatsTheSpeedMeasurement(t *testing.T) {
	linuxOnly(t)
	c := collectorWithSpeeds(t, quiet, 1, 3, 2, 4, 5, 6, 7)
	synctest.Test(t, func(t *testing.T) {
		measure, start, at := c.measureSpeed, time.Now(), []float64(nil)
		c.measureSpeed = func() float64 { at = append(at, time.Since(start).Minutes()); return measure() }
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		var background sync.WaitGroup
		background.Go(func() { c.repeatSpeed(ctx) })
		var speeds []float64
		for ticker := time.NewTicker(6 * time.Minute); len(speeds) < 5; {
			<-ticker.C
			speeds = append(speeds, nextSampleSpeed(c))
		}
		background.Wait()
		if d := cmp.Diff([]float64{0.5, 1.5, 3.5, 7.5, 15.5, 25.5}, at); d != "" {
			t.Errorf("minutes of the measurements (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]float64{3, 4, 5, 5, 6}, speeds); d != "" {
			t.Errorf("speeds of samples every six minutes (-want +got):\n%s", d)
		}
	})
}

func linuxOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the CPU time of a thread is measured on Linux only")
	}
}

// BenchmarkMeasureSpeed also measures while twice as many threads as processors are busy. The ratio of both
// speeds should be about 1: features distinguish speeds in steps of a tenth.
func BenchmarkMeasureSpeed(b *testing.B) {
	speed, busy := 0.0, 0.0
	for b.Loop() {
		speed = measureSpeed()
		busy = speedUnderLoad(2 * runtime.NumCPU())
	}
	b.ReportMetric(speed, "operations/s")
	b.ReportMetric(busy/speed, "busy-ratio")
}
