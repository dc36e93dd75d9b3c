package decide_test

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// A higher target accuracy never has a higher probability after the same epochs. A job that stops at its
// target never has an earlier end; its probability is that of the fewest epochs that suffice.
func TestDecide_AHigherTargetIsNoMoreProbableAndNoEarlier(t *testing.T) {
	r := evidenceRegressors(t)
	batches := []int{32, 48, 64, 128, 256}
	ask := func(epochs int, target float64) []schemas.Alternative {
		return decide.Decide(evidenceQuestion(func(q *schemas.JobRequest) {
			q.BatchSizes, q.TargetAccuracy = batches, target
			if q.Epochs = epochs; epochs == 0 {
				q.MaxEpochs = 40
			}
		}), r, evidenceBegin).Alternatives
	}
	fixed, stopping := ask(20, 0.05), ask(0, 0.05)
	for target := 0.055; target < 0.9; target += 0.005 {
		higher, later := ask(20, target), ask(0, target)
		for i := range batches {
			low, high := &fixed[i], &higher[i]
			if *high.AccuracyProbability > *low.AccuracyProbability || *high.Probability > *low.Probability {
				t.Errorf("batch size %d, target %.3f: probability %g, in time %g; for a lower target %g, %g",
					batches[i], target, *high.AccuracyProbability, *high.Probability,
					*low.AccuracyProbability, *low.Probability)
			}
			isPromised := decide.ProbabilityOf(&later[i]) > 0.5
			if isPromised && *later[i].PredictedSeconds < *stopping[i].PredictedSeconds {
				t.Errorf("batch size %d, target %.3f: reached after %g s, a lower target after %g s",
					batches[i], target, *later[i].PredictedSeconds, *stopping[i].PredictedSeconds)
			}
		}
		fixed, stopping = higher, later
	}
}

// While a job runs, the probability of its target falls with the target and rises with the SLO. Its time
// has one distribution whatever the target is: the SLO is met with probability one half if it is the
// predicted time, and with the confidence if it is the bound.
func TestDecide_TheTargetOfARunningJobFollowsOneDistribution(t *testing.T) {
	r := evidenceRegressors(t)
	const batch, epochs, secondsPerEpoch = 64, 20, 36.5
	for _, tc := range []struct {
		done uint32
		best float64 // 0: unknown
	}{{0, 0}, {8, 0}, {1, 0.05}, {4, 0.25}, {8, 0.45}, {8, 0.4}, {12, 0.5}, {12, 0.35}, {19, 0.6}, {19, 0.45}} {
		done, elapsed := tc.done, secondsPerEpoch*float64(tc.done)
		ask := func(target, left float64) *schemas.Alternative {
			q := evidenceQuestion(func(q *schemas.JobRequest) {
				q.BatchSizes, q.Epochs, q.TargetAccuracy = []int{batch}, epochs, target
				q.SLO = schemas.Duration((elapsed + left) * float64(time.Second))
			})
			q.Elapsed = time.Duration(elapsed * float64(time.Second))
			q.Self = &decide.Member{Hardware: q.Hardware, EpochsDone: done, Setting: schemas.Setting{
				Model: evidenceModel, BatchSize: batch, CPUs: 1, Epochs: epochs, Nodes: q.Nodes,
			}}
			if tc.best > 0 {
				q.Self.BestAccuracy = &tc.best
			}
			for range done {
				q.Self.ObservedEpochs = append(q.Self.ObservedEpochs, cluster.ObservedEpoch{
					Count: 1, BatchSize: batch, CPUs: 1, Seconds: secondsPerEpoch, Node: "node-a",
					Load: cluster.LoadOnNode{Load: schemas.Load{ConcurrentJobs: 1, Processes: 1}, On: evidenceNode},
				})
			}
			return decide.Decide(q, r, evidenceBegin).Chosen
		}
		usual := ask(0.5, 1000)
		median, bound := *usual.PredictedSeconds, *usual.UpperBoundSeconds
		inTime := map[float64]float64{
			0.8 * median: 0, median: 0.5, bound: schemas.DefaultConfidence, 3 * bound: 0.9999,
		}
		before := map[float64]float64{}
		for target := 0.05; target < 0.8; target += 0.01 {
			last := 0.0
			for _, left := range slices.Sorted(maps.Keys(inTime)) {
				a := ask(target, left)
				reached := *a.AccuracyProbability
				if want := inTime[left]; want > 0 && math.Abs(*a.SLOProbability-want) > 0.005 {
					t.Errorf("after %d epochs, target %.2f: probability of %g s is %g, want %g",
						done, target, left, *a.SLOProbability, want)
				}
				if math.Abs(*a.Probability-*a.SLOProbability*reached) > 1e-5 {
					t.Errorf("after %d epochs, target %.2f: probability %g, want that of the time, %g, times %g",
						done, target, *a.Probability, *a.SLOProbability, reached)
				}
				if *a.Probability < last {
					t.Errorf("after %d epochs, target %.2f: probability falls from %g to %g with the SLO",
						done, target, last, *a.Probability)
				}
				if target <= tc.best && reached != 1 {
					t.Errorf("after %d epochs, target %.2f: reached with probability %g, but it was reached",
						done, target, reached)
				}
				if lower, ok := before[left]; ok && reached > lower {
					t.Errorf("after %d epochs, target %.2f: reached with probability %g, a lower target with %g",
						done, target, reached, lower)
				}
				last, before[left] = *a.Probability, reached
			}
		}
	}
}

// A target that one run has reached is probable, though a promise needs two.
func TestDecide_ATargetThatOneRunHasReached(t *testing.T) {
	k := training{epochs: 9, startup: 20, epoch: every(1, 60, 60)}
	var history []advisortest.Run
	for n, want := range []schemas.Decision{schemas.Exploring, schemas.MeetsSLO} {
		run := k.draw(n, evidenceBegin.Add(time.Duration(n)*time.Hour), rand.New(rand.NewPCG(1, 1)))
		for i := range run.Epochs {
			run.Epochs[i].Accuracy = float64(i+1) / 10
		}
		history = append(history, run)
		files, err := advisortest.Fit(t.Context(), history, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := askTarget(t, advisortest.LoadFiles(t, files), 0, 0, false)
		isReasonNamed := strings.Contains(a.Message, "too few runs of model m have reached accuracy 0.9")
		if a.Decision != want || *a.Chosen.AccuracyProbability < 0.9 || a.Chosen.Epochs < 10 ||
			isReasonNamed != (want == schemas.Exploring) {
			t.Errorf("%d runs reached the target: %s, accuracy with probability %v after %d epochs: %s; want %s",
				n+1, a.Decision, *a.Chosen.AccuracyProbability, a.Chosen.Epochs, a.Message, want)
		}
	}
}

// Once a job of a model has stopped at its target, the time and the bound of the next one are those until it stops
// there, also while it runs. The last job that has reached it decides.
func TestDecide_AJobStopsAtItsTarget(t *testing.T) {
	k, random := training{epochs: 14, startup: 20, epoch: every(1, 60, 60)}, rand.New(rand.NewPCG(1, 2))
	var history []advisortest.Run
	for n, reached := range []int{9, 10, 11, 10} {
		run := k.draw(n, evidenceBegin.Add(time.Duration(n)*time.Hour), random)
		for i := range run.Epochs {
			run.Epochs[i].Accuracy = 0.9 * float64(min(i+1, reached)) / float64(reached)
		}
		history = append(history, run)
	}
	files, err := advisortest.Fit(t.Context(), history, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := advisortest.LoadFiles(t, files)
	for _, tc := range []struct {
		name        string
		done, of    uint32 // epochs of the last job, which reaches the target in epoch 11
		isRunning   bool   // it has not ended, and the question is about it
		least, most uint32 // epochs that are expected
	}{
		{"no job has ended", 0, 0, false, 12, 14},
		{"the last one stopped", 11, 14, false, 10, 11},
		{"the last one ran on", 14, 14, false, 12, 30},
		{"it runs", 6, 14, true, 4, 5},
		{"it runs, later than usual", 10, 14, true, 1, 2},
		{"it has reached the target and runs on", 12, 14, true, 2, 2},
	} {
		a := askTarget(t, r, tc.done, tc.of, tc.isRunning).Chosen
		last, startup := cmp.Or(a.ExpectedEpochs, a.Epochs), 20.0
		if tc.isRunning {
			startup = 0
		}
		if last < tc.least || last > tc.most || math.Abs((*a.PredictedSeconds-startup)/float64(60*last)-1) > 0.05 ||
			*a.UpperBoundSeconds < *a.PredictedSeconds || *a.UpperBoundSeconds > 70*float64(a.Epochs) {
			t.Errorf("%s: %d of %d epochs in %g s, at most %g s; want %d to %d epochs of 60 s", tc.name,
				last, a.Epochs, *a.PredictedSeconds, *a.UpperBoundSeconds, tc.least, tc.most)
		}
	}
}

// askTarget asks for a target accuracy of 0.9, after a job that did some of its epochs and reached it in the
// eleventh, or while this job runs.
func askTarget(t *testing.T, r decide.Regressors, done, of uint32, isRunning bool) *schemas.Advice {
	t.Helper()
	state := cluster.New()
	node := &schemas.Sample{Node: "n", Cores: evidenceNode.Cores, CPUModel: evidenceNode.CPUModel}
	state.Apply(node, 1, evidenceBegin)
	q := schemas.JobRequest{JobID: "job", Model: "m", CPUs: schemas.CPUs{1}, BatchSizes: []int{32}, MaxEpochs: 30,
		TargetAccuracy: 0.9, Nodes: []string{"n"}, SLO: schemas.Duration(24 * time.Hour),
		MayStopEarly: isRunning}.WithDefaults()
	stamp := schemas.JobStamp{Stamp: schemas.Stamp{At: evidenceBegin}, JobID: "last", Run: 1}
	set := schemas.Setting{Model: "m", BatchSize: 32, CPUs: 1, Epochs: of, Nodes: q.Nodes}
	events := []schemas.Event{&schemas.Submitted{JobStamp: stamp, Request: q},
		&schemas.Started{JobStamp: stamp, Setting: set}}
	for n := range done {
		reached := 0.9
		if n < 10 {
			reached = 0.08 * float64(n+1)
		}
		events = append(events, &schemas.Epoch{JobStamp: stamp, Setting: set, Epoch: n + 1, DurationSeconds: 60,
			Accuracy: &reached})
	}
	if !isRunning {
		events = append(events, &schemas.Ended{JobStamp: stamp, Setting: set, Outcome: schemas.EventFinished,
			EpochsDone: done})
	}
	if of == 0 {
		events = nil
	}
	for i, e := range events {
		state.Apply(e, uint64(i+2), evidenceBegin)
	}
	if isRunning {
		return decide.Decide(decide.AskRunning(state, state.Job("last"), evidenceBegin), r, evidenceBegin)
	}
	return decide.Decide(decide.Ask(state, q, evidenceBegin), r, evidenceBegin)
}
