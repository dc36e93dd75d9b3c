package main

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"courier/schemas"
	"courier/store/engine"
)

// The test covers the path from a sample to advice and an SLO that is met. Samples, training jobs,
// the fit and, if the engine is installed, the tables are real. Durations are simulated.
func TestPipeline_FromSampleToKeptSLO(t *testing.T) {
	t.Parallel()
	library := testLibrary(t)
	l := startAll(t, func(f *localFlags) {
		if library != "" {
			f.Engine, f.EngineLibrary = "auto", library
		}
	})
	ctx := within(t, patience)
	node, err := schemas.LocalNodeName()
	if err != nil {
		t.Fatal(err)
	}

	// Step 1: the advisor receives samples of the node.
	request := schemas.JobRequest{
		Model: digitsModel, CPUs: schemas.CPUs{1, 2}, BatchSizes: []int{4, 16, 64}, Epochs: 4,
		SLO: schemas.Duration(time.Hour),
	}
	predict := func() (a schemas.Advice) {
		if err := l.Bus().Request(ctx, schemas.SubjectJobPredict, &request, &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	await(t, "a sample of this node", func() bool {
		return slices.Equal(predict().Nodes, []string{node})
	})
	if a := predict(); a.Decision != schemas.Exploring || a.Chosen.PredictedSeconds != nil {
		t.Errorf("on an empty system %+v, want exploring without figures", a)
	}

	// Steps 2 to 7: jobs run, and regressors are fitted on them.
	ran := 0
	trained := learn(t, l.Bus(), func() {
		for _, batch := range request.BatchSizes {
			for _, cpus := range request.CPUs {
				r := digitsJob(t, l.Bus(), schemas.JobRequest{
					CPUs:       schemas.CPUs{cpus},
					BatchSizes: request.BatchSizes,
					Epochs:     4,
				}, batch)
				if len(r.Epochs) != 4 || r.Accuracy == nil {
					t.Fatalf("job %s: %d epochs, accuracy %v; want 4 epochs and an accuracy",
						r.JobID, len(r.Epochs), r.Accuracy)
				}
				ran++
			}
		}
	})

	if len(trained.Promoted) != 2 { // too few starts for a regressor of the startup time
		t.Fatalf("trained = %+v, want two promoted regressors", trained)
	}

	// Steps 8 and 9: the answer has predictions, and the job meets its SLO.
	await(t, "all regressors", func() bool {
		return len(predict().Regressors) == len(trained.Promoted)
	})
	a := predict()
	if a.Decision != schemas.MeetsSLO || a.Chosen.BatchSize != 4 ||
		a.Chosen.PredictedAccuracy == nil {
		t.Errorf("with an hour of time %s %+v, want meets_slo with batch size 4", a.Decision,
			a.Chosen)
	}
	r := digitsJob(t, l.Bus(), schemas.JobRequest{
		JobID: "kept", CPUs: request.CPUs, BatchSizes: request.BatchSizes, Epochs: 4, SLO: request.SLO,
	}, 0)
	ran++
	var status schemas.JobStatus
	await(t, "the end of the job", func() bool {
		err := l.Bus().Request(ctx, schemas.SubjectJobStatus, &schemas.JobStatusRequest{
			JobID: "kept",
		}, &status)
		return err == nil && status.State == schemas.StateFinished
	})
	if status.MetSLO == nil || !*status.MetSLO || r.Advice.Chosen.BatchSize != status.BatchSize {
		t.Errorf("job %+v, advised %+v: want its SLO met with the advised batch size", status,
			r.Advice.Chosen)
	}
	var advised schemas.Advice
	get(t, l.Endpoints().HTTPURL+"/api/v1/jobs/kept/advice", &advised)
	if advised.CauseSequence == 0 || advised.Chosen == nil ||
		advised.Chosen.PredictedSeconds == nil {
		t.Errorf("last advice for the running job = %+v, want a new prediction", advised)
	}
	var page schemas.JobList
	get(t, l.Endpoints().HTTPURL+"/api/v1/jobs?state=finished", &page)
	if len(page.Jobs) != ran {
		t.Errorf("REST lists %d finished jobs, want %d", len(page.Jobs), ran)
	}
	if library == "" {
		return
	}
	await(t, "SQL", func() bool { return l.Database() != nil })
	checkTables(t, l.Bus(), l.Database())
}

// testLibrary returns the library of the engine. If it is empty, the test runs without tables and
// logs this.
func testLibrary(t testing.TB) string {
	t.Helper()
	found, err := engine.FindLibrary(os.Getenv("COURIER_TEST_ENGINE"))
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrUnsupported) {
		t.Log("without tables: ", err)
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}
