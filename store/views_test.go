package store_test

import (
	"testing"
	"time"

	"courier/schemas"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

func TestViews_ShowTheStateOfAJob(t *testing.T) {
	t.Parallel()
	type line struct {
		State  string   `ch:"state"`
		Run    uint32   `ch:"run"`
		Epochs uint32   `ch:"epochs_done"`
		Met    *bool    `ch:"met_slo"`
		Took   *float64 `ch:"response_seconds"`
		Short  bool     `ch:"incomplete"`
	}
	yes, no := true, false
	tests := []struct {
		name    string
		publish func(s *testLog, job string)
		want    line
	}{
		{"only-submitted", func(s *testLog, job string) { s.submitted(job, time.Minute) }, line{State: "submitted"}},
		{"running", func(s *testLog, job string) {
			s.submitted(job, time.Minute)
			s.started(job, 1)
			s.epoch(job, 1, 1)
		}, line{State: "running", Run: 1, Epochs: 1}},
		{
			"in-time",
			func(s *testLog, job string) { s.job(job, time.Minute, schemas.EventFinished) },
			line{"finished", 1, 3, &yes, pointer(11.000000077), false},
		},
		{"work-after-the-last-epoch", func(s *testLog, job string) {
			s.submitted(job, 4500*time.Millisecond)
			s.started(job, 1)
			for n := range uint32(3) {
				s.epoch(job, 1, n+1)
			}
			s.ended(job, 1, schemas.EventFinished)
		}, line{"finished", 1, 3, &yes, pointer(5.000000035), false}},
		{"cancelled-while-running", func(s *testLog, job string) {
			s.submitted(job, time.Minute)
			s.started(job, 1)
			s.ended(job, 1, schemas.EventCancelled)
		}, line{"cancelled", 1, 0, nil, pointer(2.000000014), false}},
		{"lost-with-slo", func(s *testLog, job string) {
			s.submitted(job, time.Minute)
			s.started(job, 1)
			s.ended(job, 1, schemas.EventLost)
		}, line{"lost", 1, 0, nil, pointer(2.000000014), false}},
		{
			"too-late",
			func(s *testLog, job string) { s.job(job, 2*time.Second, schemas.EventFinished) },
			line{"finished", 1, 3, &no, pointer(11.000000077), false},
		},
		{
			"without-slo",
			func(s *testLog, job string) { s.job(job, 0, schemas.EventFinished) },
			line{"finished", 1, 3, nil, pointer(11.000000077), false},
		},
		{
			"failed",
			func(s *testLog, job string) { s.job(job, time.Minute, schemas.EventFailed) },
			line{"failed", 1, 3, &no, pointer(11.000000077), false},
		},
		{"without-epochs", func(s *testLog, job string) {
			s.submitted(job, time.Minute)
			s.started(job, 1)
			s.incomplete(job, 0)
		}, line{"finished", 1, 0, nil, pointer(2.000000014), true}},
		{"with-too-few-epochs", func(s *testLog, job string) {
			s.submitted(job, time.Minute)
			s.started(job, 1)
			s.epoch(job, 1, 1)
			s.incomplete(job, 1)
		}, line{"finished", 1, 1, nil, pointer(3.000000021), true}},
		{"finished-early", func(s *testLog, job string) {
			s.submitted(job, time.Minute)
			s.events[len(s.events)-1].(*schemas.Submitted).Advice.MayStopEarly = true
			s.started(job, 1)
			s.epoch(job, 1, 1)
			s.incomplete(job, 1)
		}, line{"finished", 1, 1, &yes, pointer(3.000000021), false}},
		{"stopped-although-it-may-finish-early", func(s *testLog, job string) {
			s.submitted(job, time.Minute)
			s.events[len(s.events)-1].(*schemas.Submitted).Advice.MayStopEarly = true
			s.started(job, 1)
			s.epoch(job, 1, 1)
			s.incomplete(job, 1)
			s.events[len(s.events)-1].(*schemas.Ended).Reason = "stopped after epoch 1"
		}, line{"finished", 1, 1, nil, pointer(3.000000021), true}},
		{"reached-its-target", func(s *testLog, job string) {
			s.submitted(job, time.Minute)
			s.events[len(s.events)-1].(*schemas.Submitted).Request.TargetAccuracy = 0.8
			s.started(job, 1)
			s.epoch(job, 1, 1)
			s.incomplete(job, 1)
		}, line{"finished", 1, 1, &yes, pointer(3.000000021), false}},
		{"cancelled-before-start", func(s *testLog, job string) {
			s.submitted(job, time.Minute)
			s.ended(job, 0, schemas.EventCancelled)
		}, line{"cancelled", 0, 0, nil, pointer(1.000000007), false}},
		{"lost", func(s *testLog, job string) {
			s.submitted(job, 0)
			s.started(job, 1)
			s.ended(job, 1, schemas.EventLost)
		}, line{"lost", 1, 0, nil, pointer(2.000000014), false}},
		{"lost-and-found", func(s *testLog, job string) {
			s.submitted(job, 0)
			s.started(job, 1)
			s.ended(job, 1, schemas.EventLost)
			s.epoch(job, 1, 1)
		}, line{State: "running", Run: 1, Epochs: 1}},
		{"late-epoch-of-a-finished-run", func(s *testLog, job string) {
			s.job(job, 0, schemas.EventFinished)
			s.epoch(job, 1, 4)
		}, line{"finished", 1, 4, nil, pointer(11.000000077), false}},
		{"started-again", func(s *testLog, job string) {
			s.job(job, time.Minute, schemas.EventFailed)
			s.started(job, 2)
		}, line{State: "running", Run: 2}},
	}
	d := storetest.New(t)
	s := newTestLog()
	inPromises := map[string]bool{
		"in-time": true, "work-after-the-last-epoch": true, "too-late": true, "failed": true,
		"finished-early": true, "reached-its-target": true, "started-again": true,
	}
	for _, test := range tests {
		test.publish(s, test.name)
	}
	write(t, newStore(t, nil, d), batch(schemas.StreamJob, 1, s.events...))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []line
			must(t, d.Query(t.Context(), &got,
				"SELECT state, run, epochs_done, met_slo, response_seconds, incomplete FROM jobs WHERE job_id = ?",
				test.name))
			if diff := cmp.Diff([]line{test.want}, got); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			if met := test.want.Met; met != nil { // jobs, promises and the advisor judge the same moment
				kept := selectNumber(t, d, "SELECT countIf(kept) FROM promises WHERE job_id = ?", test.name)
				if (kept == 1) != *met {
					t.Errorf("kept in promises: got %d, want met %t", kept, *met)
				}
			}
			promises := selectNumber(t, d, "SELECT count() FROM promises WHERE job_id = ?", test.name)
			if listed := promises == 1; listed != inPromises[test.name] {
				t.Errorf("listed in promises: got %t, want %t", listed, inPromises[test.name])
			}
		})
	}
}

// Every view with a model also has the dataset. Drift is reported for a model on a dataset.
func TestViews_HaveTheDataset(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	s := newTestLog()
	s.job("mlp-1", time.Minute, schemas.EventFinished)
	jobs := s.events
	s.events = nil
	at := time.Unix(1_790_000_000, 0).UTC()
	drift := &schemas.Drift{
		Stamp: s.stamp(schemas.DriftID("epoch_time", 7, "scope")), Target: "epoch_time", CauseSequence: 7,
		ModelDigest: "abc", State: schemas.DriftActive,
		Scope: schemas.DriftModel, Model: "digits-mlp", Dataset: "digits",
		SinceAt: at, WindowSinceAt: at, Ratio: 1.25, BeforeRatio: 1,
	}
	s.add(drift)
	write(t, newStore(t, nil, d), batch(schemas.StreamJob, 1, jobs...))
	write(t, newStore(t, nil, d), batch(schemas.StreamRegressor, 1, s.events...))
	for _, view := range []string{"jobs", "promises", "epochs", "advice", "alternatives"} {
		got := values[string](t, d, "SELECT DISTINCT concat(model, ' on ', dataset) FROM "+view)
		if diff := cmp.Diff([]string{"digits-mlp on digits"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", view, diff)
		}
	}
	for _, view := range []string{"drifts", "regressor_life"} {
		got := values[string](t, d, "SELECT toString(drifted) FROM "+view)
		if diff := cmp.Diff([]string{"digits-mlp on digits"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", view, diff)
		}
	}
}
