//go:build unix

package digits

import (
	"math"
	"syscall"
	"testing"
	"time"
)

// Small batches need more work per image. The test compares CPU time, which neighbours hardly
// change, of the cheapest of many short alternating epochs; the benchmark measures wall-clock time.
func TestTrainer_SmallBatchesTakeMoreWork(t *testing.T) {
	if RaceDetector {
		t.Skip("the race detector distorts the measurement")
	}
	small, large := math.Inf(1), math.Inf(1)
	for range 8 {
		small = min(small, epochEffort(t, "4"))
		large = min(large, epochEffort(t, "128"))
	}
	if small < 1.1*large {
		t.Errorf("an epoch costs %.4f CPU seconds at batch size 4 and %.4f at 128, want 1.1"+
			" times as many at 4",
			small, large)
	}
}

// epochEffort returns the CPU seconds of this process for an epoch.
func epochEffort(t *testing.T, batchSize string) float64 {
	t.Helper()
	training, heldOut := mustLoad(t)
	trainer := newTrainer(mustParse(t, "--augment", "2", "--batch-size", batchSize), training,
		heldOut)
	before := cpuSeconds(t)
	if _, err := trainer.epoch(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return cpuSeconds(t) - before
}

func cpuSeconds(t *testing.T) float64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Seconds()
}
