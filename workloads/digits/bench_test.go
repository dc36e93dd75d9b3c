package digits_test

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"courier/workloads/digits"
)

// The benchmarks check the figures in BENCHMARKS.md, on an idle machine with two CPUs: a figure beyond
// its limit fails. Compared epochs run alternately, and the shortest of each counts.

// flagLine returns the arguments for a batch size and CPUs.
func flagLine(batchSize, cpus int, more ...string) []string {
	return append([]string{"--batch-size", strconv.Itoa(batchSize), "--cpus", strconv.Itoa(cpus)}, more...)
}

// shortest returns the duration of the shortest epoch of each command line. In each round, each
// runs two epochs.
func shortest(b *testing.B, rounds int, lines ...[]string) []float64 {
	b.Helper()
	best := slices.Repeat([]float64{math.Inf(1)}, len(lines))
	for range rounds {
		for i, line := range lines {
			for _, e := range train(b, append(line, "--epochs", "2")...) {
				best[i] = min(best[i], e.Seconds)
			}
		}
	}
	return best
}

// BenchmarkEpoch measures an epoch with the default flags.
func BenchmarkEpoch(b *testing.B) {
	for _, cpus := range []int{1, 2} {
		for _, batchSize := range []int{4, 8, 16, 32, 64, 128} {
			b.Run(fmt.Sprintf("cpus=%d/batch=%d", cpus, batchSize), func(b *testing.B) {
				best := math.Inf(1)
				for b.Loop() {
					best = min(best, shortest(b, 2, flagLine(batchSize, cpus))[0])
				}
				b.ReportMetric(best, "s/epoch")
			})
		}
	}
}

// BenchmarkBatchSize checks that an epoch with batch size 4 takes 1.3 times as long as with 64.
func BenchmarkBatchSize(b *testing.B) {
	for _, cpus := range []int{1, 2} {
		b.Run(fmt.Sprintf("cpus=%d", cpus), func(b *testing.B) {
			for b.Loop() {
				best := shortest(b, 6, flagLine(4, cpus), flagLine(64, cpus))
				ratio := best[0] / best[1]
				b.ReportMetric(ratio, "batch4/batch64")
				if ratio < 1.3 {
					b.Errorf("an epoch at batch size 4 takes %.2f times one at 64, want 1.3",
						ratio)
				}
			}
		})
	}
}

// BenchmarkCPUs checks that two CPUs take at most 0.65 of the time of one, for batch sizes of 32
// and more.
func BenchmarkCPUs(b *testing.B) {
	for _, batchSize := range []int{32, 64, 128} {
		b.Run(fmt.Sprintf("batch=%d", batchSize), func(b *testing.B) {
			for b.Loop() {
				best := shortest(b, 10, flagLine(batchSize, 1),
					flagLine(batchSize, 2))
				ratio := best[1] / best[0]
				b.ReportMetric(ratio, "cpus2/cpus1")
				if ratio > 0.65 {
					b.Errorf("the time with two CPUs is %.2f of that with one, want at most 0.65", ratio)
				}
			}
		})
	}
}

// BenchmarkNeighbours checks that an epoch with two such jobs as neighbours takes 1.4 times as long
// as without, by the medians of 20 epochs.
func BenchmarkNeighbours(b *testing.B) {
	for _, cpus := range []int{1, 2} {
		b.Run(fmt.Sprintf("cpus=%d", cpus), func(b *testing.B) {
			for b.Loop() {
				line := flagLine(32, cpus, "--epochs", "20")
				alone := median(train(b, line...))
				stop := startNeighbours(b, 2, line)
				beside := median(train(b, line...))
				stop()
				b.ReportMetric(beside/alone, "beside/alone")
				if beside < 1.4*alone {
					b.Errorf("an epoch with two neighbours takes %.2f times as long as alone,"+
						" want at least 1.4",
						beside/alone)
				}
			}
		})
	}
}

func median(epochs []epoch) float64 {
	seconds := make([]float64, len(epochs))
	for i, e := range epochs {
		seconds[i] = e.Seconds
	}
	slices.Sort(seconds)
	return (seconds[(len(seconds)-1)/2] + seconds[len(seconds)/2]) / 2
}

// BenchmarkAccuracy checks that after the default epochs the accuracy with batch size 4 is two
// points higher than with 128, as a mean of three seeds.
func BenchmarkAccuracy(b *testing.B) {
	for b.Loop() {
		final := make(map[int]float64)
		for _, batchSize := range []int{4, 8, 16, 32, 64, 128} {
			for _, seed := range []string{"1", "2", "3"} {
				epochs := train(b, flagLine(batchSize, 2, "--seed", seed)...)
				final[batchSize] += epochs[len(epochs)-1].Accuracy / 3
			}
			b.ReportMetric(final[batchSize], fmt.Sprintf("accuracy@%d", batchSize))
		}
		if final[4] < final[128]+0.02 {
			b.Errorf("accuracy is %.4f at batch size 4 and %.4f at 128, want 0.02 more at 4", final[4], final[128])
		}
	}
}

// neighbourFlags is the environment variable that makes the test program a neighbour: a process
// that trains with the flags in it.
const neighbourFlags = "DIGITS_NEIGHBOUR_FLAGS"

func TestMain(m *testing.M) {
	if flags := os.Getenv(neighbourFlags); flags != "" {
		if err := digits.Run(context.Background(), strings.Fields(flags), os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// startNeighbours starts processes that train until stop is called, and waits until each has
// finished an epoch.
func startNeighbours(b *testing.B, count int, line []string) (stop func()) {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var neighbours []*exec.Cmd
	stop = func() {
		cancel()
		for _, n := range neighbours {
			_ = n.Wait() // killed by cancel: that is its error
		}
	}
	for range count {
		n := exec.CommandContext(ctx, program)
		n.Env = append(os.Environ(),
			neighbourFlags+"="+strings.Join(append(line, "--epochs", "100000"), " "))
		out, err := n.StdoutPipe()
		if err == nil {
			err = n.Start()
		}
		if err != nil {
			stop()
			b.Fatal(err)
		}
		neighbours = append(neighbours, n)
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			stop()
			b.Fatalf("a neighbour ended before its first epoch")
		}
		go func() {
			for lines.Scan() { // ends with the process
			}
		}()
	}
	return stop
}
