package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// simulated runs courier simulate drift.
func simulated(t *testing.T, args ...string) driftResult {
	t.Helper()
	var out, errors bytes.Buffer
	args = append([]string{"simulate", "drift", "--output", "json", "--stationary-jobs", "20000", "--repetitions", "6"}, args...)
	if err := run(t.Context(), args, func(string) string { return "" }, &out, &errors); err != nil {
		t.Fatalf("%v: %v, %s", args, err, errors.String())
	}
	var r driftResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The bars of drift, on few repetitions; the trainer's tests hold
// more of delays and names.
func TestSimulateDrift_KeepsItsBars(t *testing.T) {
	for _, c := range []struct {
		change, noise string
		delay         float64
	}{{"0.30", "0.05", 3}, {"0.10", "0.15", 55}} {
		r := simulated(t, "--change", c.change, "--noise", c.noise, "--seed", "7", "--repetitions", "40")
		// 0.85 of 40 is what 0.95 falls short of once in a hundred times.
		if r.MedianDelayJobs > c.delay || r.NamedNodeRatio < 0.85 || r.NamedClusterRatio < 0.85 {
			t.Errorf("+%s at noise %s: noticed after %.1f jobs, want %.0f; named %.2f of the nodes and %.2f of the clusters", c.change, c.noise, r.MedianDelayJobs, c.delay, r.NamedNodeRatio, r.NamedClusterRatio)
		}
		if r.CoverageAfter20 < 0.85 || r.CoverageAfter50 < 0.90 || r.CoverageAtOnce > r.CoverageAfter20 || r.UnpromisedRatio > 0.01 {
			t.Errorf("+%s at noise %s: promises kept %.3f at once, %.3f, %.3f; %.3f not promised", c.change, c.noise, r.CoverageAtOnce, r.CoverageAfter20, r.CoverageAfter50, r.UnpromisedRatio)
		}
	}
}

func TestSimulateDrift_IsDeterministic(t *testing.T) {
	if testing.Short() {
		t.Skip("computes alone")
	}
	a, b, other := simulated(t, "--seed", "3"), simulated(t, "--seed", "3"), simulated(t, "--seed", "4")
	if a != b {
		t.Errorf("seed 3 gives %+v and %+v", a, b)
	}
	if other.Seed = a.Seed; a == other {
		t.Errorf("seeds 3 and 4 give the same: %+v", a)
	}
}

func TestSimulateDrift_RefusesWhatMeansNothing(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"--change=0", "change is 0"}, {"--change=-1", "change is -1"}, {"--change=NaN", "change is NaN"}, {"--noise=0", "noise is 0"},
		{"--confidence=1", "confidence is 1"}, {"--stationary-jobs=0", "stationary-jobs is 0"}, {"--repetitions=0", "repetitions is 0"}, {"--nodes=0", "nodes is 0"}, {"--models=1001", "models is 1001"},
	} {
		var out, errors bytes.Buffer
		err := run(t.Context(), []string{"simulate", "drift", c.flag}, func(string) string { return "" }, &out, &errors)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.flag, err, c.want)
		}
	}
}
