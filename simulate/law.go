package simulate

import "math"

// TimeLaw is the true duration of an epoch in seconds: the exponential of a sum of terms. Each
// field is the coefficient of the term in its comment. b is the batch size, c the CPUs of the job,
// n the number of jobs on the node, and P the sum of their CPUs; n and P include the job.
type TimeLaw struct {
	Constant    float64 `json:"constant"`     // 1: the logarithm of seconds
	Batch       float64 `json:"batch"`        // ln(b / 64)
	CPUs        float64 `json:"cpus"`         // ln c
	InverseCPUs float64 `json:"inverse_cpus"` // 1 / c
	BatchCPUs   float64 `json:"batch_cpus"`   // ln(b / 64) · ln c
	Jobs        float64 `json:"jobs"`         // ln n
	Neighbours  float64 `json:"neighbours"`   // ln(1 + (P − c) / cores): the cost of the processes of neighbours
}

// alone returns the seconds of an epoch without neighbours.
func (l *TimeLaw) alone(batch, cpus uint32) float64 {
	b, c := math.Log(float64(batch)/64), math.Log(float64(cpus))
	return math.Exp(l.Constant + l.Batch*b + l.CPUs*c + l.InverseCPUs/float64(cpus) +
		l.BatchCPUs*b*c)
}

// contention returns the factor by which neighbours lengthen an epoch, 1 without neighbours. cpus
// are the CPUs of the job, processes the processes of all jobs on the node.
func (l *TimeLaw) contention(cpus uint32, jobs, processes int, cores uint32) float64 {
	if jobs == 1 {
		return 1
	}
	return math.Exp(l.Jobs*math.Log(float64(jobs)) +
		l.Neighbours*math.Log1p(float64(processes-int(cpus))/float64(cores)))
}

// AccuracyLaw is the true accuracy: 1 − exp(constant + iterations · ln k) after k iterations. So
// the accuracy depends on the number of iterations only, and a smaller batch size is more accurate
// after the same number of epochs.
type AccuracyLaw struct {
	Constant   float64 `json:"constant"`   // logarithm of the error after one iteration
	Iterations float64 `json:"iterations"` // below 0: slope of the logarithm of the error
}

// after returns the true accuracy after some epochs, 0 to 1.
func (l *AccuracyLaw) after(samples uint64, batch, epochs uint32) float64 {
	iterations := float64(epochs) * float64(samples) / float64(batch)
	return 1 - min(1, math.Exp(l.Constant+l.Iterations*math.Log(iterations)))
}
