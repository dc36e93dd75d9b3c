package main

import (
	"strings"
	"sync"
	"testing"
	"time"

	"courier/replay"
	"courier/schemas"
	"courier/services/local"
)

// realPast runs real jobs, fits regressors on them, and runs overlapping jobs with SLOs. It returns
// the log and the number of jobs.
func realPast(t *testing.T, l *local.Instance) (past *replay.Log, ran int) {
	t.Helper()
	predicts := func(q schemas.JobRequest, a *schemas.Advice) bool {
		return l.Bus().Request(within(t, oneTry), schemas.SubjectJobPredict, &q, a) == nil
	}
	await(t, "the node", func() bool {
		var a schemas.Advice
		return predicts(schemas.JobRequest{Model: digitsModel, CPUs: schemas.CPUs{1}, Epochs: 4}, &a) &&
			a.Load.ProcessesPerCore > 0
	})
	learn(t, l.Bus(), func() {
		for _, batch := range []int{4, 16, 64} {
			for _, cpus := range []int{1, 2} {
				for range 2 {
					digitsJob(t, l.Bus(), schemas.JobRequest{
						CPUs:       schemas.CPUs{cpus},
						BatchSizes: []int{4, 16, 64},
						Epochs:     4,
					}, batch)
					ran++
				}
			}
		}
	})
	await(t, "the regressors", func() bool {
		var a schemas.Advice
		return predicts(schemas.JobRequest{Model: digitsModel, CPUs: schemas.CPUs{1}, Epochs: 4}, &a) &&
			len(a.Regressors) >= 2
	})
	slo := schemas.Duration(time.Hour)
	var jobs sync.WaitGroup
	for _, id := range []string{"one", "two", "three"} {
		jobs.Go(func() {
			digitsJob(t, l.Bus(), schemas.JobRequest{
				JobID: id, CPUs: schemas.CPUs{1, 2}, BatchSizes: []int{4, 16, 64}, Epochs: 4, SLO: slo,
			}, 0)
		})
	}
	jobs.Wait()
	learn(t, l.Bus(), func() {})
	digitsJob(t, l.Bus(), schemas.JobRequest{
		JobID: "four", CPUs: schemas.CPUs{1, 2}, BatchSizes: []int{4, 16, 64}, Epochs: 4, SLO: slo,
	}, 0)
	log, err := replay.ReadBus(within(t, patience), l.Bus())
	if err != nil {
		t.Fatal(err)
	}
	return log, ran + 4
}

// A log of real jobs is replayed.
func TestReplay_OfARealLog(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow computation")
	}
	l := startAll(t, nil)
	log, ran := realPast(t, l)
	t.Run("equal numbers", func(t *testing.T) { sameNumbers(t, log, ran) })
	t.Run("differences", func(t *testing.T) { differs(t, log) }) // changes the log
}

func sameNumbers(t *testing.T, log *replay.Log, ran int) {
	t.Helper()
	v, err := log.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if all := v.Total(); all.Different > 0 || all.Unrepeatable > 0 || v.Answers.Equal != ran ||
		v.Predictions.Equal == 0 {
		t.Errorf("verify = %+v, want %d equal answers, equal predictions, and no difference", v, ran)
	}
}

// The replay finds and describes changed and missing records of a log.
func differs(t *testing.T, log *replay.Log) {
	t.Helper()
	lied := 0.123456
	for i := range log.Records {
		if e, ok := log.Records[i].Event.(*schemas.Submitted); ok && e.JobID == "four" {
			changed := *e
			changed.Advice.Alternatives = append([]schemas.Alternative(nil),
				e.Advice.Alternatives...)
			changed.Advice.Alternatives[0].AccuracyLower = &lied // the first number, whatever else differs by then
			log.Records[i].Event = &changed
		}
	}
	v, err := log.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v.Answers.Different != 1 || len(v.Differences) != 1 ||
		v.Differences[0].EventID != "four/submitted" ||
		v.Differences[0].Field != "alternatives[0].accuracy_lower" ||
		string(v.Differences[0].Recorded) != "0.123456" {
		t.Errorf("verify = %+v, want a change in alternatives[0].accuracy_lower of four/submitted",
			v)
	}

	log.Artifacts = nil
	v, err = log.Verify(t.Context())
	if all := v.Total(); err != nil || v.Answers.Equal == 0 || v.Answers.Unrepeatable == 0 ||
		all.Different > 0 || len(v.Unrepeatable) == 0 {
		t.Errorf("without artifacts verify = %+v, %v, want the answers without regressors equal,"+
			" and the others unrepeatable",
			v, err)
	}
	for _, u := range v.Unrepeatable {
		if !strings.Contains(u.Reason, "are not in the log") {
			t.Errorf("reason for an unrepeatable answer = %s, want one about the log", u.Reason)
		}
	}
}
