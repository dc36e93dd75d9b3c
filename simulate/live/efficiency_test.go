package live_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"courier/advisor"
	"courier/advisor/advisortest"
	"courier/advisor/shares"
	"courier/schemas"
)

// wrongStart is a training with a wrong number of CPUs, as in BenchmarkRealRuns of services/courier, with
// about the times that it has there.
type wrongStart struct {
	id     string
	epochs int
	sleep  float64 // seconds of an epoch in which it waits for its input
	// one and two are the seconds of the rest with one thread and with two, which have a CPU each.
	one, two float64
	// sync is the ratio of its speed that is left if its two threads wait for each other on shared CPUs.
	sync    float64
	scatter float64 // standard deviation of the logarithm of an epoch
}

var wrongStarts = []wrongStart{
	{"few", 40, 0, 0.83, 0.48, 0.9, 0.04},
	{"idle", 60, 0.93, 0.1, 0.1, 1, 0.15},
	{"threads", 30, 0, 0.36, 0.3, 0.4, 0.04},
}

// wrongRun is one of these trainings while it runs. It takes moves as courier run does, and undoes none.
type wrongRun struct {
	*training
	*wrongStart
	random *rand.Rand
	// visible is the ratio of the time in which its threads wait for a CPU that is measured: a thread that
	// waits for a slow one sleeps.
	visible float64

	epoch             int // that is running
	begin             time.Time
	slept, done       float64 // seconds, and ratio of the rest of the epoch
	factor            float64 // of the time of this epoch
	cpuSeconds, waits float64 // of this epoch
	isOver            bool
}

// threads returns how many threads of the training compute now.
func (r *wrongRun) threads() float64 {
	switch {
	case r.isOver || r.slept < r.sleep*r.factor:
		return 0
	case r.sleep > 0:
		return 1
	}
	return float64(r.setting.CPUs)
}

// step computes for some seconds, with a share of a CPU for each thread.
func (r *wrongRun) step(seconds, share float64) {
	threads, needed := r.threads(), r.one
	if r.isOver || threads == 0 {
		r.slept += seconds
		return
	}
	if threads > 1 {
		needed = r.two
		if share < 1 {
			needed /= r.sync
		}
	}
	r.cpuSeconds += threads * share * seconds
	r.waits += threads * (1 - share) * seconds
	if r.done += share * seconds / (needed * r.factor); r.done >= 1 {
		r.endEpoch()
	}
}

func (r *wrongRun) beginEpoch() {
	r.epoch++
	r.begin, r.slept, r.done, r.cpuSeconds, r.waits = time.Now(), 0, 0, 0, 0
	r.factor = math.Exp(r.scatter * r.random.NormFloat64())
}

func (r *wrongRun) endEpoch() {
	took, cpuSeconds := time.Since(r.begin).Seconds(), r.cpuSeconds
	pressure := min(1, r.visible*r.waits/took)
	id := r.training.id
	r.publish(&schemas.Epoch{
		JobStamp: r.stamp(schemas.EpochID(id, 1, uint32(r.epoch))), Setting: r.setting, NodeCores: 2,
		Epoch: uint32(r.epoch), DurationSeconds: took, DurationSource: schemas.DurationReported,
		JobCPUSeconds: &cpuSeconds, JobCPUPressureRatio: &pressure,
	})
	if r.epoch < r.epochs {
		r.move(r.epoch + 1)
		r.beginEpoch()
		return
	}
	r.isOver = true
	r.publish(&schemas.Ended{
		JobStamp: r.stamp(schemas.EndedID(id, 1, schemas.EventFinished)), Setting: r.setting,
		Outcome: schemas.EventFinished, EpochsDone: uint32(r.epochs),
	})
}

// start submits the training and begins its first epoch.
func (r *wrongRun) start() {
	id := r.wrongStart.id
	request := schemas.JobRequest{
		JobID: id, Model: id, CPUs: schemas.CPUs{1, 2}, Elastic: true, BatchSizes: []int{batchSize},
		Epochs: r.epochs, Nodes: []string{nodeName},
	}
	var advice schemas.Advice
	if err := r.b.Request(context.Background(), schemas.SubjectJobSubmit, &request, &advice); err != nil {
		r.t.Fatal(err)
	}
	r.training.id, r.setting = id, schemas.Setting{
		Model: id, BatchSize: batchSize, CPUs: advice.Chosen.CPUs, Epochs: uint32(r.epochs), Nodes: []string{nodeName},
	}
	r.publish(&schemas.Started{
		JobStamp: r.stamp(schemas.StartedID(id, 1)), Setting: r.setting, NodeCores: 2,
		HeartbeatSeconds: time.Hour.Seconds(), Moves: []string{schemas.MoveCPUs},
	})
	r.beginEpoch()
}

// runWrongStarts returns the seconds of each training.
func (q *queue) runWrongStarts(seed uint64, visible float64, isMoving bool) []float64 {
	begin, took := time.Now(), make([]float64, len(wrongStarts))
	var runs []*wrongRun
	for i := range wrongStarts {
		r := &wrongRun{
			training: &training{queue: q}, wrongStart: &wrongStarts[i], visible: visible,
			random: rand.New(rand.NewPCG(seed, uint64(i))),
		}
		if r.start(); !isMoving {
			r.cause = math.MaxUint64 // no advice is newer
		}
		runs = append(runs, r)
	}
	const step, cpus = 10 * time.Millisecond, 2
	for slices.Contains(took, 0) {
		pass(step)
		threads := 0.0
		for _, r := range runs {
			threads += r.threads()
		}
		for i, r := range runs {
			if r.step(step.Seconds(), min(1, cpus/max(1, threads))); r.isOver && took[i] == 0 {
				took[i] = time.Since(begin).Seconds()
			}
		}
	}
	return took
}

// Three trainings that start wrongly end sooner if their CPUs move, and none ends later: the CPUs of one that
// waits for its input go to the others, and those of one that has ended to the one that can use them. It does
// not matter how much of their waiting for CPUs is measured, or that the epochs of the idle one scatter.
func TestEfficiency_ShortensTrainingsThatStartWrongly(t *testing.T) {
	hardware := schemas.Hardware{Cores: 2, CPUModel: "x", Speed: 1e9}
	run := func(model string, cpus uint32) advisortest.Run {
		return advisortest.Run{
			Model: model, Node: nodeName, Hardware: hardware, BatchSize: batchSize, CPUs: cpus,
			Load:      schemas.Load{ConcurrentJobs: 1, Processes: float64(cpus)},
			StartedAt: time.Unix(1_780_000_000, 0), StartupSeconds: 0.1,
			Epochs: []advisortest.Epoch{{Seconds: 0.55, Accuracy: 0.5}},
		}
	}
	runs := []advisortest.Run{run("few", 2), run(modelName, 1)}
	regressors, err := advisortest.Fit(t.Context(), runs, nil)
	if err != nil {
		t.Fatal(err)
	}
	inVirtualTime(t, func(t *testing.T) {
		measure := func(seed uint64, visible float64, isMoving bool) ([]float64, int) {
			part := &scope{T: t}
			defer part.end()
			q := newQueue(part, world{}, twoCPUs)
			q.serve(advisor.Options{Policy: advisor.Policy{Objective: shares.ObjectiveEfficiency}}, regressors)
			return q.runWrongStarts(seed, visible, isMoving), q.moves
		}
		for seed, visible := range []float64{0.1, 0.2, 0.5, 1} {
			before, _ := measure(uint64(seed), visible, false)
			after, moves := measure(uint64(seed), visible, true)
			sum := 0.0
			for i := range before {
				ratio := after[i] / before[i]
				if sum += ratio / float64(len(before)); ratio > 1.05 {
					t.Errorf("%s takes %.2f of its time with moves, want at most 1.05", wrongStarts[i].id, ratio)
				}
			}
			t.Logf("%.1f visible: %.1f s, with %d moves %.1f s: %+.1f %%", visible, before, moves, after, 100*(sum-1))
			few := after[0] / before[0]
			if sum > 0.75 || few > 0.72 || moves > 5 {
				t.Errorf("the trainings take %.2f, and few %.2f of their time after %d moves, want at most 0.75 and "+
					"0.72 after 5", sum, few, moves)
			}
		}
	})
}
