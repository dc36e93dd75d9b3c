package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/importer"
	"courier/schemas"
)

const studyPath = "../../../shared/data/courier-paper/measured_runs.csv"

// courierJSON runs a sub-command and reads its JSON.
func courierJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	var out, log strings.Builder
	if err := run(within(t, patience), append(args, "--output", "json"), os.Getenv, &out, &log); err != nil {
		t.Fatalf("courier %s: %v\n%s", strings.Join(args, " "), err, log.String())
	}
	if err := json.Unmarshal([]byte(out.String()), into); err != nil {
		t.Fatalf("courier %s: %v in %s", strings.Join(args, " "), err, out.String())
	}
}

// lastSequence returns the last sequence of the log of jobs.
func lastSequence(t *testing.T, b *bus.Bus) uint64 {
	t.Helper()
	n, err := b.LastSequence(within(t, patience), schemas.StreamJob)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The test imports the published study. The trainer learns from the runs, predictions are close to
// the measurements, implausible runs are rejected, and a second import adds nothing.
func TestImport_TheStudyTeachesAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("slow fit")
	}
	if _, err := os.Stat(studyPath); err != nil {
		t.Skip("the runs of the study are not available: ", err)
	}
	l := startAll(t, nil)
	file := []string{
		"import", "--nats-url", l.Endpoints().NATSURL, "--epochs", "10", "--training-samples", "60000",
		"--since", "2020-10-21", "--where", "campaign=fullfact", studyPath,
	}
	var s importer.Summary
	courierJSON(t, &s, file...)
	want := []importer.ReasonCount{{Reason: importer.ReasonCopied, Runs: 5}}
	if s.Imported != 80 || s.Rejected != 5 || s.Existing != 0 || !slices.Equal(s.Reasons, want) {
		t.Errorf("summary %+v, want 80 of 85 runs, and 5 with copied times", s)
	}
	if got := strings.Join(s.Trained, "\n"); !strings.Contains(got, "epoch_time: ") ||
		!strings.Contains(got, "accuracy: ") {
		t.Errorf("trained %q, want epoch times and accuracies", got)
	}
	before := lastSequence(t, l.Bus())
	var again importer.Summary
	courierJSON(t, &again, file...)
	if again.Imported != 0 || again.Existing != 80 || lastSequence(t, l.Bus()) != before {
		t.Errorf("second import: %+v and %d new events, want none", again,
			lastSequence(t, l.Bus())-before)
	}

	ctx := within(t, patience)
	q := schemas.JobRequest{
		Model: "lenet5", CPUs: schemas.CPUs{1}, BatchSizes: []int{64, 512}, Epochs: 10,
		SLO: schemas.Duration(time.Hour),
	}
	var a schemas.Advice
	await(t, "the regressors", func() bool {
		return l.Bus().Request(ctx, schemas.SubjectJobPredict, &q, &a) == nil && len(a.Regressors) == 2
	})
	seconds, accuracy := []float64{493.5, 179.7}, []float64{0.9567, 0.8957} // measured, alone on the cluster
	for i, x := range a.Alternatives {
		if x.PredictedSeconds == nil || x.PredictedAccuracy == nil {
			t.Errorf("batch size %d: no figures: %+v", x.BatchSize, x)
			continue
		}
		if math.Abs(*x.PredictedSeconds/seconds[i]-1) > 0.15 ||
			math.Abs(*x.PredictedAccuracy-accuracy[i]) > 0.015 {
			t.Errorf("batch size %d: %.1f s and accuracy %.4f, want about %.1f s and %.4f",
				x.BatchSize, *x.PredictedSeconds, *x.PredictedAccuracy, seconds[i], accuracy[i])
		}
	}
	if a.Decision != schemas.MeetsSLO || a.Load.ConcurrentJobs != 1 {
		t.Errorf("advice %s with %g co-located jobs, want meets_slo with none", a.Decision,
			a.Load.ConcurrentJobs)
	}
	checkNoReactions(t, l.Bus())
}

// checkNoReactions fails if past runs have caused advice, warnings, lost jobs or drift.
func checkNoReactions(t *testing.T, b *bus.Bus) {
	t.Helper()
	for _, stream := range []string{
		schemas.StreamJob,
		schemas.StreamRegressor,
		schemas.StreamAdvice,
	} {
		o := bus.FollowOptions{Stream: stream}
		err := b.Read(within(t, patience), o, func(r bus.Record) error {
			switch r.Event.(type) {
			case *schemas.Started, *schemas.Epoch, *schemas.Trained, *schemas.Promoted:
			case *schemas.Ended:
				if r.Event.(*schemas.Ended).Outcome == schemas.EventLost {
					t.Errorf("a past job was lost: %s", r.Subject)
				}
			default:
				t.Errorf("importing past runs caused %s, want only job and training events", r.Subject)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A repeated import completes an interrupted one, regardless of where it stopped.
func TestImport_CompletesAnInterruptedImport(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "epochs.csv")
	rows := "run,model,batch,cpus,started_at,epoch,epoch_seconds,accuracy\n"
	for run := range 2 {
		for epoch := range 3 {
			rows += fmt.Sprintf("r%d,m,%d,2,2024-05-0%d 10:00:00,%d,%.3f,0.9\n", run, 32<<run,
				run+1, epoch, 2.5+0.125*float64(epoch+run))
		}
	}
	if err := os.WriteFile(path, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	c := importCommand{Paths: []string{path}, TimeZone: "UTC"}
	o, err := c.options()
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.read(&environment{ctx: t.Context()}, o)
	if err != nil || len(found.Runs) != 2 || len(found.Refused) != 0 {
		t.Fatalf("read %+v, %v; want two runs", found, err)
	}
	all := append(found.Runs[0].Events(), found.Runs[1].Events()...)
	for stopped := range all {
		t.Run(fmt.Sprint("after ", stopped), func(t *testing.T) {
			b := bustest.New(t)
			for _, e := range all[:stopped] {
				if _, err := b.Publish(within(t, patience), e); err != nil {
					t.Fatal(err)
				}
			}
			p, err := importer.NewPublisher(within(t, patience), b)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Publish(within(t, patience), found.Runs, false, func(int) {}); err != nil {
				t.Fatal(err)
			}
			if p.Events != len(all)-stopped || lastSequence(t, b) != uint64(len(all)) {
				t.Errorf("%d events added, %d in total; want %d and %d", p.Events,
					lastSequence(t, b), len(all)-stopped, len(all))
			}
		})
	}
}
