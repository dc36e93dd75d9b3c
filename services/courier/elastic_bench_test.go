package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"courier/advisor"
	"courier/bus"
	"courier/collector"
	"courier/runner"
	"courier/schemas"
	"courier/services/local"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// BenchmarkElasticQueue runs 30 real trainings with deadlines on this machine. They arrive at random
// times, and their SLOs are 1.5 to 6 times their time alone on all CPUs. With "elastic" a courier all
// holds jobs until they fit, and jobs share the CPUs. It is compared with jobs that start in order of
// deadline and hold all CPUs (edf) or one CPU (fixed). It reports the ratio of kept SLOs and the mean
// time from submission to the end, as means with 95 % intervals. COURIER_REAL enables it; -benchtime 5x
// plays the same arrivals five times.
func BenchmarkElasticQueue(b *testing.B) {
	if os.Getenv("COURIER_REAL") == "" {
		b.Skip("a quiet machine is needed: set COURIER_REAL")
	}
	cpus := collector.NewObserver(slog.New(slog.DiscardHandler)).Hardware().Cores
	alone := newTrainingQueue(b, int(cpus), 1).aloneSeconds()
	for _, c := range []struct {
		name  string
		cpus  schemas.CPUs
		slots int // jobs that may run at once; 0: Courier decides
	}{
		{"elastic", schemas.CPUs{1, int(cpus)}, 0},
		{"edf", schemas.CPUs{int(cpus)}, 1},
		{"fixed", schemas.CPUs{1}, int(cpus)},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := newTrainingQueue(b, int(cpus), c.slots)
			if c.slots == 0 {
				q.measure()
			}
			var kept, seconds []float64
			for b.Loop() {
				q.play(c.cpus, alone, len(kept))
				kept = append(kept, float64(q.kept)/float64(q.jobs))
				seconds = append(seconds, q.seconds/float64(q.jobs))
				b.Logf("kept %.2f, %.1f s/job, %d moves", kept[len(kept)-1], seconds[len(kept)-1], q.moves)
			}
			reportMean(b, kept, "kept-ratio")
			reportMean(b, seconds, "s/job")
			b.ReportMetric(alone, "s/epoch")
		})
	}
}

// meanGapEpochs is the mean time between two arrivals, in epochs alone on all CPUs. A job has 13 epochs
// on average, so jobs that use all CPUs need three quarters of the time.
const meanGapEpochs = 17

// trainingBatch is the batch size of the jobs.
const trainingBatch = 32

// trainingQueue runs trainings of the built-in workload.
type trainingQueue struct {
	b     *testing.B
	l     *local.Instance
	cores int
	dir   string

	mu      sync.Mutex
	free    int                         // slots; unused if Courier decides
	waiting map[time.Time]chan struct{} // by deadline
	kept    int
	jobs    int
	seconds float64
	moves   int
}

func newTrainingQueue(b *testing.B, cores, slots int) *trainingQueue {
	q := &trainingQueue{b: b, cores: cores, dir: b.TempDir(), free: slots}
	if slots > 0 {
		q.waiting = map[time.Time]chan struct{}{}
	}
	q.l = startAll(b, func(f *localFlags) {
		if slots == 0 {
			f.Admission, f.MoveCPUs = schemas.AdmissionQueue, advisor.MovesOn
		}
	})
	return q
}

// enter waits until a slot is free and no job with an earlier deadline waits.
func (q *trainingQueue) enter(deadline time.Time) {
	if q.waiting == nil {
		return
	}
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	q.waiting[deadline] = turn
	q.mu.Unlock()
	<-turn
}

// leave gives the slot to the waiting job with the earliest deadline.
func (q *trainingQueue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.free++
		return
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(q.waiting)), time.Time.Compare)
	close(q.waiting[first])
	delete(q.waiting, first)
}

// run runs a training of some epochs.
func (q *trainingQueue) run(id string, epochs int, slo time.Duration, batch int, cpus schemas.CPUs) runner.Result {
	r, err := runner.Run(q.b.Context(), runner.Options{
		Observer: collector.NewObserver(slog.New(slog.DiscardHandler)),
		Request: schemas.JobRequest{
			JobID: id, Model: "digits-mlp", CPUs: cpus, Elastic: len(cpus) > 1, Epochs: epochs,
			BatchSizes: []int{batch}, SLO: schemas.Duration(slo),
		},
		NoPTY: true, SpoolDir: filepath.Join(q.dir, "spool-"+id),
		Command: []string{
			program(q.b), "workload", "digits", "--batch-size", "{batch}", "--cpus", "{cpus}",
			"--epochs", "{epochs}", "--augment", "40",
		},
		Connect: func(context.Context) (*bus.Bus, error) { return q.l.Bus(), nil },
	}, slog.New(slog.DiscardHandler))
	if err != nil || r.ExitCode != 0 {
		q.b.Errorf("%s: exit code %d, %v", id, r.ExitCode, err)
	}
	return r
}

// measure runs the training with two batch sizes and each number of CPUs, alone and beside another that
// fits, and fits.
func (q *trainingQueue) measure() {
	for n := range 6 {
		for _, batch := range []int{trainingBatch, 2 * trainingBatch} {
			for _, cpus := range [][]int{{1}, {q.cores}, {1, q.cores - 1}} {
				var all sync.WaitGroup
				for i, c := range cpus {
					all.Go(func() {
						id := fmt.Sprintf("measure-%d-%d-%d-%d-%d", n, batch, len(cpus), c, i)
						q.run(id, 6, 0, batch, schemas.CPUs{c})
					})
				}
				all.Wait()
			}
		}
	}
	var reply schemas.TrainReply
	err := q.l.Bus().Request(q.b.Context(), schemas.SubjectRegressorTrain,
		&schemas.TrainRequest{}, &reply)
	if err != nil || len(reply.Promoted) == 0 {
		q.b.Fatalf("train = %+v, %v", reply, err)
	}
}

// play submits the jobs at their times. alone is the time of an epoch on all CPUs in seconds.
func (q *trainingQueue) play(cpus schemas.CPUs, alone float64, repetition int) {
	random := rand.New(rand.NewPCG(30, 1))
	q.kept, q.jobs, q.seconds, q.moves = 0, 0, 0, 0
	var all sync.WaitGroup
	for i := range 30 {
		epochs := 6 + random.IntN(15)
		work := alone * float64(epochs)
		slo := time.Duration((1.5 + 4.5*random.Float64()) * work * float64(time.Second))
		gap := time.Duration(random.ExpFloat64() * meanGapEpochs * alone * float64(time.Second))
		select {
		case <-time.After(gap):
		case <-q.b.Context().Done():
			return
		}
		all.Go(func() {
			submitted := time.Now()
			q.enter(submitted.Add(slo))
			r := q.run(fmt.Sprintf("job-%d-%d", repetition, i), epochs, slo, trainingBatch, cpus)
			q.leave()
			took := time.Since(submitted)
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
}

// aloneSeconds returns the median time of an epoch with all CPUs and no other job.
func (q *trainingQueue) aloneSeconds() float64 {
	var seconds []float64
	for _, e := range q.run("alone", 40, 0, trainingBatch, schemas.CPUs{q.cores}).Epochs {
		seconds = append(seconds, e.DurationSeconds)
	}
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}

// reportMean reports the mean of repetitions, and half of its 95 % interval (Student's t).
func reportMean(b *testing.B, values []float64, unit string) {
	mean, deviation := stat.MeanStdDev(values, nil)
	b.ReportMetric(mean, unit)
	if n := float64(len(values)); n > 1 {
		t := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975)
		b.ReportMetric(t*deviation/math.Sqrt(n), "±"+unit)
	}
}
