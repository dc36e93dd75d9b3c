package fit

import "math"

// StepTimes are the step times of all shapes by a speed model, as sums of parts. They are valid as
// long as the facts of the model.
type StepTimes struct {
	facts   *Facts
	mean    Coefficients // without that of computation
	compute []kneeCompute
}

// kneeCompute is the computation of workers that can use up to a number of cores, multiplied by the
// probability of that number.
type kneeCompute struct {
	knee        float64
	coreSeconds float64 // of a worker
}

// newStepTimes averages the step times of several fits.
func newStepTimes(f *Facts, fits []kneeFit) StepTimes {
	t := StepTimes{facts: f, compute: make([]kneeCompute, 0, len(fits))}
	for i := range fits {
		fit := &fits[i]
		for term, c := range fit.coefficients {
			t.mean[term] += fit.probability * c
		}
		coreSeconds := fit.probability * fit.coefficients[termCompute] * f.SamplesPerWorker
		t.compute = append(t.compute, kneeCompute{fit.knee, coreSeconds})
	}
	t.mean[termCompute] = 0
	return t
}

// Of returns the step time of a shape.
func (t *StepTimes) Of(s Shape) float64 {
	terms := t.facts.termsOf(&s, 1)
	compute := t.computeSeconds(s.WorkerCores) * t.facts.samples(&s) / t.facts.SamplesPerWorker
	return dot(&terms, &t.mean) + compute
}

// computeSeconds returns the time in which a worker with a number of cores computes
// SamplesPerWorker samples.
func (t *StepTimes) computeSeconds(cores int) float64 {
	seconds := 0.0
	for _, c := range t.compute {
		seconds += c.coreSeconds / min(float64(cores), c.knee)
	}
	return seconds
}

// speed returns the samples per second of a shape.
func (t *StepTimes) speed(s Shape) float64 { return t.facts.Speed(s, t.Of(s)) }

// usefulCores returns the time in which a worker computes SamplesPerWorker samples by the number of
// its cores, from 1, up to the number that the worker can use.
func (t *StepTimes) usefulCores(most int) []float64 {
	knee := 1.0
	for _, c := range t.compute {
		if c.coreSeconds > 0 {
			knee = max(knee, c.knee)
		}
	}
	if t.facts.Architecture != Executors { // whose cores also update
		most = int(min(float64(most), math.Ceil(knee)))
	}
	seconds := make([]float64, 0, most)
	for c := range most {
		seconds = append(seconds, t.computeSeconds(c+1))
	}
	return seconds
}
