package collector

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestPhaseOf_DistributesNodesEvenly(t *testing.T) {
	const nodes, parts = 1000, 20
	for _, interval := range []time.Duration{minInterval, defaultInterval, maxInterval} {
		var in [parts]int
		for n := range nodes {
			p := phaseOf(fmt.Sprintf("rack%02d-node%03d", n/40, n%40), interval)
			if p < 0 || p >= interval {
				t.Fatalf("phase = %s, want it within %s", p, interval)
			}
			in[p*parts/interval]++
		}
		for part, n := range in { // the mean is 50, and the limits are 5 standard deviations
			if n < 15 || n > 85 {
				t.Errorf("%d of %d nodes publish in part %d of %d of %s, want about %d",
					n, nodes, part, parts, interval, nodes/parts)
			}
		}
	}
	if phaseOf("a", time.Second) == phaseOf("b", time.Second) {
		t.Error("two nodes have the same phase")
	}
}

func TestAwaitPhase_DoesNotDependOnTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for start := range 7 {
			timer := time.NewTimer(time.Duration(start) * 317 * time.Millisecond)
			<-timer.C
			begin := time.Now()
			if !awaitPhase(t.Context(), "node-7", defaultInterval) {
				t.Fatal("awaitPhase() = false, want the phase")
			}
			got := time.Duration(time.Now().UnixNano()) % defaultInterval
			want := phaseOf("node-7", defaultInterval)
			if waited := time.Since(begin); got != want || waited >= defaultInterval {
				t.Errorf("phase %s after %s, want %s within %s", got, waited, want, defaultInterval)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if awaitPhase(ctx, "node-7", maxInterval) {
			t.Error("awaitPhase() = true, want false at the end of its context")
		}
	})
}
