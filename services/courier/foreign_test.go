package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/schemas"
)

// Simulated jobs run on a simulated node, where a foreign process uses the processors at times. The
// services are real. After the trainer has learned the effect, predictions are longer only while
// the process runs.
func TestForeign_AHogInTheLogChangesTheNextAdvice(t *testing.T) {
	const node = "hogged"
	l := startAll(t, nil)
	ctx := within(t, patience)
	publish := func(e schemas.Event) {
		t.Helper()
		if _, err := l.Bus().Publish(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	at := time.Now().UTC().Add(-50 * time.Minute).Truncate(time.Second)
	for n := range 40 {
		at = publishBesideHog(publish, node, n, float64(n%2), at, random)
	}
	var reply schemas.TrainReply
	request := &schemas.TrainRequest{Target: schemas.TargetEpochTime}
	if err := l.Bus().Request(ctx, schemas.SubjectRegressorTrain, request, &reply); err != nil {
		t.Fatal(err)
	}

	sampled := uint64(0)
	seconds := func(cpu float64) float64 {
		t.Helper()
		var a schemas.Advice
		await(t, fmt.Sprintf("an advice with a foreign load of %g", cpu), func() bool {
			sampled++
			s := sampleOf(node, sampled)
			s.CPURatio = &cpu
			publish(s)
			q := &schemas.JobRequest{
				Model:      "m",
				CPUs:       schemas.CPUs{2},
				BatchSizes: []int{16},
				Epochs:     3,
				Nodes:      []string{node},
			}
			if err := l.Bus().Request(ctx, schemas.SubjectJobPredict, q, &a); err != nil {
				t.Fatal(err)
			}
			return a.Load.ForeignCPURatio == schemas.RatioOf(cpu)
		})
		if a.Chosen.PredictedSeconds == nil || a.Chosen.Extrapolated {
			t.Fatalf("with a foreign load of %g nothing is predicted: %s", cpu, a.Message)
		}
		return *a.Chosen.PredictedSeconds
	}
	before, beside, after := seconds(0), seconds(0.5), seconds(0)
	if ratio := beside / before; ratio < 1.3 || ratio > 1.7 {
		t.Errorf("%.2f s without a hog, %.2f s with a hog, want at least 1.5 times that", before, beside)
	}
	if after != before {
		t.Errorf("prediction before the foreign load = %.2f s, %.2f s after it; want the same",
			before, after)
	}
}

// publishBesideHog publishes a job of three epochs on a node with two processors, of which a
// foreign process needs some, and returns after the end of the job.
func publishBesideHog(
	publish func(schemas.Event), node string, n int, hog float64, at time.Time, random *rand.Rand,
) time.Time {
	cpus := uint32(1 + n/2%2)
	set := schemas.Setting{
		Model: "m", BatchSize: []uint32{4, 16, 64}[n%3], CPUs: cpus, Epochs: 3,
		Nodes: []string{node},
	}
	job := fmt.Sprint("hog-", n)
	stamp := func(id string) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: job, Run: 1}
	}
	publish(&schemas.Started{JobStamp: stamp(schemas.StartedID(job, 1)), Setting: set, NodeCores: 2})
	slower := max(1, (float64(cpus)+hog)/2)
	rate := float64(cpus) / slower // processors that the job gets
	seconds := 8 * (1 + 8/float64(set.BatchSize)) / float64(cpus) * slower *
		math.Exp(0.02*random.NormFloat64())
	busy, used := min(1, (rate+hog/slower)/2), rate*seconds
	for k := range uint32(3) {
		at = at.Add(time.Duration(seconds * float64(time.Second)))
		publish(&schemas.Epoch{
			JobStamp: stamp(schemas.EpochID(job, 1, k+1)), Setting: set, Epoch: k + 1, NodeCores: 2,
			DurationSeconds: seconds, DurationSource: schemas.DurationReported,
			NodeCPURatio: &busy, JobCPUSeconds: &used,
		})
	}
	publish(&schemas.Ended{
		JobStamp: stamp(schemas.EndedID(job, 1, schemas.EventFinished)), Setting: set,
		Outcome: schemas.EventFinished, DurationSeconds: 3 * seconds, EpochsDone: 3,
	})
	return at.Add(time.Second)
}
