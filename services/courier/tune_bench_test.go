package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"courier/tune"
)

// BenchmarkTuneBudget tunes the built-in workload on this machine, with three budgets: multiples of
// the core-seconds that trials with one CPU took just before. The CPUs are planned stage by stage, or
// are the same in all stages. It reports the seconds, the core-seconds relative to the budget and the
// epochs of the best trial; 16 means that the tuning was complete. COURIER_REAL enables it; -count
// repeats it.
func BenchmarkTuneBudget(b *testing.B) {
	if os.Getenv("COURIER_REAL") == "" {
		b.Skip("a quiet machine is needed: set COURIER_REAL")
	}
	for _, multiple := range []float64{1.1, 1.25, 2} {
		for _, cpus := range []string{"1,2", "1", "2"} {
			b.Run(fmt.Sprintf("budget=%gx/cpus=%s", multiple, cpus), func(b *testing.B) {
				for b.Loop() {
					least := tuneDigits(b, "1", 0).CoreSeconds
					r := tuneDigits(b, cpus, multiple*least)
					b.ReportMetric(r.Seconds, "s")
					b.ReportMetric(r.CoreSeconds/(multiple*least), "of-budget")
					b.ReportMetric(bestEpochs(r), "epochs-of-best")
				}
			})
		}
	}
}

// tuneDigits tunes 16 trials with a budget in core-seconds, 0 for none. A tuning that the budget does
// not permit has the trials that ran.
func tuneDigits(b *testing.B, cpus string, budget float64) tune.Ranking {
	args := strings.Fields("tune --trials 16 --epochs 16 --cpus-total 2 --output json" +
		" --param lr=log:1e-4..1e-1 --param batch=32,64,128")
	args = append(args, "--cpus", cpus, "--dir", b.TempDir(),
		"--budget", strconv.FormatFloat(budget/3600, 'g', -1, 64), "--", program(b))
	args = append(args, strings.Fields("workload digits --learning-rate {lr} --batch-size {batch}"+
		" --epochs {epochs} --cpus {cpus}")...)
	var out, messages strings.Builder
	err := run(b.Context(), args, os.Getenv, &out, &messages)
	var r tune.Ranking
	if invalid := json.Unmarshal([]byte(out.String()), &r); invalid != nil || err != nil && budget == 0 {
		b.Fatalf("%v, %v: %s", err, invalid, messages.String())
	}
	if !r.Complete {
		b.Logf("CPUs %s, budget %.1f: %v", cpus, budget, err)
	}
	return r
}

// bestEpochs returns the epochs that the best trial has run; 0 if there is none.
func bestEpochs(r tune.Ranking) float64 {
	if len(r.Trials) == 0 {
		return 0
	}
	return float64(r.Trials[0].Epochs)
}
