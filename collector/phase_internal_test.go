package collector

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestPhaseOf_SpreadsNodesEvenly(t *testing.T) {
	const nodes, parts = 1000, 20
	for _, interval := range []time.Duration{shortestInterval, defaultInterval, longestInterval} {
		var in [parts]int
		for n := range nodes {
			p := phaseOf(fmt.Sprintf("rack%02d-node%03d", n/40, n%40), interval)
			if p < 0 || p >= interval {
				t.Fatalf("phase = %s, want it within %s", p, interval)
			}
			in[p*parts/interval]++
		}
		for part, n := range in { // 50 expected; 5 standard deviations
			if n < 15 || n > 85 {
				t.Errorf("%d of %d nodes publish in part %d of %d of %s, want about %d", n, nodes, part, parts, interval, nodes/parts)
			}
		}
	}
	if phaseOf("a", time.Second) == phaseOf("b", time.Second) {
		t.Error("two nodes have one phase")
	}
}

func TestAwaitPhase_IsTheSameWheneverOneStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for start := range 7 {
			timer := time.NewTimer(time.Duration(start) * 317 * time.Millisecond)
			<-timer.C
			begin := time.Now()
			if !awaitPhase(t.Context(), "node-7", defaultInterval) {
				t.Fatal("awaitPhase() = false, want the phase")
			}
			if got := time.Duration(time.Now().UnixNano()) % defaultInterval; got != phaseOf("node-7", defaultInterval) || time.Since(begin) >= defaultInterval {
				t.Errorf("began at %s of the interval after %s, want %s at once or within %s", got, time.Since(begin), phaseOf("node-7", defaultInterval), defaultInterval)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if awaitPhase(ctx, "node-7", longestInterval) {
			t.Error("awaitPhase() = true, want the end of its context first")
		}
	})
}
