// Package resize simulates a cluster whose trainings start in the shapes that users guessed, and
// compares policy/fit with keeping these shapes.
//
// It is the simulation of section 3.6 of the design page resource-policies: step times by the speed
// model of policy/fit with random coefficients, a first-in-first-out queue, and noisy reports. All
// randomness comes from seeds. Simulate is a pure function and may be called concurrently.
package resize

import (
	"math"
	"math/rand/v2"
	"strconv"

	"courier/policy/speed"
)

// GuessedJob is a training with the shape that its user guessed.
type GuessedJob struct {
	ID             string
	ArrivalSeconds float64
	Guess          speed.Shape
	Truth          speed.KnownModel
	Speeds         *speed.Model // of Truth
	WorkSeconds    float64      // in the guessed shape
	// GuessRatio is the speed in the guessed shape, divided by the best with as many cores.
	GuessRatio float64
}

// largest bounds the shapes that jobs may have: those that users guess, as in section 3.6.
var largest = speed.Shape{Workers: 8, WorkerCores: 8, Servers: 4, ServerCores: 4}

// Samples returns the samples that the job trains on.
func (j *GuessedJob) Samples() float64 { return j.WorkSeconds * j.speed(j.Guess) }

func (j *GuessedJob) speed(s speed.Shape) float64 {
	return j.Truth.Facts.Speed(s, j.Truth.StepSeconds(s))
}

func newGuessedJob(random *rand.Rand) GuessedJob {
	pick := func(values ...float64) float64 { return values[random.IntN(len(values))] }
	perSample, fixed := pick(0.01, 0.03, 0.08), pick(0.05, 0.1, 0.3)
	knee := pick(2, 4, 6, 8)
	modelMB, linkMB, update := pick(5, 60, 250, 500), pick(300, 600), pick(0.01, 0.03, 0.1)
	j := GuessedJob{
		Truth: speed.KnownModel{
			Facts: speed.Facts{
				Architecture:     speed.ParameterServer,
				SamplesPerWorker: 64,
				ModelBytes:       modelMB * 1e6,
				BytesPerSecond:   linkMB * 1e6,
			},
			Coefficients: speed.Coefficients{fixed, perSample, update, 1, 0.004, 0.006},
			Knee:         knee,
		},
		Guess: speed.Shape{
			Workers:     1 + random.IntN(8),
			WorkerCores: 1 + random.IntN(8),
			Servers:     1 + random.IntN(4),
			ServerCores: 1 + random.IntN(4),
		},
		WorkSeconds: 300 + 2100*random.Float64(),
	}
	j.Speeds = j.Truth.Speeds(largest)
	best, _ := j.Speeds.Fastest(j.Guess.Cores())
	j.GuessRatio = j.speed(j.Guess) / j.speed(best)
	return j
}

// Population describes random jobs.
type Population struct {
	Jobs           int
	MeanGapSeconds float64 // between two arrivals, exponential
	// Only jobs whose GuessRatio is within these bounds.
	LowGuessRatio, HighGuessRatio float64
}

// Draw returns the jobs of a population in order of arrival.
func (p Population) Draw(seed uint64) []GuessedJob {
	random := rand.New(rand.NewPCG(seed, 0))
	jobs := make([]GuessedJob, 0, p.Jobs)
	arrival := 0.0
	for len(jobs) < p.Jobs {
		j := newGuessedJob(random)
		if j.GuessRatio < p.LowGuessRatio || j.GuessRatio > p.HighGuessRatio {
			continue
		}
		arrival += p.MeanGapSeconds * random.ExpFloat64()
		j.ID, j.ArrivalSeconds = strconv.Itoa(len(jobs)), arrival
		jobs = append(jobs, j)
	}
	return jobs
}

// stepParts are the seconds of a step that a resource is busy. They overlap with nothing.
type stepParts struct{ compute, update, transfer, rest float64 }

func (j *GuessedJob) parts(s speed.Shape) stepParts {
	c, f := &j.Truth.Coefficients, &j.Truth.Facts
	workers, servers := float64(s.Workers), float64(s.Servers)
	p := stepParts{
		compute:  c[1] * f.SamplesPerWorker / min(float64(s.WorkerCores), j.Truth.Knee),
		update:   c[2] * workers / (servers * float64(s.ServerCores)),
		transfer: c[3] * 2 * f.ModelBytes / f.BytesPerSecond * max(workers/servers, 1),
	}
	p.rest = j.Truth.StepSeconds(s) - p.compute - p.update - p.transfer
	return p
}

// report returns the telemetry of a job in a shape, with relative noise on each number.
func (j *GuessedJob) report(s speed.Shape, noise float64, random *rand.Rand) speed.StepReport {
	noisy := func(v float64) float64 { return v * math.Exp(noise*random.NormFloat64()) }
	step, p := j.Truth.StepSeconds(s), j.parts(s)
	used := min(1, j.Truth.Knee/float64(s.WorkerCores)) // of a worker's cores, while it computes
	return speed.StepReport{
		Shape:          s,
		StepSeconds:    noisy(step),
		WorkerCPURatio: min(1, noisy(used*p.compute/step)),
		ServerCPURatio: min(1, noisy(p.update/step)),
		LinkRatio:      min(1, noisy(p.transfer/step)),
		StragglerRatio: max(1, noisy(1)),
	}
}

// trueBottleneck returns what takes most of a step: the computation of the workers, the updates of
// the servers, the transfers, or the fixed and coordinating rest, which only more workers outweigh.
// Only more workers help a job, too, whose workers compute with more cores than they can use.
func (j *GuessedJob) trueBottleneck(s speed.Shape) speed.Bottleneck {
	p := j.parts(s)
	switch max(p.compute, p.update, p.transfer, p.rest) {
	case p.compute:
		if float64(s.WorkerCores) > j.Truth.Knee {
			return speed.BottleneckParallelism
		}
		return speed.BottleneckWorkerCPU
	case p.update:
		return speed.BottleneckServerCPU
	case p.transfer:
		return speed.BottleneckNetwork
	}
	return speed.BottleneckParallelism
}

// isClear reports whether one part takes most of a step.
func (j *GuessedJob) isClear(s speed.Shape) bool {
	p := j.parts(s)
	return max(p.compute, p.update, p.transfer, p.rest) >= clearRatio*j.Truth.StepSeconds(s)
}

// clearRatio of a step is a bottleneck beyond doubt.
const clearRatio = 0.85
