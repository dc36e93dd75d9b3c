package figures

import (
	"math"
	"math/rand/v2"
	"strconv"

	"courier/policy/speed"
)

// guessedJob is a training with the shape that its user guessed.
type guessedJob struct {
	id             string
	arrivalSeconds float64
	guess          speed.Shape
	truth          speed.KnownModel
	speeds         *speed.Model // of truth
	workSeconds    float64      // in the guessed shape
	// guessRatio is the speed in the guessed shape, divided by the best with as many cores.
	guessRatio float64
}

// largest bounds the shapes that jobs may have: those that users guess, as in section 3.6.
var largest = speed.Shape{Workers: 8, WorkerCores: 8, Servers: 4, ServerCores: 4}

// samples returns the samples that the job trains on.
func (j *guessedJob) samples() float64 { return j.workSeconds * j.speed(j.guess) }

func (j *guessedJob) speed(s speed.Shape) float64 {
	return j.truth.Facts.Speed(s, j.truth.StepSeconds(s))
}

func newGuessedJob(random *rand.Rand) guessedJob {
	pick := func(values ...float64) float64 { return values[random.IntN(len(values))] }
	perSample, fixed := pick(0.01, 0.03, 0.08), pick(0.05, 0.1, 0.3)
	knee := pick(2, 4, 6, 8)
	modelMB, linkMB, update := pick(5, 60, 250, 500), pick(300, 600), pick(0.01, 0.03, 0.1)
	j := guessedJob{
		truth: speed.KnownModel{
			Facts: speed.Facts{
				HasServers:       true,
				SamplesPerWorker: 64,
				ModelBytes:       modelMB * 1e6,
				BytesPerSecond:   linkMB * 1e6,
			},
			Coefficients: speed.Coefficients{fixed, perSample, update, 1, 0.004, 0.006},
			Knee:         knee,
		},
		guess: speed.Shape{
			Workers:     1 + random.IntN(8),
			WorkerCores: 1 + random.IntN(8),
			Servers:     1 + random.IntN(4),
			ServerCores: 1 + random.IntN(4),
		},
		workSeconds: 300 + 2100*random.Float64(),
	}
	j.speeds = j.truth.Speeds(largest)
	best, _ := j.speeds.Fastest(j.guess.Cores())
	j.guessRatio = j.speed(j.guess) / j.speed(best)
	return j
}

// population describes random jobs.
type population struct {
	jobs           int
	meanGapSeconds float64 // between two arrivals, exponential
	// Only jobs whose guessRatio is within these bounds.
	lowGuessRatio, highGuessRatio float64
}

// draw returns the jobs of a population in order of arrival.
func (p population) draw(seed uint64) []guessedJob {
	random := rand.New(rand.NewPCG(seed, 0))
	jobs := make([]guessedJob, 0, p.jobs)
	arrival := 0.0
	for len(jobs) < p.jobs {
		j := newGuessedJob(random)
		if j.guessRatio < p.lowGuessRatio || j.guessRatio > p.highGuessRatio {
			continue
		}
		arrival += p.meanGapSeconds * random.ExpFloat64()
		j.id, j.arrivalSeconds = strconv.Itoa(len(jobs)), arrival
		jobs = append(jobs, j)
	}
	return jobs
}

// report returns the telemetry of a job in a shape, with relative noise on each number.
func (j *guessedJob) report(s speed.Shape, random *rand.Rand) speed.StepReport {
	noisy := func(v float64) float64 { return v * math.Exp(reportNoise*random.NormFloat64()) }
	c, f, step := &j.truth.Coefficients, &j.truth.Facts, j.truth.StepSeconds(s)
	workers, servers := float64(s.Workers), float64(s.Servers)
	// The seconds of a step that a resource is busy. They overlap with nothing.
	compute := c[1] * f.SamplesPerWorker / min(float64(s.WorkerCores), j.truth.Knee)
	update := c[2] * workers / (servers * float64(s.ServerCores))
	transfer := c[3] * 2 * f.ModelBytes / f.BytesPerSecond * max(workers/servers, 1)
	used := min(1, j.truth.Knee/float64(s.WorkerCores)) // of a worker's cores, while it computes
	r := speed.StepReport{
		Shape:          s,
		StepSeconds:    noisy(step),
		WorkerCPURatio: min(1, noisy(used*compute/step)),
		ServerCPURatio: min(1, noisy(update/step)),
		LinkRatio:      min(1, noisy(transfer/step)),
	}
	random.NormFloat64() // unused; the published figures were computed with one more number per report
	return r
}
