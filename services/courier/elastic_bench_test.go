package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"courier/advisor"
	"courier/bus"
	"courier/collector"
	"courier/runner"
	"courier/runner/output"
	"courier/schemas"
	"courier/services/local"
)

// BenchmarkElasticQueue runs 30 real trainings with deadlines on this machine, through a courier all
// that holds jobs until they fit. They arrive at random times, and their SLOs are 1.5 to 6 times
// their time alone on all CPUs. It compares elastic jobs, which share the CPUs, with jobs that hold all
// CPUs in order of deadline (edf) and jobs that hold one CPU (fixed). It reports the ratio of kept
// SLOs and the mean time from submission to the end. COURIER_REAL enables it; -count repeats it with
// the same arrivals.
func BenchmarkElasticQueue(b *testing.B) {
	if os.Getenv("COURIER_REAL") == "" {
		b.Skip("a quiet machine is needed: set COURIER_REAL")
	}
	cpus := collector.NewObserver(slog.New(slog.DiscardHandler)).Hardware().Cores
	for _, c := range []struct {
		name string
		cpus schemas.CPUs
	}{
		{"elastic", schemas.CPUs{1, int(cpus)}},
		{"edf", schemas.CPUs{int(cpus)}},
		{"fixed", schemas.CPUs{1}},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := newTrainingQueue(b, int(cpus))
			q.measure()
			for b.Loop() {
				q.play(c.cpus)
			}
		})
	}
}

// trainingQueue runs trainings of the built-in workload.
type trainingQueue struct {
	b     *testing.B
	l     *local.Instance
	cores int
	dir   string

	mu      sync.Mutex
	kept    int
	jobs    int
	seconds float64
	moves   int
}

func newTrainingQueue(b *testing.B, cores int) *trainingQueue {
	return &trainingQueue{b: b, cores: cores, dir: b.TempDir(), l: startAll(b, func(f *localFlags) {
		f.Admission, f.MoveCPUs = schemas.AdmissionQueue, advisor.MovesOn
	})}
}

// run runs a training of some epochs. It returns its run and the time since its submission.
func (q *trainingQueue) run(id string, epochs int, slo time.Duration, cpus schemas.CPUs) (
	runner.Result, time.Duration,
) {
	program, err := os.Executable()
	if err != nil {
		q.b.Error(err)
	}
	begin := time.Now()
	r, err := runner.Run(q.b.Context(), runner.Options{
		Observer: collector.NewObserver(slog.New(slog.DiscardHandler)),
		Request: schemas.JobRequest{
			JobID: id, Model: "digits-mlp", CPUs: cpus, Elastic: len(cpus) > 1, Epochs: epochs,
			BatchSizes: []int{32}, SLO: schemas.Duration(slo),
		},
		NoPTY: true, Format: output.FormatJSON, SpoolDir: filepath.Join(q.dir, "spool-"+id),
		Command: []string{
			program, "workload", "digits", "--batch-size", "{batch}", "--cpus", "{cpus}",
			"--epochs", "{epochs}", "--augment", "40",
		},
		Connect: func(context.Context) (*bus.Bus, error) { return q.l.Bus(), nil },
	}, slog.New(slog.DiscardHandler))
	if err != nil || r.ExitCode != 0 {
		q.b.Errorf("%s: exit code %d, %v", id, r.ExitCode, err)
	}
	return r, time.Since(begin)
}

// measure runs the training with each number of CPUs, alone and beside another, and fits.
func (q *trainingQueue) measure() {
	for n := range 4 {
		for _, pair := range [][]int{{1}, {q.cores}, {1, 1}, {1, q.cores}, {q.cores, q.cores}} {
			var all sync.WaitGroup
			for i, cpus := range pair {
				all.Go(func() {
					id := fmt.Sprintf("measure-%d-%d-%d-%d", n, len(pair), cpus, i)
					q.run(id, 6, 0, schemas.CPUs{cpus})
				})
			}
			all.Wait()
		}
	}
	var reply schemas.TrainReply
	err := q.l.Bus().Request(q.b.Context(), schemas.SubjectRegressorTrain,
		&schemas.TrainRequest{Promote: true}, &reply)
	if err != nil || len(reply.Promoted) == 0 {
		q.b.Fatalf("train = %+v, %v", reply, err)
	}
}

// play submits the jobs at their times, and reports the results.
func (q *trainingQueue) play(cpus schemas.CPUs) {
	alone := q.aloneSeconds()
	random := rand.New(rand.NewPCG(30, 1))
	q.kept, q.jobs, q.seconds, q.moves = 0, 0, 0, 0
	var all sync.WaitGroup
	for i := range 30 {
		epochs := 6 + random.IntN(15)
		work := alone * float64(epochs)
		slo := time.Duration((1.5 + 4.5*random.Float64()) * work * float64(time.Second))
		gap := time.Duration(random.ExpFloat64() * 13 * alone * float64(time.Second))
		select {
		case <-time.After(gap):
		case <-q.b.Context().Done():
			return
		}
		all.Go(func() {
			r, took := q.run("job-"+strconv.Itoa(i), epochs, slo, cpus)
			q.mu.Lock()
			defer q.mu.Unlock()
			q.jobs++
			q.seconds += took.Seconds()
			if took <= slo && len(r.Epochs) == epochs {
				q.kept++
			}
			for _, m := range r.Moves {
				if m.Outcome == schemas.MoveCarriedOut {
					q.moves++
				}
			}
		})
	}
	all.Wait()
	q.b.ReportMetric(float64(q.kept)/float64(q.jobs), "kept-ratio")
	q.b.ReportMetric(q.seconds/float64(q.jobs), "s/job")
	q.b.ReportMetric(float64(q.moves), "moves")
	q.b.ReportMetric(alone, "s/epoch")
}

// aloneSeconds returns the predicted time of an epoch with all CPUs and no other job.
func (q *trainingQueue) aloneSeconds() float64 {
	var a schemas.Advice
	request := schemas.JobRequest{
		Model: "digits-mlp", CPUs: schemas.CPUs{q.cores}, Epochs: 10, BatchSizes: []int{32},
	}
	err := q.l.Bus().Request(q.b.Context(), schemas.SubjectJobPredict, &request, &a)
	if err != nil || a.Chosen.PredictedSeconds == nil {
		q.b.Fatalf("predict = %+v, %v", a, err)
	}
	return *a.Chosen.PredictedSeconds / 10
}
