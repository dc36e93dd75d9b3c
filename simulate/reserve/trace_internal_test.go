package reserve

import (
	"testing"
	"time"

	"courier/policy"
	"courier/policy/reserve"
	"courier/simulate/elastic"
)

// A job of 40 units runs for 60 s, and one of 30 waits for it. First come, first served lets the small
// job wait too; it starts at once in its part, and with first fit.
func TestPlay_LetsASmallJobOvertake(t *testing.T) {
	rates := elastic.Throughputs{
		"40": {1: {{Units: 40, Rate: 1}}}, "30": {1: {{Units: 30, Rate: 1}}}, "4": {1: {{Units: 4, Rate: 1}}},
	}
	job := func(id string, at time.Duration, model string) elastic.TraceJob {
		return elastic.TraceJob{
			ID: id, Submitted: at, Deadline: time.Hour, Iterations: 60, Model: model, BatchSize: 1,
		}
	}
	trace := []elastic.TraceJob{
		job("first", 0, "40"), job("waiting", time.Second, "30"), job("small", 2*time.Second, "4"),
	}
	for rule, want := range map[reserve.Rule]time.Duration{
		reserve.RuleFirst:    60 * time.Second,
		reserve.RuleReserve:  2 * time.Second,
		reserve.RuleFirstFit: 2 * time.Second,
	} {
		o := elastic.Options{Cluster: elastic.GPUCluster{
			GPUs: clusterUnits, Pause: policy.Pause{Charge: policy.ChargeNone},
		}}
		score, err := elastic.Play(t.Context(), trace, rates, string(rule), reserve.New(reserve.Options{Rule: rule}), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range score.Schedule {
			if s.Job == "small" && (s.Start-want).Abs() > 10*time.Millisecond {
				t.Errorf("rule %q: the small job starts after %s, want %s", rule, s.Start, want)
			}
			if s.Job == "waiting" && (s.Start-60*time.Second).Abs() > 10*time.Millisecond {
				t.Errorf("rule %q: the waiting job starts after %s, want 60 s", rule, s.Start)
			}
		}
	}
}
