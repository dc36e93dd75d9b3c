package fit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/speed"
)

// BenchmarkPlan plans 1,000 running jobs of different models in random shapes, while a queue waits.
//
// A job is judged at every third report. So a plan at each report finds a new window for a third of
// the jobs: "third". The cases "all" are the worst case, a new window for each job. Learned models
// have seen 1 to 5 shapes with noise.
func BenchmarkPlan(b *testing.B) {
	for _, isLearned := range []bool{false, true} {
		for _, every := range []int{1, 3} {
			name := map[bool]string{false: "known", true: "learned"}[isLearned] +
				map[int]string{1: "/all", 3: "/third"}[every]
			b.Run(name, func(b *testing.B) {
				v := &clusterView{QueuedJobs: 1}
				random := rand.New(rand.NewPCG(1, 2))
				for i := range 1000 {
					j := randomJob(random, isLearned)
					j.ID = fmt.Sprint(i)
					if i%every > 0 {
						j.Window = j.Window[:1]
					}
					v.Jobs = append(v.Jobs, j)
				}
				moves := 0
				for b.Loop() {
					planned, _ := planAt(v, now, largest)
					moves = len(planned)
				}
				b.ReportMetric(float64(moves), "moves")
			})
		}
	}
}

// BenchmarkLearn learns the model of a job, which its caller does once for a window.
func BenchmarkLearn(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		randomJob(random, true)
	}
}

// randomJob returns a job with up to an hour of work left, and coefficients as in section 3.6 of the
// design page resource-policies.
func randomJob(random *rand.Rand, isLearned bool) training {
	known := randomTruth(random)
	drawShape := func() speed.Shape {
		return speed.Shape{
			Workers: 1 + random.IntN(8), WorkerCores: 1 + random.IntN(8),
			Servers: 1 + random.IntN(4), ServerCores: 1 + random.IntN(4),
		}
	}
	j := training{Training: policy.Training{
		Facts: known.Facts, Requested: drawShape(), Pause: 20 * time.Second,
	}}
	var seen []speed.ShapeTime
	for range 1 + random.IntN(5) {
		j.Shape = drawShape()
		j.Window = noisyWindow(random, known, j.Shape)
		seen = append(seen, speed.NewShapeTime(j.Window))
	}
	j.RemainingSamples = 3600 * random.Float64() * known.Facts.Speed(j.Shape, known.StepSeconds(j.Shape))
	if isLearned {
		j.Model = speed.Learn(j.Facts, seen, nil, largest)
	} else {
		j.Model = known.Speeds(largest)
	}
	return j
}

// randomTruth returns the speed of a job.
func randomTruth(random *rand.Rand) *speed.KnownModel {
	pick := func(values ...float64) float64 { return values[random.IntN(len(values))] }
	return &speed.KnownModel{
		Facts: speed.Facts{
			HasServers:       true,
			SamplesPerWorker: 64,
			ModelBytes:       pick(5, 60, 250, 500) * 1e6,
			BytesPerSecond:   pick(300, 600) * 1e6,
		},
		Coefficients: speed.Coefficients{
			pick(0.05, 0.1, 0.3), pick(0.01, 0.03, 0.08), pick(0.01, 0.03, 0.1), 1, 0.004, 0.006,
		},
		Knee: pick(2, 4, 6, 8),
	}
}

// noisyWindow returns three reports of a job with a noise of 2 % in step times, so that the window is
// stable, and of 5 % in the use of resources.
func noisyWindow(random *rand.Rand, m *speed.KnownModel, s speed.Shape) (window []speed.StepReport) {
	noisy := func(v, noise float64) float64 { return v * math.Exp(noise*random.NormFloat64()) }
	step, c := m.StepSeconds(s), m.Coefficients
	compute := c[1] * m.Facts.SamplesPerWorker / float64(s.WorkerCores)
	update := c[2] * float64(s.Workers) / float64(s.Servers*s.ServerCores)
	ratio := max(float64(s.Workers)/float64(s.Servers), 1)
	transfer := 2 * m.Facts.ModelBytes / m.Facts.BytesPerSecond * ratio
	for range 3 {
		window = append(window, speed.StepReport{
			Shape:          s,
			StepSeconds:    noisy(step, 0.02),
			WorkerCPURatio: min(1, noisy(compute/step, 0.05)),
			ServerCPURatio: min(1, noisy(update/step, 0.05)),
			LinkRatio:      min(1, noisy(transfer/step, 0.05)),
		})
	}
	return window
}
