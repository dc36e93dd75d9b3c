package trainer

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"courier/bus"
	"courier/regress"
	"courier/schemas"
)

// unknownFeature returns a regressor that another version of Courier fitted.
func unknownFeature(t *testing.T) *loadedRegressor {
	t.Helper()
	r, err := Fit(t.Context(), schemas.TargetEpochTime, examplesUntil(300), Options{Trees: 5})
	if err != nil {
		t.Fatal(err)
	}
	r.Manifest.Features[0].Name = "of_another_version"
	p, err := regress.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	return &loadedRegressor{predictor: p}
}

// A trial that cannot begin is logged once, not for every event.
func TestTrainer_LogsOnceThatATrialCannotBegin(t *testing.T) {
	var out bytes.Buffer
	tr := New(nil, nil, Options{}, slog.New(slog.NewTextHandler(&out, nil)), nil)
	tr.trials = map[string]*Trial{}
	s := activeRegressors{champion: fittedUntil(t, 100), challenger: unknownFeature(t)}
	fw := &follower{past: NewPast()}
	var n *appliedEvent
	for i, e := range busyLog(3, 20) {
		n = &appliedEvent{Record: bus.Record{Event: e, Sequence: uint64(i + 1)}}
		if n.run, n.epoch = fw.past.add(e, n.Sequence); n.run != nil {
			tr.runTrials(fw, map[string]activeRegressors{schemas.TargetEpochTime: s}, n)
		}
	}
	if got := strings.Count(out.String(), "regressors cannot be compared"); got != 1 {
		t.Errorf("logged %d times, want once:\n%s", got, out.String())
	}
	other := s
	other.challenger = unknownFeature(t)
	tr.runTrials(fw, map[string]activeRegressors{schemas.TargetEpochTime: other}, n)
	if got := strings.Count(out.String(), "regressors cannot be compared"); got != 2 {
		t.Errorf("logged %d times for two challengers, want twice", got)
	}
}

// A trial whose verdict cannot be executed does not grow with later jobs.
func TestTrial_IsBounded(t *testing.T) {
	trial, err := newTrial(schemas.TargetEpochTime, fittedUntil(t, 100).predictor,
		fittedUntil(t, 200).predictor)
	if err != nil {
		t.Fatal(err)
	}
	x := examplesUntil(300)[0]
	for n := range 3 * maxJudged {
		k := runKey{fmt.Sprint("job-", n), 1}
		trial.add(k, &x)
		trial.count(k)
		trial.compareReach(fmt.Sprint("setting-", n), n%2 == 0, n%2 == 1)
		trial.ended, trial.nextLookAt = false, len(trial.groups)+1
	}
	if len(trial.groups) != maxJudged || len(trial.losses[0]) != maxJudged ||
		trial.running.len() != 0 || trial.nextLookAt > maxJudged+1 {
		t.Errorf("%d jobs counted, %d runs; want %d and 0", len(trial.groups),
			trial.running.len(), maxJudged)
	}
	for n := range maxShadows + 10 {
		trial.add(runKey{fmt.Sprint("running-", n), 1}, &x)
		trial.compareReach(fmt.Sprint("setting-", n), false, true)
	}
	if trial.running.len() > maxShadows || len(trial.gained) > maxGained ||
		len(trial.lost) > maxGained {
		t.Errorf("%d runs, %d gained and %d lost configurations exceed the limits",
			trial.running.len(), len(trial.gained),
			len(trial.lost))
	}
}

// A trial begins with the runs since its pairing only.
func TestPast_Since(t *testing.T) {
	p := NewLimitedPast(Limits{SettingRuns: 3, Runs: 40, Spans: 10})
	addAll(p, busyLog(4, 300), 1)
	for _, sequence := range []uint64{0, p.last / 2, p.last - 10, p.last} {
		want := 0
		for _, r := range p.order {
			if r.first > sequence {
				want++
			}
		}
		if got := len(p.since(sequence)); got != want {
			t.Errorf("%d runs since %d, want %d", got, sequence, want)
		}
	}
}
